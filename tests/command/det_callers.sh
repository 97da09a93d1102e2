#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Hints by call site and its callers: one function takes the lock for all, frames of each kind, chains, which hint counts,
# callers in the schedule log, what `subutai hints` makes of them, and what is refused.
. "$(dirname "$0")/lib.sh"

# Each of 4 threads calls `take` 20 times by `quick`, 20 times by `slow`, and 20 times by `deep`, which calls itself twice.
cat >callers.c <<'END'
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define OWN __attribute__((noinline))
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long order;
static volatile int frame = 16;
OWN __attribute__((unused)) static void take(int number) {
    char *room = alloca((size_t)frame); /* a frame of no fixed size */
    memset(room, number, (size_t)frame);
    pthread_mutex_lock(&mutex);
    order = order * 31 + (unsigned)number + (unsigned char)room[0];
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("" ::"r"(room) : "memory");
}
OWN __attribute__((unused)) static void fixed(int number) {
    pthread_mutex_lock(&mutex);
    order = order * 31 + (unsigned)number;
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("");
}
OWN static void inner(int number) {
#ifdef VARIES
    take(number);
#else
    fixed(number);
#endif
    __asm__ volatile("");
}
OWN static void quick(int number) {
    inner(number);
    __asm__ volatile("");
}
OWN static void slow(int number, long ns) {
    inner(number);
    if (ns != 0)
        syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = ns}, NULL); /* seen by no library */
}
OWN static void deep(int number, int levels) {
    if (levels > 0)
        deep(number, levels - 1);
    else
        inner(number);
    __asm__ volatile("");
}
static long section;
static int meets;
static pthread_barrier_t barrier;
OWN static void gather(void) {
    pthread_barrier_wait(&barrier);
    __asm__ volatile("");
}
OWN static void early(void) {
    gather();
    __asm__ volatile("");
}
OWN static void late(void) {
    gather();
    __asm__ volatile("nop"); /* not the same function */
}
static void *work(void *argument) {
    int number = (int)(long)argument;
    for (int i = 0; i < 20 && meets; i++) {
        early();
        late();
    }
    for (int i = 0; i < 20; i++) {
        quick(number);
        slow(number, section);
        deep(number, 2);
    }
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t thread[4];
    meets = argc > 1 && strcmp(argv[1], "meet") == 0;
    section = argc > 1 && !meets ? 2000000 : 0;
    pthread_barrier_init(&barrier, NULL, 4);
    for (long i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    printf("%lx\n", order);
    return 0;
}
END
# Frames of a fixed size; with a frame pointer; of no fixed size.
declare -A builds=([lean]="-O2" [pointed]="-O2 -fno-omit-frame-pointer" [plain]="-O0" [varied]="-O2 -DVARIES")
for build in "${!builds[@]}"; do
    mkdir -p "$build"
    # shellcheck disable=SC2086 # words
    $CC ${builds[$build]} -fno-optimize-sibling-calls -fno-ipa-cp -pthread callers.c -o "$build/callers" || exit 99
done

# with BUILD HINT...: a run with these hints; $out is its output, its schedule and how many turns were kept.
waits=switch
with() {
    local build=$1
    shift
    printf '%s\n' 'subutai-hints 1' "$@" >some.hints
    rm -f said
    within 30 "$SUBUTAI" run --engine det --wait $waits --verbose 2 --log said --hints some.hints "${options[@]}" -- "$build/callers" "${args[@]}"
    out="$status $out $(sed -n 's/.*: schedule \(.*\) operations.*/\1/p' said), $(sed -n 's/.*order, \([0-9]*\) turns kept/\1/p' said) kept"
}
kept() {
    matches "$out" "^0 [0-9a-f]+ [0-9a-f]+, [0-9]+, $1 kept$"
}
options=() args=()
lock() { # of a build: the function with the lock's calls
    if [[ $1 == varied ]]; then echo "take (callers)"; else echo "fixed (callers)"; fi
}
for build in lean pointed plain varied; do
    site="$(lock $build)<inner (callers)"
    with $build "keep-turn $site<quick (callers)"
    check "$build: a hint for one caller of a caller acts at its calls only" kept 160
    quick=$out
    with $build "keep-turn $site<slow (callers)"
    check "$build: one for the other, at the other's" kept 160
    check "$build: and in another order" test "$out" != "$quick"
    with $build "keep-turn $site<deep (callers)<deep (callers)"
    check "$build: a function that calls itself" kept 160
    with $build "keep-turn $site<deep (callers)<work (callers)"
    check "$build: is not called by another one" kept 0
    with $build "keep-turn $site 1000"
    check "$build: without the outer callers, for each of them" kept 480
    with $build "keep-turn $(lock $build)" "pcs $(lock $build)<inner (callers)<quick (callers)" "keep-turn $(lock $build)<inner (callers) 1000"
    check "$build: one with more callers goes before one with fewer" matches "$out" ', 320 kept$'
    with $build "keep-turn $site < quick (callers)"
    check "$build: blanks beside a < do nothing" is "$out" "$quick"
done
declare -A seen
for build in lean pointed plain; do
    with $build "keep-turn fixed (callers)<inner (callers)<quick (callers)" "give-up-turn fixed (callers)<inner (callers)<slow (callers) 50 9"
    seen[$out]=1
done
check "frames of each kind: one schedule" is "${#seen[@]}" 1
alone=$out
begin_load 2
for ((i = 0; i < 10; i++)); do
    with lean "keep-turn fixed (callers)<inner (callers)<quick (callers)" "give-up-turn fixed (callers)<inner (callers)<slow (callers) 50 9"
    echo "$out"
done | sort | uniq -c | sed 's/^ *//' >many
end_load
check "one in 10 runs beside two computing processes" is "$(cat many)" "10 $alone"
waits=adaptive
with lean "keep-turn fixed (callers)<inner (callers)<quick (callers)" "give-up-turn fixed (callers)<inner (callers)<slow (callers) 50 9"
check "and when passing the turn is no switch" is "$out" "$alone"

# One function takes the lock in a thread, which this library has begun, and in main: whichever comes first, a call in
# the thread has no caller behind `work`, and one in main has.
cat >ends.c <<'END'
#include <pthread.h>
#define OWN __attribute__((noinline))
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static volatile int x;
OWN static void fixed(void) {
    pthread_mutex_lock(&mutex);
    x++;
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("");
}
OWN static void *work(void *argument) {
    for (int i = 0; i < 10; i++) {
        fixed();
        __asm__ volatile("");
    }
    return argument;
}
OWN static void here(void) {
    work(NULL);
    __asm__ volatile("");
}
OWN static void initialise(void) {
    work(NULL);
    __asm__ volatile("nop");
}
OWN static void direct(void) {
    initialise();
    __asm__ volatile("");
}
int main(int argc, char **argv) {
    pthread_t thread;
    (void)argv;
    if (argc > 1)
        here();
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    if (argc <= 1)
        here();
    pthread_once(&once, initialise); /* called by this library */
    direct();
    return 0;
}
END
for build in lean pointed; do
    # shellcheck disable=SC2086 # words
    $CC ${builds[$build]} -fno-optimize-sibling-calls -fno-ipa-cp -fno-ipa-icf -pthread ends.c -o $build/ends || exit 99
    for first in thread main; do
        for log in no yes; do
            words=()
            [[ $log == no ]] || words+=(--schedule ends.log --schedule-callers 3)
            for chain in 'work (ends)<here' 'work (ends)<initialise (ends)<direct'; do
                printf '%s\n' 'subutai-hints 1' "keep-turn fixed (ends)<$chain (ends) 1000" >some.hints
                rm -f said ends.log
                arguments=()
                [[ $first == thread ]] || arguments=(first)
                within 30 "$SUBUTAI" run --engine det --verbose 2 --log said --hints some.hints "${words[@]}" -- $build/ends "${arguments[@]}"
                check "$build: $chain, the $first first, log: $log" is "$status $(sed -n 's/.*order, \([0-9]*\) turns kept/\1/p' said)" "0 20"
            done
        done
    done
    run "$SUBUTAI" schedule dump ends.log
    check "$build: no caller is in this library" is "$(grep -c libsubutai <<<"$out")" 0
    run "$SUBUTAI" hints --runs 1 --sites 1 -- $build/ends
    check "$build: nor in what hints finds" is "$status $(grep -c libsubutai <<<"$out")" "0 0"
done

# A library is unloaded, and another one lies there, with a smaller frame. Its function begins a fiber's stack, above which
# no page can be read.
cat >plug.c <<'END'
#include <pthread.h>
extern pthread_mutex_t mutex;
void f(void) {
    char room[SIZE];
    __asm__ volatile("" ::"r"(room) : "memory");
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("" ::"r"(room) : "memory");
}
END
cat >unload.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static ucontext_t here, there;
int main(void) {
    void *large = dlopen("./large.so", RTLD_NOW);
    void (*f)(void) = (void (*)(void))dlsym(large, "f");
    f();
    f();
    dlclose(large);
    void (*g)(void) = (void (*)(void))dlsym(dlopen("./small.so", RTLD_NOW), "f");
    char *memory = mmap(NULL, 1 << 17, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, 1 << 16, PROT_READ | PROT_WRITE);
    getcontext(&there);
    there.uc_stack.ss_sp = memory;
    there.uc_stack.ss_size = 1 << 16;
    there.uc_link = &here;
    makecontext(&there, g, 0);
    swapcontext(&here, &there);
    puts(f == g ? "the same place" : "another place");
    return 0;
}
END
{
    $CC -O2 -fPIC -shared -DSIZE=960 plug.c -o large.so && $CC -O2 -fPIC -shared -DSIZE=200 plug.c -o small.so &&
        $CC -O2 -rdynamic -pthread unload.c -o unload
} || exit 99
for _ in 1 2 3; do # where a library lies is the system's choice
    rm -f log
    within 60 "$SUBUTAI" run --engine det --schedule log --schedule-callers 3 -- ./unload
    [[ $status == 0 && $out == "another place" ]] || break
done
check "code that is where other code was" is "$status $out" "0 the same place"

# Then libgcc, up to version 12, takes a mutex to unwind.
cat >registered.c <<'END'
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
extern void __register_frame(void *);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned char table[64] __attribute__((aligned(8)));
static char code[0x100];
__attribute__((noinline)) static void *work(void *argument) {
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}
int main(void) {
    static const unsigned char cie[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 12, 7, 8, 0x90, 1, 0, 0};
    const uint32_t words[] = {0x1c, 28};
    const uintptr_t range[] = {(uintptr_t)code, sizeof code};
    pthread_t thread;
    memcpy(table, cie, sizeof cie);
    memcpy(table + 24, words, sizeof words);
    memcpy(table + 32, range, sizeof range);
    __register_frame(table);
    pthread_create(&thread, NULL, work, NULL);
    work(NULL);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
END
$CC -O2 -pthread registered.c -o registered || exit 99
for words in '--schedule log --schedule-callers 0' '--schedule log --schedule-callers 3' '--hints some.hints'; do
    rm -f log
    printf '%s\n' 'subutai-hints 1' 'keep-turn work (registered)<main (registered)' >some.hints
    # shellcheck disable=SC2086 # words
    within 60 "$SUBUTAI" run --engine det $words -- ./registered
    check "a program with frames of its own, ${words%% *}" is "$status $out" "0 done"
done

# At a barrier, where a thread that waits for the turn offers its operation: its callers are looked for with the turn.
args=(meet)
for waits in switch adaptive; do
    with lean 'weight main (callers) 1'
    free=$out
    with lean 'weight gather (callers)<late (callers) 1'
    check "at a barrier: a hint that does nothing changes no schedule, $waits" is "$out" "$free"
    with lean 'soft-barrier gather (callers)<early (callers) 4'
    check "one for a caller acts, $waits" matches "$(cat said)" ' 80 waits at soft barriers'
done
args=()

# By place in the file, as the log has it.
for n in 0 1 3; do
    rm -f log$n
    run "$SUBUTAI" run --engine det --schedule log$n --schedule-callers $n -- lean/callers
done
schedule_of() {
    "$SUBUTAI" schedule info "$1" | grep ^schedule
}
check "the schedule is the same with callers in the log" is "$(schedule_of log0)" "$(schedule_of log3)"
run "$SUBUTAI" schedule dump log3
check "dump shows them" matches "$out" \
    'mutex_lock mutex#1 fixed\+0x[0-9a-f]+ \(callers\)<inner\+0x[0-9a-f]+ \(callers\)<quick\+0x[0-9a-f]+ \(callers\)<work\+0x[0-9a-f]+ \(callers\)'
check "and those of a function that calls itself" matches "$out" '<inner[^<]*<deep[^<]*<deep'
copied=$(grep -o 'fixed.*<inner.*<quick[^<]*' <<<"$out" | sort -u | sed 's/^/keep-turn /')
mapfile -t lines <<<"$copied"
waits=switch
with lean "${lines[@]}"
check "they are call sites of a hint file" kept 160
run "$SUBUTAI" schedule dump log1
check "as many as were asked for" test "$(grep -c 'fixed.*<inner[^<]*$' <<<"$out")" -eq 480
run "$SUBUTAI" schedule dump --json log3
check "the same as JSON" json \
    '[.[] | select(.callers) | .callers | select(length == 3 and (.[1].place | startswith("quick")) and (.[1].site | contains("callers+0x")))] | length == 160'
run "$SUBUTAI" schedule diff log1 log3
check "diff does not compare them" is "$status" 0
run "$SUBUTAI" schedule dump log0
check "none were asked for" test "$(grep -c '<' <<<"$out")" -eq 0

# Only `slow` computes: a hint for all calls of `fixed` is not what is wanted.
run "$SUBUTAI" hints -o found.hints --runs 3 --sites 1 -- lean/callers on
check "hints are found" is "$status $err" "0 "
check "for the caller that computes" grep -qE '^(give-up-turn|soft-barrier) callers\+0x[0-9a-f]+<callers\+0x[0-9a-f]+<callers\+0x[0-9a-f]+ ' found.hints
check "as the comment says" grep -qE '^# .*<.*slow.*: 4 threads, ' found.hints
for ((i = 0; i < 5; i++)); do
    run "$SUBUTAI" run --engine det --hints found.hints -- lean/callers on
    echo "$status $out $err"
done | sort -u >found
check "run takes them: one output" is "$(wc -l <found)" 1

refused() {
    printf '%s\n' 'subutai-hints 1' "$2" >bad.hints
    refuses "hints: bad\.hints:2: $1" run --engine det --hints bad.hints -- lean/callers
}
refused "not a call site: 'fixed \(callers\)<' \(legal: MODULE\+0xOFFSET, .*; with up to 3 callers: SITE<CALLER<CALLER\)$" 'pcs fixed (callers)<'
refused "not a call site: '<fixed \(callers\)' " 'pcs <fixed (callers)'
refused "not a call site: 'fixed \(callers\)<<inner" 'pcs fixed (callers)<<inner (callers)'
refused "not a call site: 'fixed \(callers\)<inner' " 'pcs fixed (callers)<inner'
refused "not a call site: '.*with up to 3" 'pcs a+0x1<a+0x1<a+0x1<a+0x1<a+0x1'
refused "caller 'nowhere \(callers\)' is not in the program: '.*lean/callers' has no code there" 'pcs fixed (callers)<nowhere (callers)'
refused "caller 'inner \(other\)' is not in the program \(legal modules: callers, " 'pcs fixed (callers)<inner (other)'
refused "caller 'callers\+0x7fffffff' is not in the program" 'pcs fixed (callers)<inner (callers)<callers+0x7fffffff'
printf '%s\n' 'subutai-hints 1' 'pcs fixed (callers)<inner (callers)' 'pcs fixed (callers)' 'keep-turn fixed (callers)<inner (callers)' >bad.hints
refuses "hints: bad\.hints:4: a second hint for call site 'fixed \(callers\)<inner \(callers\)': line 2 has one" run --engine det --hints bad.hints -- lean/callers
refuses "schedule-callers: value out of range '4' \(legal: 0 to 3\)" run --engine det --schedule log --schedule-callers 4 -- lean/callers
run "$SUBUTAI" run --engine det --schedule-callers 2 -- lean/callers
check "callers without a log are told of" matches "$err" 'schedule-callers.* does nothing: no schedule is written'
finish
