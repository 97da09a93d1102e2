#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# `subutai check`: runs of an order are the same, or why not; which orders make a program fail; bugs that are there.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034 # read by check
status=0 out='' err=''

subutai check --runs 100 -- "$ORDERED" counters
check "a race for a lock: 100 runs of one order are the same" is "$status" 0
check "said with the hash and the counts" matches "$out" 'schedule [0-9a-f]{16}, [0-9]+ operations, 0 returns from outside'
subutai check --runs 20 --seed 7 --json -- "$ORDERED" counters
check "the same with a seed" json '.[0] | .orders == 1 and .runs == 20 and .schedules == 1 and .outputs == 1 and
    .failing == 0 and .by_order[0].seed == 7 and .by_order[0].verdict == "same" and .repeat == null'
subutai check --seeds 50 --json -- "$ORDERED" counters
check "50 seeds: at least 20 outputs" json '.[0] | .orders == 51 and .outputs >= 20 and .failing == 0'
check "what is different is counted once" json '.[0] | .schedules == ([.by_order[].schedule] | unique | length) and
    .outputs == ([.by_order[].output] | unique | length)'
check "other orders are no failure" is "$status" 0
SUBUTAI_SEED=7 subutai check --runs 1 --json -- "$ORDERED" counters
check "the seed by the variable" json '.[0].by_order[0].seed == 7'

cat >differs.c <<'END'
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void twice(void) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}
static long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
static void compute(int ms) {
    for (long end = now_us() + ms * 1000; now_us() < end;)
        ;
}
static void *goes_on(void *ms) {
    for (;;) {
        compute(*(int *)ms);
        sched_yield();
    }
}
static void *locks(void *unused) {
    twice();
    return unused;
}
/* Another thread waits for the turn for as long. By the processor's time: without it, it would be no stall. */
static void stall(int ms) {
    pthread_t thread;
    pthread_create(&thread, NULL, locks, NULL);
    const clock_t end = clock() + (clock_t)ms * (CLOCKS_PER_SEC / 1000);
    while (clock() < end)
        ;
    pthread_join(thread, NULL);
}
/* The runs count themselves from 1 on. */
static int number(void) {
    FILE *file = fopen("number", "a+");
    fputc('x', file);
    int n = (int)ftell(file);
    fclose(file);
    return n;
}
static void children(int n) {
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            twice();
            _exit(0);
        }
    while (wait(NULL) > 0 || errno == EINTR)
        ;
}
/* Main ends while others go on, which are late now and then. */
static void leave_thread(void) {
    static int late;
    pthread_t thread;
    late = now_us() % 2 * 60;
    pthread_create(&thread, NULL, goes_on, &late);
    twice();
    compute(20);
}
int main(int argc, char **argv) {
    twice();
    if (argc > 1 && strcmp(argv[1], "leaves") == 0)
        leave_thread();
    if (argc > 1 && strcmp(argv[1], "output") == 0)
        printf("%d\n", (int)getpid());
    if (argc > 1 && strcmp(argv[1], "schedule") == 0)
        for (int i = getpid() % 5; i >= 0; i--)
            twice();
    if (argc > 1 && strcmp(argv[1], "fails") == 0)
        return 3;
    if (argc > 1 && strcmp(argv[1], "hangs") == 0)
        pthread_mutex_lock(&m), pthread_mutex_lock(&m);
    if (argc > 1 && strcmp(argv[1], "many") == 0)
        for (int i = 0; i < 50000; i++)
            twice();
    if (argc > 1 && strcmp(argv[1], "both") == 0)
        switch (number()) {
        case 2:
            twice();
            break;
        case 3:
            puts("another");
        }
    if (argc > 1 && strcmp(argv[1], "stalls") == 0)
        stall(number() == 1 ? 900 : 0);
    if (argc > 1 && strcmp(argv[1], "forks") == 0)
        children(3);
    if (argc > 1 && strcmp(argv[1], "exec") == 0)
        execl(argv[0], argv[0], number() == 2 ? "once" : "none", (char *)NULL);
    if (argc > 1 && strcmp(argv[1], "once") == 0)
        twice();
    if (argc > 1 && strcmp(argv[1], "waits") == 0)
        pause();
    if (argc > 1 && strcmp(argv[1], "prints") == 0)
        for (printf("%d\n", (int)getpid()), fflush(stdout);;)
            pause();
    if (argc > 1 && strcmp(argv[1], "goes") == 0)
        switch (number()) {
        case 1:
            break;
        case 2:
            execlp("sleep", "sleep", SLEEPS, (char *)NULL);
        case 3:
            unlink(argv[0]);
        }
    return 0;
}
END
sleeps=300.$$ # no other test's
$CC -g -pthread -DSLEEPS="\"$sleeps\"" differs.c -o differs
subutai check --runs 5 -- ./differs output
check "the same schedule and another output" is "$status" 1
check "is a data race or another input" matches "$out" 'the same schedule and another output in [0-9] of 5 runs: threads race for data'
check "each of the outputs is counted" matches "$out" '1 order, 5 runs of each: 1 schedule, 5 outputs'
check "where it differs first" matches "${out//$'\n'/ }" '  run 1: stdout, line 1: [0-9]+   run [0-9]: stdout, line 1: [0-9]+ '
printed='echo same; printf "second %s.%s\t|\n" "$0" "$$" >&2' # the shell's id comes last in a line
subutai check --runs 3 --json -- sh -c "./differs; $printed" 'a name'
check "in the other stream, and as JSON" json '.[0].by_order[0].output_difference | .run >= 2 and .in == "stderr" and .line == 1 and
    (.a | test("^second a name\\.[0-9]+\\?\\|$")) and (.b | test("^second a name\\.[0-9]+\\?\\|$")) and .a != .b'
subutai check --runs 2 --json -- sh -c './differs; for i in $(seq 200); do printf x; done; echo $$; echo end'
check "of a long line a part" json '.[0].by_order[0].output_difference | .line == 1 and (.a | test("^x{5,60}[0-9]+$")) and (.a | length) <= 120'
fresh() { rm -f number; }
fresh
subutai check --runs 2 --jobs 1 --json -- sh -c './differs; echo x >>number; [ "$(wc -l <number)" = 1 ] || echo more'
check "a stream that goes on" json '.[0].by_order[0].output_difference | .run == 2 and .in == "stdout" and .line == 1 and .a == "it ends there" and .b == "more"'
fresh
subutai check --runs 2 --jobs 1 -- sh -c './differs; echo x >>number; [ "$(wc -l <number)" = 1 ]'
check "or how it ends" matches "${out//$'\n'/ }" '  run 1: status: exit 0   run 2: status: exit 1 '
fresh
subutai check --runs 2 --jobs 1 --json -- sh -c './differs; echo x >>number; printf "same\n\303\00$(wc -l <number)"'
check "bytes that would look the same" json '.[0].by_order[0].output_difference | .line == 2 and .a == "\\xc3\\x01" and .b == "\\xc3\\x02"'
run bash -c 'ulimit -S -v 200000; exec "$0" "$@"' "$SUBUTAI" check --runs 2 --json -- sh -c 'ulimit -S -v unlimited; ./differs; head -c 150000000 /dev/zero; echo $$'
check "long outputs need no memory of the command" json '.[0].by_order[0].output_difference | .line == 1 and (.a | test("^[?]{50,60}[0-9]+$")) and .a != .b'
subutai check --runs 20 -- ./differs schedule
check "another schedule" is "$status" 1
check "the first difference with its call sites" matches "$out" 'run 1: [0-9]+ [0-9]+ thread 0 (mutex_(un)?lock mutex#1 differs.c:[0-9]+|thread)|the schedule ends there'
check "what may be the cause, where it is neither the outside nor a futex" matches "$out" '  threads race for data .* or the input is another'
subutai check --runs 20 --serial -- ./differs schedule
check "with --serial no threads race" matches "$out" '  the input is another'
subutai check --runs 20 --json -- ./differs schedule
check "the same as JSON" json '.[0] | .other_schedule == 1 and .by_order[0].verdict == "other_schedule" and
    .by_order[0].difference.a != .by_order[0].difference.b'
subutai check --runs 3 --json -- ./differs fails
check "a status that is not 0 is a failure" json '.[0] | .failing == 1 and .by_order[0].outcome == "exit 3" and
    .by_order[0].failed == 3 and (.repeat | test("^subutai run --engine det --seed 0 -- ./differs fails$"))'
subutai check --runs 1 --json --log 'a b' --library "$BUILD_ROOT/libsubutai/libsubutai.so" -- ./differs fails "it's"
command=$(jq -r .repeat <<<"$out")
check "the command that repeats it is one for a shell" is "$(bash -c "subutai() { printf '%s,' \"\$@\"; }; $command")" \
    "run,--engine,det,--seed,0,--library=$BUILD_ROOT/libsubutai/libsubutai.so,--log=a b,--,./differs,fails,it's,"
# What does not end has come to where it hangs when its time is over: how long that takes is the machine's.
# in_time FILTER ARG...: with longer and longer times, until FILTER is true of the report.
in_time() {
    local filter=$1
    shift
    for seconds in 1 4 16 64; do
        subutai check --runs 2 --timeout "$seconds" --json "$@"
        ! jq -es "$filter" <<<"$out" >/dev/null || break
    done
}
in_time '.[0].by_order[0].verdict == "same"' -- ./differs waits
check "a hang is one" json '.[0] | .failing == 1 and .by_order[0].outcome == "timeout" and .by_order[0].verdict == "same" and
    .by_order[0].deadlock == []'
subutai check --runs 20 -- ./differs leaves
check "where the process ends while threads go on is the same" is "$status" 0
subutai check --runs 2 --timeout "$seconds" -- ./differs waits
check "and said as one that is no deadlock" matches "$out" 'seed 0: timeout in 2 of 2 runs: a loop, a wait for the outside, or --timeout is too short'
subutai check --runs 2 --timeout 300 --json -- ./differs hangs
check "a deadlock is named, and not waited for" json '.[0] | .failing == 1 and (.by_order[0] | .failed == 2 and .outcome == "deadlock" and
    .verdict == "same" and (.deadlock | length) == 1 and (.deadlock[0] | .thread == 0 and .waits_in == "mutex_lock" and .object_kind == "mutex" and
    .held_by == 0 and (.place | test("differs.c:[0-9]+ main"))))'
subutai check --runs 2 --timeout 300 -- ./differs hangs
check "with its threads" matches "${out//$'\n'/ }" 'seed 0: deadlock in 2 of 2 runs   thread 0 \(main\) cannot go on: mutex_lock mutex#1 held by thread 0 differs.c:[0-9]+ main '
subutai check --runs 2 --timeout 300 --deadlock abort -- ./differs hangs
check "also if the program ends by it" matches "$out" 'seed 0: deadlock in 2 of 2 runs'
within 280 "$SUBUTAI" check --runs 1 --timeout 300 -- sh -c "'$DEADLOCKS' child"
check "a process that its parent ends is no failure" is "$status" 0
for scene in ended ended_apart; do
    within 280 "$SUBUTAI" check --runs 1 --timeout 300 -- "$SIGNALS" $scene
    check "nor is one that a signal ends: $scene" is "$status" 0
done
in_time '.[0].by_order[0].outcome == "deadlock"' -- sh -c './differs hangs; true'
check "while another process lives the time is waited for" json '.[0].by_order[0] | .outcome == "deadlock" and .failed == 2'
in_time '.[0].by_order[0].verdict == "same"' -- ./differs prints
check "what a run had printed when its time was over is not compared" json '.[0].by_order[0].verdict == "same"'
fresh
subutai check --runs 4 --jobs 1 --json -- ./differs both
check "runs are counted by how they differ" json '.[0] | .other_output == 1 and .other_schedule == 1 and
    (.by_order[0] | .other_output == 1 and .other_schedule == 1 and .verdict == "other_schedule" and
    .difference.run == 2)'
check "and schedules and outputs by how many there were" json '.[0] | .schedules == 2 and .outputs == 2'
fresh
subutai check --runs 4 --jobs 1 -- ./differs both
check "and both ways are said" matches "${out//$'\n'/ }" 'another output in 1 of 4 runs.*another schedule in 1 of 4 runs'
fresh
subutai check --runs 4 --json -- ./differs stalls
check "what the library says is no output" json '.[0].by_order[0] | .verdict == "same" and (.said | test("keeps the turn"))'
subutai check --runs 2 --json -- ./differs fails
check "where it says nothing there is nothing" json '.[0].by_order[0].said == null'

# Programs of several processes.
subutai check --runs 5 --json -- ./differs forks
check "forked children are compared too" json '.[0].by_order[0] | .verdict == "same" and .processes == 4 and .operations > 8'
fresh
subutai check --runs 4 --jobs 1 -- sh -c 'printf x >>number; ./differs; [ "$(wc -c <number)" != 2 ] || ./differs'
check "a further process is another schedule" is "$status" 1
check "named by its number" matches "${out//$'\n'/ }" 'another schedule in 1 of 4 runs; run 2 differs from run 1 after 0 .* run 1: no further process has synchronized .* run 2: process 2 of 2: 1 [0-9]+ thread 0 mutex_lock mutex#1 differs.c:[0-9]+ twice'
fresh
subutai check --runs 4 --jobs 1 -- ./differs exec
check "what a program does behind an exec is compared" is "$status" 1
check "with its place" matches "${out//$'\n'/ }" ' run 1: process 2 of 2: the schedule ends there .* run 2: process 2 of 2: 3 [0-9]+ thread 0 mutex_lock'
subutai check --runs 20 --json -- sh -c "'$ORDERED' counters >/dev/null & '$ORDERED' exits >/dev/null & wait"
check "which of two processes comes first is no difference" json '.[0].by_order[0] | .verdict == "same" and .processes == 2'

# Logs that are not whole are no answer; a refusal ends the runs that are under way.
run bash -c "ulimit -f 64; exec '$SUBUTAI' check --runs 2 -- ./differs"
check "no log can be written: refused" refused_with "check: the schedule log ends, .*File too large \(legal: TMPDIR, a folder with room"
run bash -c "ulimit -f 300; exec '$SUBUTAI' check --runs 2 --verbose 1 -- ./differs many"
check "no whole log can be written: refused" refused_with "check: the log of a run is not whole: its file could not grow \(legal: TMPDIR"
fresh
cp differs goes
mkdir left
TMPDIR=$PWD/left run "$SUBUTAI" check --runs 5 --jobs 2 -- ./goes goes
check "the program is gone after some runs" refused_with "check: './goes' cannot be executed: No such file"
check "no run is left" is "$(pgrep -f "^sleep $sleeps")" ''
check "and no folder" is "$(ls left)" ''
subutai check --runs 2 -- true
check "a program that does not synchronize" matches "$out" 'does not synchronize'

# Twelve known bugs: found among 50 seeds, and each is repeated in one run.
found=0
while read -r bug; do
    for seconds in 4 16 64; do # in which an order that does not fail must end
        subutai check --seeds 50 --jobs 16 --timeout "$seconds" --json -- "$ORDER_BUGS" "$bug"
        failing=$(jq .failing <<<"$out") command=$(jq -r .repeat <<<"$out")
        note "$bug: $failing of 51 orders fail"
        [[ $failing -gt 0 ]] || break
        report=$out
        read -ra words <<<"${command#subutai }"
        SUBUTAI_DEADLOCK=abort run timeout "$seconds" "$SUBUTAI" "${words[@]}"
        ((status == 0)) || break
    done
    [[ $failing -gt 0 ]] || continue
    found=$((found + 1))
    check "$bug fails again in one run: $command" test "$status" -ne 0
    case $bug in lost_wakeup | inverted_locks | signal_for_broadcast | own_barrier)
        out=$report
        check "$bug is a deadlock" json '.[0] | [.by_order[] | select(.failed > 0)] | any(.outcome == "deadlock" and (.deadlock | length) >= 2)' ;;
    esac
done < <("$ORDER_BUGS")
check "at least ten of the twelve are found" test "$found" -ge 10

# Interrupted, nothing is left: no process, and no folder.
mkdir logs
TMPDIR=$PWD/logs "$SUBUTAI" check --runs 5 --timeout 300 -- ./differs waits >/dev/null 2>told &
pid=$!
comes eval "compgen -G 'logs/*/*' >/dev/null"
children=$(pgrep -P "$pid")
kill -INT "$pid"
wait "$pid"
status=$? out=$(ls logs) err=$(cat told)
check "interrupted: it ends by that signal" is "$status" 130
check "no folder is left" is "$out" ""
# shellcheck disable=SC2086 # a list of numbers
check "there were runs under way, and none is left" test -n "$children" -a -z "$(ps -o pid= -p ${children//$'\n'/,})"

refuses 'check: no program given' check --runs 3
refuses "check: --runs: '0' is not a legal value \(legal: 1 to 100000\)" check --runs 0 -- true
refuses "check: --seeds: 'x' is not" check --seeds x -- true
refuses "check: --jobs: '0' is not" check --jobs 0 -- true
refuses "check: --timeout: '0' is not a legal value \(legal: seconds above 0" check --timeout 0 -- true
refuses 'check: --engine direct keeps no order \(legal: det\)' check --engine direct -- true
refuses 'check: --schedule chooses nothing here' check --schedule x -- true
refuses 'check: --seed chooses nothing beside --seeds' check --seed 3 --seeds 4 -- true
if $CC -static -g -pthread differs.c -o static 2>/dev/null; then
    refuses "check: './static' cannot be served: statically linked" check ./static
fi
refuses "check: program 'no-such-program': not found" check no-such-program
finish
