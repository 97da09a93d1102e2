#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Threads that could run and had no core are told from those that slept (cores.c), by the kernel's count.
. "$(dirname "$0")/../command/lib.sh"
: "${CORES:?}"

read -r used _ <"/proc/$$/schedstat" 2>/dev/null
if ((${used:-0} == 0)); then
    skip "threads without a core" "this kernel does not count how long they wait"
    finish
fi
for calls in all waits; do
    subutai record -o t.sbt --engine glibc --record-calls $calls -- "$CORES"
    check "$calls: the program ends well" is "$status" 0
    subutai report --json t.sbt
    check "$calls: those that computed had no core" json '.[0].threads | map(select(.routine == "computes")) |
        length == 4 and all(.off_cpu_ns > 10e6 and .no_core_ns > 0.8 * .off_cpu_ns and .queued_ns >= .no_core_ns)'
    check "$calls: the one that slept was asleep" json '.[0].threads[] | select(.routine == "sleeps") |
        .off_cpu_ns - .no_core_ns > 54e6'
    check "$calls: the sums are the threads'" json '.[0] | .summary.no_core_ns == ([.threads[].no_core_ns // 0] | add) and
        .summary.queued_ns == ([.threads[].queued_ns // 0] | add)'
    subutai report t.sbt
    check "$calls: in the text" matches "$(tr -s ' \n' ' ' <<<"$out")" '- no core [0-9.]+ ms .*Waiting for a core, in calls too: [0-9.]+ ms'
    check "$calls: the advice says that there was no core" matches "$(tr -s ' \n' ' ' <<<"$out")" \
        '\[off-cpu\] .*it could have run and had no core'
    subutai record -o killed.sbt --engine glibc --record-calls $calls -- "$CORES" kill
    subutai report killed.sbt
    check "$calls, killed: the threads that had ended are known" matches "$(tr -s ' \n' ' ' <<<"$out")" \
        'Waiting for a core, in calls too: [0-9.]+ ms, [0-9.]+ % of the time; short-lived and killed threads are not counted'
    subutai trace info t.sbt
    check "$calls: the trace is whole" is "$status $err" "0 "
    for before in exec fork; do
        rm -f ./*.sbt
        subutai record -o t.sbt --engine glibc --record-calls $calls -- "$CORES" $before
        traces=(t*.sbt) # t.PID.sbt is before t.sbt
        subutai report --json "${traces[0]}"
        check "$calls: what the first thread waited for a core before its record ($before) is not in it" json '.[0].threads[0] |
            .off_cpu_ns > 54e6 and .queued_ns < 0.8 * .off_cpu_ns and .queued_ns < .life_ns'
    done
done
finish
