#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Profiles of processes that end while a thread is at any instruction of what is counted: each is whole and possible, and
# has the calls that were over by then. The thread's last call may be there or not.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}" "${CHECK:?}"

# ends HOW STRIDE: a trace for each point. Ids of processes come again on a busy machine: the trace has another name then.
ends() {
    local id n trace
    local -A seen=()
    n_traces=0 n_bad=0
    rm -f ./*.sbt
    subutai record -o t.sbt --record-calls waits --engine glibc -- "$SUBJECT" "$1" "$2"
    while read -r id n _; do
        n_traces=$((n_traces + 1))
        trace=t.$id${seen[$id]:+.${seen[$id]}}.sbt
        seen[$id]=$((${seen[$id]:-0} + 1))
        "$CHECK" "$trace" whole "mutex_lock:least=$n" "mutex_lock:most=$((n + 1))" >said 2>&1 && continue
        n_bad=$((n_bad + 1))
        ((n_bad > 5)) || note "point $n_traces: $(<said)"
    done <<<"$out"
    out="$n_traces traces, $n_bad bad"
}

for how in beside handler; do
    ends $how 7
    check "$how: the points are those of all the calls" test "$status$err" = 0 -a "$n_traces" -gt 100
    check "$how: each profile is whole and possible" is "$n_bad" 0
    note "$out"
done

# A handler that is not part of what it interrupts, but for the table of counts that it makes larger.
rm -f ./*.sbt
subutai record -o t.sbt --record-calls waits --engine glibc -- "$SUBJECT" grows 1
check "grows: the points are those of a lock and an unlock" test "$(wc -l <<<"$out")" -gt 100
check "grows: a handler may make the table larger at each of them" is "$status $err" "0 "
note "$(wc -l <<<"$out") points"

# The work before the lock is in the record once: before its event, or in the end of the thread.
rm -f ./*.sbt
subutai record -o t.sbt --engine glibc -- "$SUBJECT" drop 1
n_traces=0 n_bad=0
declare -A seen=()
while read -r id _ ns; do
    n_traces=$((n_traces + 1))
    trace=t.$id${seen[$id]:+.${seen[$id]}}.sbt
    seen[$id]=$((${seen[$id]:-0} + 1))
    worked=$("$SUBUTAI" trace dump --json --thread 1 "$trace" | jq -s '[.[].work_ns // 0] | add') || worked=none
    [[ $worked -ge 9000000 && $worked -le $((ns + 9000000)) ]] && continue # 10 ms of it are before the lock
    n_bad=$((n_bad + 1))
    ((n_bad > 5)) || note "$trace: worked for $worked ns of $ns"
done <<<"$out"
check "drop: the points are those of the call" test "$status$err" = 0 -a "$n_traces" -gt 20
check "drop: what the thread worked is in each record once" is "$n_bad" 0
note "$n_traces traces, $n_bad bad"
finish
