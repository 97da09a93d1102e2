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
check "other orders are no failure" is "$status" 0

cat >differs.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void twice(void) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
}
int main(int argc, char **argv) {
    twice();
    if (argc > 1 && strcmp(argv[1], "output") == 0)
        printf("%d\n", (int)getpid());
    if (argc > 1 && strcmp(argv[1], "schedule") == 0)
        for (int i = getpid() % 5; i >= 0; i--)
            twice();
    if (argc > 1 && strcmp(argv[1], "fails") == 0)
        return 3;
    if (argc > 1 && strcmp(argv[1], "hangs") == 0)
        pthread_mutex_lock(&m), pthread_mutex_lock(&m);
    return 0;
}
END
$CC -g -pthread differs.c -o differs
subutai check --runs 5 -- ./differs output
check "the same schedule and another output" is "$status" 1
check "is a data race or another input" matches "$out" 'the same schedule and another output in [0-9] of 5 runs: threads race for data'
subutai check --runs 20 -- ./differs schedule
check "another schedule" is "$status" 1
check "the first difference with its call sites" matches "$out" 'run 1: [0-9]+ [0-9]+ thread 0 (mutex_(un)?lock mutex#1 differs.c:[0-9]+|thread)|the schedule ends there'
subutai check --runs 20 --json -- ./differs schedule
check "the same as JSON" json '.[0] | .other_schedule == 1 and .by_order[0].verdict == "other_schedule" and
    .by_order[0].difference.a != .by_order[0].difference.b'
subutai check --runs 3 --json -- ./differs fails
check "a status that is not 0 is a failure" json '.[0] | .failing == 1 and .by_order[0].outcome == "exit 3" and
    .by_order[0].failed == 3 and (.repeat | test("^subutai run --engine det --seed 0 -- ./differs fails$"))'
subutai check --runs 2 --timeout 1 --json -- ./differs hangs
check "a hang is one" json '.[0] | .failing == 1 and .by_order[0].outcome == "timeout" and .by_order[0].verdict == "same"'
subutai check --runs 2 -- true
check "a program that does not synchronize" matches "$out" 'does not synchronize'

# Twelve known bugs: found among 50 seeds, and each is repeated in one run.
found=0
while read -r bug; do
    subutai check --seeds 50 --jobs 16 --timeout 4 --json -- "$ORDER_BUGS" "$bug"
    failing=$(jq .failing <<<"$out") command=$(jq -r .repeat <<<"$out")
    note "$bug: $failing of 51 orders fail"
    [[ $failing -gt 0 ]] || continue
    found=$((found + 1))
    read -ra words <<<"${command#subutai }"
    run timeout 4 "$SUBUTAI" "${words[@]}"
    check "$bug fails again in one run: $command" test "$status" -ne 0
done < <("$ORDER_BUGS")
check "at least ten of the twelve are found" test "$found" -ge 10

# Interrupted, nothing is left: no process, and no folder.
mkdir logs
TMPDIR=$PWD/logs "$SUBUTAI" check --runs 5 --timeout 300 -- ./differs hangs >/dev/null 2>told &
pid=$!
for ((i = 0; i < 300; i++)); do
    ! compgen -G 'logs/*/*' >/dev/null || break
    sleep 0.1
done
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
refuses "check: program 'no-such-program': not found" check no-such-program
finish
