#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The schedule log of the engine det, and what `subutai schedule` says of it.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034 # read by check
status=0 out='' err=''

log_of() { # log_of FILE [OPTION...] -- WHAT
    local file=$1 options=()
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    run "$SUBUTAI" run --engine det --schedule "$file" "${options[@]}" -- "$ORDERED" "$2"
}

log_of all.sched -- all
check "a run with a schedule log" is "$status" 0
expected=$("$SUBUTAI" run --engine det --verbose 2 --log said -- "$ORDERED" all >/dev/null && sed -n 's/.*schedule //p' said)
subutai schedule info --json all.sched
check "info: whole, with the hash and the counts that the engine says" json \
    '.[0] | .whole and .outside == 0 and "\(.hash), \(.operations) operations, \(.outside) returns from outside" == "'"$expected"'"'
check "every operation is counted under its name" json '.[0] | .operations == ([.by_operation[]] | add)'
subutai schedule info all.sched
check "info as text says the same" matches "$out" "schedule $expected"
log_of exits.sched -- exits
check "threads that end by pthread_exit, with a log" is "$status" 0
expected=$("$SUBUTAI" run --engine det --verbose 2 --log told -- "$ORDERED" exits >/dev/null && sed -n 's/.*schedule //p' told)
subutai schedule info exits.sched
check "the log changes no schedule, also where stacks are unwound" matches "$out" "schedule $expected"
subutai schedule info all.sched
check "returns from outside are always said" matches "$out" ' 0 returns from outside'
bytes=$(stat -c %s all.sched) operations=$(sed -n 's/.*, \([0-9]*\) operations.*/\1/p' <<<"$out")
check "at most 10 bytes an operation" test "$bytes" -le $((10 * operations))

subutai schedule dump --json all.sched
events=$(wc -l <<<"$out")
check "dump --json: as many operations as info says" is "$(grep -c '"kind":"operation"' <<<"$out")" "$operations"
check "all operations but a thread's begin and end have a call site" json \
    'map(select(.kind == "operation" and .site == null) | .what) - ["thread_begin", "thread_end"] | length == 0'
check "call sites are the program's" json 'map(select(.what == "mutex_lock") | .place) | all(test("ordered"))'
check "objects are numbered in the order of first use" json 'map(.object | select(. != null)) |
    reduce .[] as $o ({top: 0, well: true}; if $o > .top then {top: $o, well: (.well and $o == .top + 1)} else . end) | .well'
check "a creation names the thread" json 'map(select(.what == "thread_create") | .other) | length > 0 and all(. > 0)'
check "logical time does not go back" json 'map(.time_ns) | . == sort'
all=$out
subutai schedule dump --json --from 5 --to 9 all.sched
check "dump --from --to" is "$out" "$(sed -n 5,9p <<<"$all")"
subutai schedule dump all.sched
check "dump as text has as many lines" is "$(wc -l <<<"$out")" "$events"

log_of again.sched -- all
subutai schedule diff all.sched again.sched
check "two runs: the same schedule" is "$status" 0
check "said so" matches "$out" '^the same schedule: [0-9]+ operations'
log_of seed.sched --seed 7 -- all
subutai schedule diff all.sched seed.sched
check "another seed: another schedule" is "$status" 1
check "the first difference, with both sides" is "$(wc -l <<<"$out")" 3
subutai schedule diff --json all.sched seed.sched
check "diff --json" json '.[0] | .same == false and .a.thread != null and .b.thread != null and .a.number == .common + 1'
n=$(jq .common <<<"$out")
for file in all seed; do
    "$SUBUTAI" schedule dump --to "$n" "$file.sched" >"$file.head"
done
check "what is before it is the same in both" cmp -s all.head seed.head

# The variable, the name of an old log, other files.
SUBUTAI_ENGINE=det SUBUTAI_SCHEDULE=variable.sched run "$SUBUTAI" run -- "$ORDERED" counters
subutai schedule info variable.sched
check "by the variable" is "$status" 0
log_of all.sched -- counters
subutai schedule diff all.sched variable.sched
check "an old log is replaced" is "$status" 0
echo precious >notes
refuses "run: schedule log 'notes': the file is something else" run --engine det --schedule notes -- true
check "and nothing else" is "$(cat notes)" precious
run "$SUBUTAI" run --engine direct --schedule none.sched -- "$ORDERED" counters
check "another engine does not read the option" matches "$err" '--schedule does nothing: only the engine det reads it'
check "and writes no log" test ! -e none.sched
run "$SUBUTAI" run --engine det -- "$ORDERED" counters
check "no log unless asked for" is "$(echo *.sched)" 'again.sched all.sched exits.sched seed.sched variable.sched'

# What is outside, and a program that is killed, or forks.
log_of pipe.sched -- pipe
subutai schedule info --json pipe.sched
check "returns from outside are events" json '.[0] | .outside > 0 and .by_return.from_call == .outside'
"$SUBUTAI" run --engine det --log waits --schedule killed.sched -- "$ORDERED" stall &
pid=$!
for ((i = 0; i < 300; i++)); do
    ! grep -q 'keeps the turn' waits 2>/dev/null || break
    sleep 0.1
done
kill -KILL "$pid"
wait "$pid" 2>/dev/null
subutai schedule info --json killed.sched
check "the log of a killed program is read up to the cut" json '.[0] | .whole == false and .operations > 0 and .stalls == 1'
subutai schedule dump killed.sched
check "its last event is the stall" matches "$(tail -1 <<<"$out")" 'thread 0 stall$'
cat >forks.c <<'END'
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
int main(int argc, char **argv) {
    (void)argv;
    if (argc == 1) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
        pthread_mutex_lock(&r);
        pthread_mutex_unlock(&r);
    }
    if (fork() == 0) {
        pthread_mutex_lock(&m);
        return 0;
    }
    wait(NULL);
    return 0;
}
END
$CC -D_GNU_SOURCE -g -pthread forks.c -o forks
run "$SUBUTAI" run --engine det --schedule forks.sched -- ./forks
check "a forked child has a log of its own" is "$(find . -name 'forks.sched.*' | wc -l)" 1
subutai schedule info --json forks.sched.*
check "with what the child does" json '.[0] | .forked and .operations == 1'
subutai schedule dump --json forks.sched
check "a recursive mutex has the call site of the program too" json \
    'map(select(.what | test("^mutex_"))) | length == 4 and all(.place | test("^forks.c:[0-9]+ main"))'
run "$SUBUTAI" run --engine det --schedule starter.sched -- sh -c "$ORDERED counters; :"
subutai schedule diff starter.sched variable.sched
check "a program that only starts another leaves the name to that" is "$status" 0

# Files that are no logs, or damaged.
cp variable.sched good
size=$(stat -c %s good)
: >empty
refuses "schedule: 'empty': the file is empty" schedule info empty
refuses "schedule: 'notes': byte 0: not a schedule log \(legal: what subutai run" schedule info notes
refuses "schedule: '/': no regular file" schedule info /
refuses "schedule: 'nosuch': No such file" schedule info nosuch
head -c 20 good >short
refuses "schedule: 'short': byte 20: the header is cut" schedule info short
{ head -c 8 good && printf '\2' && tail -c +10 good; } >version
refuses "schedule: 'version': byte 8: version 2 is unknown \(legal: 1\)" schedule diff version good
head -c $((size - 3)) good >short
refuses "schedule: 'short': byte [0-9]+: the log is cut in its totals" schedule info short
{ cat good && echo more; } >longer
refuses "schedule: 'longer': byte $size: the log goes on behind its totals" schedule info longer
{ head -c $((size - 40)) good && printf 'x' && tail -c 39 good; } >damaged
refuses "schedule: 'damaged': byte [0-9]+: the hash is [0-9a-f]+, and that of the operations [0-9a-f]+: the log is damaged" \
    schedule info damaged
{ head -c 40 good && printf '\170' && tail -c +42 good; } >damaged
subutai schedule dump damaged
check "a damaged token ends with one line" matches "$status $err" "^2 subutai: schedule: .damaged.: byte 40: a token of kind 120 is unknown: the log is damaged\$"
bad=0
for ((i = 40; i < size; i += size / 60 + 1)); do
    { head -c "$i" good && printf '\377' && tail -c +$((i + 2)) good; } >damaged
    timeout 20 "$SUBUTAI" schedule info damaged >/dev/null 2>told
    case $? in 0) ;; 2) [[ $(wc -l <told) == 1 ]] || bad=$i ;; *) bad=$i ;; esac
    head -c "$i" good >damaged
    timeout 20 "$SUBUTAI" schedule info damaged >/dev/null 2>told
    case $? in 0) ;; 2) [[ $(wc -l <told) == 1 ]] || bad=$i ;; *) bad=$i ;; esac
done
check "damaged or cut anywhere: an answer or one line" is "$bad" 0
refuses "schedule: nothing to do given \(legal: info FILE, dump FILE, diff A B\)" schedule
refuses "schedule: unknown action 'show' \(legal: info, dump, diff\)" schedule show good
refuses "schedule: diff: no file given" schedule diff good
refuses "schedule: unexpected argument 'good'" schedule info good good
refuses "schedule: --from and --to choose nothing for info" schedule info --from 3 good
refuses "schedule: --from: '0' is not a legal value" schedule dump --from 0 good

# No room: the program goes on.
run bash -c "ulimit -f 64; exec '$SUBUTAI' run --engine det --schedule small.sched -- '$ORDERED' counters"
check "a file that may not grow ends the log, not the program" is "$status" 0
check "and one line says so" matches "$err" 'the schedule log ends, the program goes on: .*small.sched.: File too large'
finish
