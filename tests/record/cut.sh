#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Waits for the outside, where the recorder may not look or does not come to the end of what it does.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}"

record() {
    rm -f ./*.sbt
    subutai record -o t.sbt -- "$SUBJECT" "$1"
    said=$out
}
possible() {
    local reason
    reason=$("$CHECK" "$@") || { echo "# ${reason//$'\n'/$'\n# '}" && false; }
}
# has FILTER: of the events, of which $waits are those outside
has() {
    local -
    subutai trace dump --json t.sbt
    json "[.[] | select(.op == \"outside_wait\")] as \$waits | $1"
}

record filtered
check "getrusage is forbidden from some time on: exit 0, of a child too" is "$status $err" "0 "
check "waits until then" has '$waits | length == 3'
check "and all other events" possible t.sbt mutex_lock=6
record refused
check "a filter that the kernel refuses: exit 0" is "$status" 0
check "waits go on" has '$waits | length == 3'
record strict
check "the strictest mode: exit 0" is "$status" 0
record without-clock
check "the processor's clock is forbidden: exit 0" is "$status" 0
record no-files
if [ "$said" = no ]; then
    skip "a program that forbids itself to open files" "this kernel has no Landlock"
else
    check "a program that forbids itself to open files before its first thread: exit 0" is "$status $said" "0 yes"
    check "its events are there all the same" possible t.sbt mutex_lock=1 thread_create=1 thread_join=1 thread_end=2
    rm -rf profile
    subutai profile -o profile -- "$SUBJECT" no-files
    check "and its profile" is "$status $(ls profile/*.sbt)" "0 profile/cut-subject.sbt"
    for way in no-files no-files-no-input no-files-much; do
        rm -f said t.sched
        subutai run --engine det --verbose 2 --log said --schedule t.sched -- "$SUBJECT" $way
        check "$way: its schedule and the library's lines are there" matches "$status $out $err $(cat said)" '^0 yes  .*schedule [0-9a-f]{16}, '
        subutai schedule info --json t.sched
        check "$way: the schedule is whole, and the one that the line says" json '.[0] |
            .whole and "schedule \(.hash), \(.operations) operations" == "'"$(grep -oE 'schedule [0-9a-f]{16}, [0-9]+ operations' said)"'"'
    done
    check "and that is longer than a window" test "$(stat -c %s t.sched)" -gt $((2 << 18))
    subutai schedule dump --json t.sched
    check "its places are known" json 'map(select(.what == "mutex_lock") | .place) | length == 100000 and all(test("cut-subject"))'
    rm -f t.sched
    subutai run --engine det --schedule t.sched -- "$SUBJECT" no-files-no-room
    check "a schedule for which there is no room: its descriptor is closed" is "$status $out" "0 yes"
    subutai schedule info --json t.sched
    check "and it is not whole" json '.[0].whole == false'
fi
record jumps
check "handlers leave the recorder by siglongjmp: exit 0" is "$status" 0
subutai trace info --json t.sbt
check "hardly an event is lost" json '.[0] | .lost <= 4 and .operations.mutex_lock.count >= 198'
# How many events come while a block is written depends on what else runs on the machine: hardly any are lost in one run of
# five at least, and in each run all are there or are counted.
hardly_lost=no
for _ in 1 2 3 4 5; do
    record interrupts
    subutai trace info --json t.sbt
    json ".[0] | .operations.sem_post.count + .lost == $said" || break
    json ".[0] | .lost <= $said / 10" && hardly_lost=yes && break
done
check "handlers that interrupt the recorder and return: exit 0" is "$status" 0
check "all of their events, or they are counted as lost: they came while a block was written" \
    json ".[0] | .operations.sem_post.count + .lost == $said"
check "and they are hardly any" is "$hardly_lost" yes
check "and none after the last of them" json '.[0].operations.sem_wait.count == 100'
check "and possible" possible t.sbt
record left
check "a call is left by siglongjmp: exit 0" is "$status" 0
check "its wait, and no later one, is at its site" has "(\$waits | length == 1) and \$waits[0].took_ns <= $said"
record vforks
check "children of vfork: exit 0" is "$status" 0
# It sleeps twice, and may wait for the end of a child that has no memory any more.
check "they are not recorded, and their parent's waits are its own" has "(\$waits | map(.took_ns) | add) <= $said and
    ([\$waits[] | select(.took_ns > 1e6)] | length) as \$n | \$n >= 2 and \$n <= 4"
check "nor are their events" possible t.sbt mutex_lock=4 mutex_unlock=4 thread_end=1
record disarmed
check "handlers on another stack, above what they interrupt: exit 0" is "$status" 0
subutai trace info --json t.sbt
check "the trace can be read" json '.[0] | .operations.mutex_lock.count > 10'
finish
