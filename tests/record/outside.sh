#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Waits for the outside: each is an event, with the time for which the thread slept, and nothing else is.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}"

record() {
    rm -f ./*.sbt
    subutai record -o t.sbt "${options[@]}" -- "$SUBJECT" "$1"
    said=$out
}
possible() {
    local reason
    reason=$("$CHECK" "$@") || { echo "# ${reason//$'\n'/$'\n# '}" && false; }
}
# thread_has FILTER: of the events of the thread that waits
thread_has() {
    local -
    subutai trace dump --json --thread 1 t.sbt
    json "[.[] | select(.op == \"outside_wait\")] as \$waits | (\$waits | map(.took_ns) | add) as \$ns | map(.op) as \$ops | $1"
}
# N waits of at least 20 ms, which are within what the program's own clock says. A wait is shorter by the call's own time
# on the core, and may begin a moment later than the sleep.
each_waits() {
    thread_has "(\$waits | length) == $1 and all(\$waits[]; .took_ns > 19e6) and \$ns <= $said"
}

for engine in glibc direct; do
    options=(--engine "$engine")
    record sleeps
    check "$engine: exit 0" matches "$status $said" '^0 [0-9]+$'
    check "each way to sleep is a wait" each_waits 8
    check "and possible" possible t.sbt
    record queues
    check "$engine: exit 0" matches "$status $said" '^0 [0-9]+$'
    check "each wait at a queue or a semaphore that processes share is one" each_waits 5
    record calls
    check "$engine: exit 0" matches "$status $said" '^0 [0-9]+$'
    check "each call that waited is one" each_waits 6
done
options=()
check "each at its call" thread_has '$waits | map(.place) | unique | length == 6'
subutai trace info t.sbt
check "the summary has their share" matches "$out" 'waiting outside: [0-9.]+ % of the threads'
waited=$("$SUBUTAI" trace info --json t.sbt | jq .outside_ns)
for machine in paper host; do
    subutai predict --machine "$machine" --json t.sbt
    check "$machine: its threads sleep as long" json "all(.[0].runs[]; .outside_ns == $waited and .makespan_ns > 120e6)"
    with=$(jq -s '[.[0].runs[].makespan_ns] | min' <<<"$out")
    subutai predict --machine "$machine" --without outside --json t.sbt
    check "$machine: without, they do not" json "all(.[0].runs[]; .outside_ns == 0 and .makespan_ns < $with - 100e6 and
        .critical_path_ns <= .makespan_ns)"
    check "and nothing is said" is "$err" ""
done
subutai report --json t.sbt
check "a report has them as a part of the time off the CPU" json '.[0].summary | .outside_ns > 110e6 and .off_cpu_ns >= .outside_ns'
subutai trace to-perfetto --json t.sbt
check "a viewer shows them" json '[.[0].traceEvents[] | select(.cat == "outside" and .name == "outside_wait")] | length >= 6'
record at-once
check "calls that return at once: exit 0" is "$status" 0
check "are no waits, also if another thread has the core in them" thread_has '$waits == []'
check "and their time is work" thread_has "[.[] | select(.op == \"mutex_lock\").work_ns] | .[1] / $said | . > 0.95 and . < 1.2"
record interrupted
check "EINTR: exit 0" matches "$status $said" '^0 [0-9]+$'
check "one wait, until the handler" each_waits 1
record restarted
check "handlers with events: exit 0" matches "$status $said" '^0 [0-9]+$'
check "the wait is cut by each" each_waits 4
check "in the order of time" thread_has '$ops | map(select(. == "outside_wait" or . == "sem_post")) |
    . == ["outside_wait", "sem_post", "outside_wait", "sem_post", "outside_wait", "sem_post", "outside_wait"]'
record nested
check "a handler that waits itself: exit 0" matches "$status $said" '^0 [0-9]+$'
check "the wait before, its own, and the rest, which another handler cuts" each_waits 4
record cancelled
check "cancelled in the call: exit 0" is "$status" 0
check "a wait, and then the clean-ups" thread_has '($ns > 19e6) and
    $ops == ["outside_wait", "mutex_lock", "mutex_unlock", "thread_end"]'
record jumped
check "left by siglongjmp: exit 0" is "$status" 0
check "a wait all the same" thread_has '($ns > 19e6) and $ops == ["outside_wait", "mutex_lock", "mutex_unlock", "thread_end"]'
record forked
check "a child: exit 0" matches "$status $said" '^0 [0-9]+$'
check "its parent waits" each_waits 1
check "the child's trace has what is behind its first event" possible t.*.sbt outside_wait=1
record forked-within
check "forked by a handler in the call: exit 0" is "$status" 0
check "the parent's waits" thread_has '($waits | length) >= 1 and $ns > 19e6'
check "the child's trace" possible t.*.sbt
record exit
check "exit while a thread is in a call: its status" is "$status" 7
check "the trace is whole" possible t.sbt
check "the call is the thread's end, not an event" \
    thread_has '$ops == ["mutex_lock", "mutex_unlock", "thread_end"] and (.[2] | .size == 27 and .took_ns > 0)'
record killed
check "killed while a thread is in a call" is "$status" 137
subutai trace info --json t.sbt
check "what was written can be read" json '.[0] | (.whole | not) and .events > 4000 and .operations.thread_end.count == 2'
subutai predict t.sbt
check "and predicted from" is "$status" 0
finish
