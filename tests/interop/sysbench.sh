#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# sysbench threads and mutex: its report must account for every event. (Its Lua threads run on ck spin locks, its
# tests on pthread mutexes, its start on a barrier of mutex and condition.)
. "$(dirname "$0")/lib.sh"
need sysbench

# Events and the per-thread average of the report, which are determined by the arguments; times are not looked at.
report() {
    sed -n -e 's/^ *total number of events: */events /p' -e 's/^ *events (avg\/stddev): *\([0-9.]*\).*/average \1/p' \
        "$variant.out" >"$variant.$1"
}

benches() {
    check_run "mutex: 16 threads, 8 mutexes" 60 sysbench mutex --threads=16 --mutex-num=8 --mutex-locks=2000 \
        --mutex-loops=50 run
    report mutex
    check "mutex: 16 events, one for each thread" grep -qx 'average 1.0000' "$variant.mutex"
    same "mutex: events as in the oracle" mutex
    for threads in 4 64; do
        check_run "threads: $threads threads, 8 locks" 60 sysbench threads --threads="$threads" --thread-locks=8 \
            --thread-yields=10 --events=2000 --time=0 run
        report "threads.$threads"
        check "threads: 2000 events by $threads threads" grep -qx 'events 2000' "$variant.threads.$threads"
        same "threads: as in the oracle" "threads.$threads"
    done
    check_run "memory: 8 threads" 60 sysbench memory --threads=8 --memory-total-size=64M --memory-block-size=4K run
    check "memory: all of it" grep -q '64.00 MiB transferred' "$variant.out"
}

each_variant benches
finish
