#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det: the same with each kind of object, with many threads, beside other work, and however a thread waits.
. "$(dirname "$0")/det_lib.sh"

runs 100 -- all
check "every kind of object: one schedule and one output in 100 runs" one_inside
all=$out
runs 20 taskset -c "$(allowed_cpu)" -- all
check "the same on one CPU" is "$out" "$all"
runs 10 -- many
check "2000 threads: one schedule and one output in 10 runs" one_inside
runs 50 -- allocates
check "an allocator that locks inside of pthread_create: one schedule and one output in 50 runs" matches "$out" \
    '^0 1 [0-9a-f]{16} [0-9a-f]{16}, [0-9]+ operations, 0 returns from outside$'
check "no line more" is "$(wc -l <<<"$out")" 1
run "$SUBUTAI" run --engine det --schedule writers.schedule -- "$ORDERED" writers
run "$SUBUTAI" schedule info writers.schedule
turns=$(sed -nE 's/.* ([0-9]+)\.([0-9]{3}) ms of logical time.*/\1\2/p' <<<"$out")
check "an unlock of a read-write lock wakes one of 200 writers: turns do not grow with their square" test "${turns:-9999999}" -lt 3000
within 20 "$SUBUTAI" run --engine det -- "$ORDERED" held-up
check "a reader that waits in a handler keeps no writer from the lock" is "$status $out" "0 done"
within 20 "$SUBUTAI" run --engine det -- "$ORDERED" joins
check "a reader that goes before a writer lets the readers in that wait" is "$status $out" "0 done"
begin_load 2
runs 20 -- all
end_load
check "the same beside two computing processes" is "$out" "$all"

extra=(--schedule timed.schedule --schedule-times 1)
runs 1 -- all
check "the same when each thread makes its operations itself, since their times are wanted" is "$out" "$all"
extra=(--wait switch)
runs 20 -- all
check "the same when passing the turn is a switch" is "$out" "$all"
extra=(--serial)
runs 20 -- all
check "the same when only the thread with the turn computes" is "$out" "$all"
extra=(--serial --wait switch)
runs 20 -- all
check "the same when that is a switch" is "$out" "$all"
finish
