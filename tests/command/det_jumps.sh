#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det and siglongjmp out of signal handlers: a thread that leaves a wait is in the order again; an operation
# that a handler has interrupted is whole.
. "$(dirname "$0")/lib.sh"

# jumps WAIT: the main thread leaves that wait, and then competes with two others.
cat >jumps.c <<'END'
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
enum { ROUNDS = 3, OPERATIONS = 100 };
static sigjmp_buf way_out;
static sem_t sem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static unsigned long long sum;
static int ends[2], *shared;
static void jump(int signal) {
    (void)signal;
    siglongjmp(way_out, 1);
}
static void add(unsigned long number) {
    for (int i = 0; i < OPERATIONS; i++) {
        pthread_mutex_lock(&mutex);
        sum = sum * 31 + number;
        pthread_mutex_unlock(&mutex);
    }
}
static void *adds(void *number) {
    add((unsigned long)number);
    return NULL;
}
static void *waits(void *unused) {
    sem_wait(&sem);
    return unused;
}
/* The handler comes when the thread has long been waiting. */
static void soon(void) {
    struct itimerval jump_at = {.it_value = {.tv_usec = 50000}};
    setitimer(ITIMER_REAL, &jump_at, NULL);
}
static void join(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, waits, NULL);
    soon();
    pthread_join(thread, NULL);
}
static void wait_for(const char *what) {
    char byte;
    soon();
    if (strcmp(what, "read") == 0)
        while (read(ends[0], &byte, 1) != 1)
            ;
    else if (strcmp(what, "sem_wait") == 0)
        sem_wait(&sem);
    else if (strcmp(what, "mutex") == 0)
        pthread_mutex_lock(&other);
    else if (strcmp(what, "sleep") == 0)
        sleep(60);
    else if (strcmp(what, "join") == 0)
        join();
    else if (strcmp(what, "shared") == 0)
        syscall(SYS_futex, shared, FUTEX_WAIT, 0, NULL, NULL, 0);
    else
        pthread_barrier_wait(&barrier);
}
int main(int n, char **words) {
    struct sigaction action = {.sa_handler = jump};
    (void)n;
    sem_init(&sem, 0, 0);
    pthread_barrier_init(&barrier, NULL, 100);
    pthread_mutex_lock(&other);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pipe(ends) != 0)
        return 2;
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t threads[2];
        if (sigsetjmp(way_out, 1) == 0) {
            wait_for(words[1]);
            return 1;
        }
        for (unsigned long k = 0; k < 2; k++)
            pthread_create(&threads[k], NULL, adds, (void *)(k + 1));
        add(9);
        for (int k = 0; k < 2; k++)
            pthread_join(threads[k], NULL);
    }
    printf("%016llx\n", sum);
    return 0;
}
END
$CC -O1 -pthread jumps.c -o jumps
for what in read sem_wait mutex sleep barrier join shared; do
    for wait in adaptive switch; do
        rm -f log
        within 20 "$SUBUTAI" run --engine det --wait $wait --verbose 2 --log log -- ./jumps $what
        echo "$status $out $(sed -n 's/.*[^-]schedule \([0-9a-f]\{16\}\)/\1/p' log)"
    done >ends
    out=$(sort -u ends)
    check "$what is left by a jump: one return from outside for each, and one schedule" matches "$out" \
        '^0 [0-9a-f]{16} [0-9a-f]{16}, [0-9]+ operations, 3 returns from outside$'
done

# Without an order: the thread is runnable, and on its own kernel thread no longer than before.
for what in join shared; do
    for wait in adaptive 'switch!'; do
        within 20 "$SUBUTAI" run --wait "$wait" -- ./jumps $what
        echo "$status ${out//[0-9a-f]/x}"
    done | sort -u >ends
    check "$what is left by a jump under direct" is "$(cat ends)" "0 xxxxxxxxxxxxxxxx"
done

# Signals to the process and to the thread; each post that is not jumped out of counts.
cat >posts.c <<'END'
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
enum { JUMPS = 400, THREADS = 3 };
static sem_t sem;
static atomic_int jumps, ends;
static _Thread_local sigjmp_buf way_out;
static _Thread_local volatile sig_atomic_t may_jump;
static void jump(int signal) {
    (void)signal;
    if (!may_jump)
        return;
    atomic_fetch_add(&jumps, 1);
    siglongjmp(way_out, 1);
}
static void *posts(void *unused) {
    sigsetjmp(way_out, 1);
    may_jump = 1;
    while (!atomic_load(&ends))
        sem_post(&sem);
    may_jump = 0;
    return unused;
}
static void *takes(void *unused) {
    while (!atomic_load(&ends))
        sem_wait(&sem);
    return unused;
}
int main(void) {
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_RESTART};
    sem_init(&sem, 0, 0);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, i == 0 ? posts : takes, NULL);
    for (int i = 0; i < 10 * JUMPS && atomic_load(&jumps) < JUMPS; i++) {
        if (i % 2 == 0)
            pthread_kill(threads[0], SIGUSR1);
        else
            kill(getpid(), SIGUSR1);
        usleep(20);
    }
    atomic_store(&ends, 1);
    for (int i = 0; i < THREADS; i++)
        sem_post(&sem);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts(atomic_load(&jumps) > 0 ? "jumped" : "no jump");
    return 0;
}
END
$CC -O1 -pthread posts.c -o posts
for wait in adaptive switch 'switch!'; do
    within 30 "$SUBUTAI" run --engine det --wait $wait --log log -- ./posts
    echo "$status $out"
done >ends
out=$(cat ends)
check "jumps out of sem_post: the others go on" is "$(sort -u ends)" '0 jumped'

# Jumps out of calls outside, also as they begin and end. Each call is a return, and so may be each jump; a thread that
# were left outside would make each operation from there.
cat >calls.c <<'END'
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
enum { JUMPS = 300, OPERATIONS = 20000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int jumps, ends, calls;
static sigjmp_buf way_out;
static volatile sig_atomic_t may_jump;
static int pipe_ends[2];
static void jump(int signal) {
    (void)signal;
    if (!may_jump)
        return;
    atomic_fetch_add(&jumps, 1);
    siglongjmp(way_out, 1);
}
static void *makes_calls(void *unused) {
    sigsetjmp(way_out, 1);
    may_jump = 1;
    while (!atomic_load(&ends)) {
        char byte = 0;
        atomic_fetch_add(&calls, 2);
        if (write(pipe_ends[1], &byte, 1) != 1 || read(pipe_ends[0], &byte, 1) != 1)
            return NULL;
    }
    may_jump = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}
int main(void) {
    pthread_t thread;
    struct sigaction action = {.sa_handler = jump, .sa_flags = SA_RESTART};
    if (pipe(pipe_ends) != 0)
        return 2;
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, makes_calls, NULL);
    for (int i = 0; i < 10 * JUMPS && atomic_load(&jumps) < JUMPS; i++) {
        pthread_kill(thread, SIGUSR1);
        usleep(20);
    }
    atomic_store(&ends, 1);
    pthread_join(thread, NULL);
    printf("%d %d\n", atomic_load(&jumps) > 0, atomic_load(&calls) + atomic_load(&jumps));
    return 0;
}
END
$CC -O1 -pthread calls.c -o calls
rm -f log
within 30 "$SUBUTAI" run --engine det --verbose 2 --log log -- ./calls
returns=$(sed -n 's/.*operations, \([0-9]*\) returns from outside.*/\1/p' log)
check "jumps out of calls outside: the thread is in the order again" is \
    "$status ${out% *} $((${returns:-1000000} < ${out#* } + 10000))" '0 1 1'

# The thread that has left its wait gets the turn, and sleeps in a read of stdio's until the other has had the turn.
cat >reads.c <<'END'
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>
static sigjmp_buf way_out;
static sem_t sem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static void jump(int signal) {
    (void)signal;
    siglongjmp(way_out, 1);
}
static void *writes(void *unused) {
    poll(NULL, 0, 200);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    if (write(ends[1], "r", 1) != 1)
        return NULL;
    return unused;
}
int main(void) {
    struct sigaction action = {.sa_handler = jump};
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    pthread_t thread;
    sigset_t alarm;
    if (pipe(ends) != 0)
        return 2;
    FILE *file = fdopen(ends[0], "r");
    sem_init(&sem, 0, 0);
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_create(&thread, NULL, writes, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    if (sigsetjmp(way_out, 1) == 0) {
        setitimer(ITIMER_REAL, &soon, NULL);
        sem_wait(&sem);
        return 1;
    }
    putchar(getc(file));
    pthread_join(thread, NULL);
    return 0;
}
END
$CC -O1 -pthread reads.c -o reads
within 20 "$SUBUTAI" run --engine det --log log -- ./reads
check "a thread that has left a wait, and sleeps in the kernel, keeps no other waiting" is "$status $out" '0 r'

# types WAIT: the main thread, which can be cancelled asynchronously, leaves that wait. Where it waits for the turn, another
# thread has that and computes.
cat >types.c <<'END'
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
static sigjmp_buf way_out;
static sem_t sem;
static pthread_barrier_t barrier;
static int ends[2];
static volatile sig_atomic_t has_jumped;
static void jump(int signal) {
    (void)signal;
    siglongjmp(way_out, 1);
}
static void *computes(void *unused) {
    while (!has_jumped)
        ;
    return unused;
}
static void wait_for(const char *what) {
    char byte;
    if (strcmp(what, "read") == 0)
        while (read(ends[0], &byte, 1) != 1)
            ;
    else if (strcmp(what, "sem_wait") == 0)
        sem_wait(&sem);
    else if (strcmp(what, "turn") == 0)
        for (;;)
            sem_post(&sem);
    else if (strcmp(what, "turn-for-poll") == 0)
        while (poll(NULL, 0, 1) == 0)
            ;
    else /* barrier, and turn-for-barrier, which is an offer */
        pthread_barrier_wait(&barrier);
}
int main(int n, char **words) {
    struct sigaction action = {.sa_handler = jump};
    struct itimerval soon = {.it_value = {.tv_usec = 30000}};
    const int has_thread = n > 1 && strncmp(words[1], "turn", 4) == 0;
    sigset_t alarm;
    pthread_t thread;
    int type, before;
    sem_init(&sem, 0, 0);
    pthread_barrier_init(&barrier, NULL, 100);
    if (pipe(ends) != 0)
        return 2;
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    if (has_thread) {
        pthread_create(&thread, NULL, computes, NULL);
        sched_yield(); /* the other thread begins, and has the turn next */
    }
    if (sigsetjmp(way_out, 0) == 0) {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
        pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
        setitimer(ITIMER_REAL, &soon, NULL);
        wait_for(words[1]);
        return 1;
    }
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    has_jumped = 1;
    if (has_thread)
        pthread_join(thread, NULL);
    puts(type == PTHREAD_CANCEL_ASYNCHRONOUS ? "asynchronous" : "deferred");
    return 0;
}
END
$CC -O1 -pthread types.c -o types
for what in read sem_wait barrier turn turn-for-poll turn-for-barrier; do
    for wait in adaptive switch; do
        within 20 "$SUBUTAI" run --engine det --wait $wait --log log -- ./types $what
        echo "$status $out"
    done >ends
    out=$(cat ends)
    check "$what is left by a jump: the type of cancellation is what it was" is "$(sort -u ends)" '0 asynchronous'
done
finish
