#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det and asynchronous cancellation: in operations, and the clean-ups of a thread that was cancelled in a
# computation.
. "$(dirname "$0")/lib.sh"

# The cancellation acts in a computation. The clean-up's first operation that waits for the turn is a lock that main
# holds: made without the turn, it would block the thread that has it, and that is main.
cat >cleans.c <<'END'
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
enum { ROUNDS = 100 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t cleans;
static uint64_t sum;
static int n;
static volatile int computes_on = 1;
static void add(uint64_t number) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        sum = sum * 31 + number, n++;
        pthread_mutex_unlock(&mutex);
    }
}
static void compute(void) {
    for (volatile int i = 0; i < 10000000; i++)
        ;
}
static void clean(void *unused) {
    (void)unused;
    sem_post(&cleans);
    add(1);
}
static void *computes(void *unused) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_push(clean, NULL);
    sched_yield();
    while (computes_on)
        ;
    pthread_cleanup_pop(0);
    return unused;
}
int main(void) {
    pthread_t thread;
    sem_init(&cleans, 0, 0);
    pthread_create(&thread, NULL, computes, NULL);
    sched_yield();
    sched_yield();
    pthread_mutex_lock(&mutex);
    compute();
    pthread_cancel(thread);
    sem_wait(&cleans);
    compute();
    pthread_mutex_unlock(&mutex);
    add(2);
    pthread_join(thread, NULL);
    printf("%d %016llx\n", n, (unsigned long long)sum);
    return 0;
}
END
$CC -O1 -pthread cleans.c -o cleans
# The threads do nothing but operations that do not block, so most cancellations come in one, or in its wait for the turn.
cat >operates.c <<'END'
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
enum { ROUNDS = 300 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem, cleaned;
static unsigned long long sum;
static void add(unsigned number) {
    pthread_mutex_lock(&mutex);
    sum = sum * 31 + number;
    pthread_mutex_unlock(&mutex);
}
static void clean(void *unused) {
    (void)unused;
    add(7);
    sem_post(&cleaned);
    add(8);
}
static void *operates(void *unused) {
    pthread_cleanup_push(clean, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) {
        sem_post(&sem);
        pthread_cond_signal(&cond);
        sem_trywait(&sem);
        sched_yield();
    }
    pthread_cleanup_pop(0);
    return unused;
}
int main(void) {
    int n = 0;
    sem_init(&sem, 0, 0);
    sem_init(&cleaned, 0, 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, operates, NULL);
        for (int k = 0; k < i % 7; k++)
            add(k);
        for (volatile int k = 0; k < i * 37 % 500; k++)
            ;
        pthread_cancel(thread);
        add(9);
        sem_wait(&cleaned);
        add(10);
        pthread_join(thread, &result);
        n += result == PTHREAD_CANCELED;
    }
    printf("%d %016llx\n", n, sum);
    return 0;
}
END
$CC -O1 -pthread operates.c -o operates
# What the C library's posix_spawn starts (make, system, popen) begins with the signal of cancellations ignored, and hands
# that on.
cat >ignores.c <<'END'
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {.handler = SIG_IGN};
    if (argc < 2 || syscall(SYS_rt_sigaction, 32, &action, NULL, sizeof action.mask) != 0)
        return 2;
    execv(argv[1], argv + 1);
    return 2;
}
END
$CC -O1 -D_GNU_SOURCE ignores.c -o ignores
n=0
for wait in adaptive adaptive adaptive switch switch auto 'adaptive ./ignores' 'switch ./ignores'; do
    read -r wait ignores <<<"$wait"
    rm -f log
    within 20 ${ignores:+"$ignores"} "$SUBUTAI" run --engine det --wait "$wait" --schedule $((n += 1)).schedule --verbose 2 \
        --log log -- ./operates
    echo "$status $out $(sed -n 's/.*[^-]schedule \([0-9a-f]\{16\}\)/\1/p' log)"
done >ends
out=$(sort -u ends)
check "cancellations that come in operations: each acts, and there is one schedule" matches "$out" \
    '^0 300 [0-9a-f]{16} [0-9a-f]{16}, 8988 operations, 0 returns from outside$'
[[ $out != *$'\n'* ]] || for ((i = 2; i <= n; i++)); do
    within 20 "$SUBUTAI" schedule diff 1.schedule $i.schedule
    note "1 and $i: $out$err"
done

if [ "$(uname -m)" = x86_64 ]; then
    $CC -O1 -D_GNU_SOURCE -pthread "$SOURCE_ROOT/tests/command/stepped_cancel.c" -o stepped
    n_reached=0
    for wait in adaptive 'adaptive ./ignores' switch; do
        read -r wait ignores <<<"$wait"
        within 20 ${ignores:+"$ignores"} "$SUBUTAI" run --engine det --wait "$wait" --log log -- ./stepped 900
        echo "$status $(sort <<<"$out" | uniq -c)"
        n_reached=$((n_reached + ${err:-0}))
    done >ends
    out=$(sort -u ends)
    check "cancelled at any instruction of an operation: one order" matches "$out" '^0 +180 1 [0-9a-f]+$'
    check "it has stood at such instructions" test "$n_reached" -gt 0
    note "$n_reached of 540"
fi

# A thread that has returned waits for the turn, to end, when it is cancelled.
cat >returns.c <<'END'
#include <pthread.h>
#include <stdio.h>
enum { ROUNDS = 20 };
static void *returns(void *unused) {
    (void)unused;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    return NULL;
}
int main(void) {
    int n = 0;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        void *result = &n;
        pthread_create(&thread, NULL, returns, NULL);
        for (volatile int k = 0; k < 2000000; k++)
            ;
        pthread_cancel(thread);
        pthread_join(thread, &result);
        n += result != &n;
    }
    printf("%d\n", n);
    return 0;
}
END
$CC -O1 -pthread returns.c -o returns
for wait in adaptive switch; do
    within 20 "$SUBUTAI" run --engine det --wait $wait --log log -- ./returns
    echo "$status $out"
done >ends
check "a thread that has returned ends, whenever it is cancelled" is "$(sort -u ends)" '0 20'

# The cancellation acts as the thread leaves the order for a call. Its stack is full of what other calls have left.
cat >calls.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
enum { ROUNDS = 20 };
static int ends[2];
static __attribute__((noinline)) void fill(int depth) {
    volatile char left[256];
    memset((void *)left, 0xff, sizeof left);
    if (depth > 0)
        fill(depth - 1);
    left[0] = 0;
}
static void *calls(void *unused) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) {
        char byte = 0;
        fill(16);
        if (write(ends[1], &byte, 1) != 1)
            return NULL;
        fill(16);
        if (read(ends[0], &byte, 1) != 1)
            return NULL;
    }
    return unused;
}
int main(void) {
    int n = 0;
    if (pipe(ends) != 0)
        return 2;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, calls, NULL);
        for (volatile int k = 0; k < 2000000; k++)
            ;
        pthread_cancel(thread);
        pthread_join(thread, &result);
        n += result == PTHREAD_CANCELED;
    }
    printf("%d\n", n);
    return 0;
}
END
$CC -O1 -pthread calls.c -o calls
for wait in adaptive switch; do
    within 20 "$SUBUTAI" run --engine det --wait $wait --log log -- ./calls
    echo "$status $out"
done >ends
check "a cancellation that acts as a call begins" is "$(sort -u ends)" '0 20'

# The process's first cancellation: what the C library allocates for it takes an allocator's lock.
cat >allocates.c <<'END'
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(64) char memory[1 << 24];
static size_t used;
void *malloc(size_t n) {
    pthread_mutex_lock(&mutex);
    char *at = memory + used;
    used += (n + 79) / 64 * 64;
    pthread_mutex_unlock(&mutex);
    memcpy(at, &n, sizeof n);
    return at + 16;
}
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *p, size_t n) {
    size_t had = 0;
    void *q = malloc(n);
    if (p != NULL) {
        memcpy(&had, (char *)p - 16, sizeof had);
        memcpy(q, p, had < n ? had : n);
    }
    return q;
}
void free(void *p) {
    (void)p;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}
static void *waits(void *unused) {
    pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&held);
    for (;;)
        pthread_cond_wait(&cond, &held);
    return unused;
}
int main(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, waits, NULL);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    puts(result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
    return 0;
}
END
$CC -O1 -pthread allocates.c -o allocates
within 20 "$SUBUTAI" run --engine det --log log -- ./allocates
check "the first cancellation of a program with an allocator that locks" is "$status $out" '0 cancelled'

# Another unwinder comes first in the global scope, as where libtcmalloc.so.4 is preloaded. The C library unwinds by libgcc_s.so.1.
cat >unwinder.c <<'END'
#include <stdlib.h>
void _Unwind_Resume(void *exception) { abort(); }
int _Unwind_ForcedUnwind(void *exception, void *stop, void *argument) { abort(); }
void *_Unwind_GetLanguageSpecificData(void *context) { abort(); }
unsigned long _Unwind_GetRegionStart(void *context) { abort(); }
unsigned long _Unwind_GetIPInfo(void *context, int *before) { abort(); }
void _Unwind_SetGR(void *context, int number, unsigned long value) { abort(); }
void _Unwind_SetIP(void *context, unsigned long ip) { abort(); }
END
$CC -w -shared -fPIC unwinder.c -o unwinder.so
cat >waits.c <<'END'
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>
enum { WAITS = 4 };
static int ends[2];
static sem_t sem, never;
static void *waits(void *number) {
    char byte;
    sem_post(&sem);
    switch ((long)number) {
    case 0:
        return read(ends[0], &byte, 1) == 1 ? NULL : number;
    case 1:
        pause();
        break;
    case 2:
        sem_wait(&never);
        break;
    default:
        pthread_exit(PTHREAD_CANCELED);
    }
    return NULL;
}
int main(void) {
    int n = 0;
    sem_init(&sem, 0, 0);
    sem_init(&never, 0, 0);
    if (pipe(ends) != 0)
        return 2;
    for (long i = 0; i < WAITS; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, waits, (void *)i);
        sem_wait(&sem);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        n += result == PTHREAD_CANCELED;
    }
    printf("%d\n", n);
    return 0;
}
END
$CC -O1 -pthread waits.c -o waits
for engine in det det direct; do
    LD_PRELOAD=$PWD/unwinder.so within 20 "$SUBUTAI" run --engine $engine --log log -- ./waits
    echo "$status $out"
done >ends
check "another unwinder in the global scope: threads are cancelled all the same" is "$(sort -u ends)" '0 4'

# The section keeps the computation from having the turn, so that main may cancel it.
printf 'subutai-hints 1\ngive-up-turn computes (cleans) 300 5000\n' >cleans.hints
for wait in adaptive adaptive switch; do
    rm -f log
    within 20 "$SUBUTAI" run --engine det --wait $wait --hints cleans.hints --verbose 2 --log log -- ./cleans
    echo "$status $out $(sed -n 's/.*[^-]schedule \([0-9a-f]\{16\}\)/\1/p' log)"
done >ends
out=$(sort -u ends)
check "a clean-up takes the turn before its operations: one schedule" matches "$out" \
    '^0 200 [0-9a-f]{16} [0-9a-f]{16}, 415 operations, 0 returns from outside$'
finish
