#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Threads that run when the process ends have lived until then, and have worked and waited until then.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}"

# A thread has done what it does at the end for three quarters of its life at least (running_subject.c). No bound is one of
# time: a thread may be without a processor for as long as the machine likes.
#
# of NAME FILTER: in the report the thread with that routine
of() {
    json "[.[0].threads[] | select(.routine | tostring | contains(\"$1\"))] | length == 1 and (.[0] | $2)"
}
possible() {
    local reason
    reason=$("$CHECK" t.sbt "$@") || { echo "# ${reason//$'\n'/$'\n# '}" && false; }
}
for calls in waits all; do
    for _ in 1 2 3; do # it may have had less than an eighth of a processor: libsubutai/observe/running.c
        rm -f t.sbt
        subutai record -o t.sbt --record-calls "$calls" -- "$SUBJECT"
        ended=$status
        subutai report --json t.sbt
        ! of jumps '.cpu_ns > 190e6' >/dev/null || break
    done
    check "calls that are events: $calls: exit 0" is "$ended" 0
    check "the thread that computes lived until the end" of computes '.life_ns > 200e6'
    check "and worked until then" of computes '.cpu_ns > 190e6 and .cpu_ns <= .life_ns'
    check "so it was in sections for little of its life" of computes '.sections.share < 0.3'
    check "the thread in epoll_wait lived until the end" of sleeps '.life_ns > 200e6'
    check "off the processor" of sleeps '.off_cpu_ns > 0.7 * .life_ns and .cpu_ns < 0.3 * .life_ns'
    check "the thread that waits for a condition lived until the end" of waits '.life_ns > 200e6'
    check "in that wait, without the lock" of waits '.waiting.cond.ns > 0.7 * .life_ns and .off_cpu_ns < 0.3 * .life_ns and
        .sections.share < 0.3'
    check "the thread with a wait that a handler interrupted, which waited itself, lived until the end, in that wait" of stays \
        '.life_ns > 200e6 and .waiting.sem.ns > 0.7 * .life_ns and .off_cpu_ns < 0.3 * .life_ns'
    check "the thread that left a wait by siglongjmp worked until the end" of jumps '.cpu_ns > 190e6 and
        .waiting.sem.ns < 0.3 * .life_ns'
    check "the work before a wait that was left counts" of worked '.cpu_ns > 45e6'
    # In a profile a thread that has left a wait by siglongjmp, and sleeps since, is taken for one that waits still.
    check "which waits had not ended is said: by which thread, at what and where; no other's is among them" json '.[0] as $r |
        [$r.unended[] | .thread as $thread | .object as $object | .site as $site |
            [($r.threads[] | select(.id == $thread).routine), .kind, ($r.objects[] | select(.id == $object).symbol),
             ($r.sites[] | select(.id == $site).function)] | join(" ")] | sort -
            if $r.trace.profile then ["deeper sem never_posted stays", "worked sem never_posted stays"] else [] end ==
        ["stays sem never_posted stays", "waits cond never waits"]'
    check "since when, in a life that ends with them" json '.[0] as $r | all($r.unended[]; .thread as $thread |
        .since_ns + .ns == ($r.threads[] | select(.id == $thread).end_ns)) and
        $r.summary.unended.ns == ([$r.unended[].ns] | add)'
    check "the object has the wait, which is none of a call that got it" json '.[0].objects[] | select(.symbol == "never") |
        .acquisitions == 1 and .contended == 1 and .wait.ns > 150e6'
    check "the main thread's time is the critical path" json '.[0].critical_path | .ns > 150e6 and .off_cpu_ns > 50e6'
done
check "what a record has of it is possible" possible mutex_lock=1005 thread_end=1
check "epoll_wait is a wait for the outside until the end" of sleeps '.outside_ns > 0.7 * .life_ns'
check "as it is behind a wait that was left" of deeper '.outside_ns > 0.7 * .life_ns'
subutai report t.sbt
check "the text has them in a table" matches "$out" \
    $'Waits that had not ended when the program did.*\nstays#[0-9]+ +sem +never_posted .*\nwaits#[0-9]+ +cond +never '
finish
