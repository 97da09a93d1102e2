#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det: the same schedule and output in each run, whatever else the machine does; another order by seed.
. "$(dirname "$0")/det_lib.sh"

runs 100 -- counters
check "a race for a mutex: one schedule and one output in 100 runs" one_inside
counters=$out
for what in quits quits-quickly; do
    runs 10 -- "$what"
    check "a process that leaves at once ($what) tells the same" is "$out" "$counters"
done
run "$SUBUTAI" run --engine det --schedule left.schedule -- "$ORDERED" quits
run "$SUBUTAI" schedule info left.schedule
check "and its log has an end" matches "$status $out" "^0 .*${counters:19:16}"
for ((i = 0; i < 10; i++)); do
    rm -f twice.schedule
    run "$SUBUTAI" run --engine det --schedule twice.schedule -- "$ORDERED" leave
    run "$SUBUTAI" schedule info twice.schedule
    echo "$status $(grep -c '; whole$' <<<"$out")"
done | sort -u >twice
check "a thread that leaves without the turn does not keep another from ending the log" is "$(cat twice)" "0 1"
run taskset -c "$(allowed_cpu)" "$SUBUTAI" run --engine det --wait switch --schedule way.schedule --schedule-times 1 -- "$ORDERED" way
run "$SUBUTAI" schedule dump --json way.schedule
check "a fiber that is given the turn goes before what its giver computes" json \
    '[.[] | select(.thread == 2 and .what == "yield") | .waited_ns] | sort | .[length / 2] < 50000'
extra=(--seed 7)
runs 100 -- counters
check "with a seed: one schedule and one output in 100 runs" one_inside
check "with a seed: another one than without" test "$out" != "$counters"
seeded=$out
extra=(--engine 'det:seed=7,stall=wait')
runs 1 -- counters
check "the same when the seed is the engine's setting" is "$out" "$seeded"
for ((seed = 1; seed <= 50; seed++)); do
    run "$SUBUTAI" run --engine det --seed "$seed" -- "$ORDERED" counters
    echo "$out"
done | sort -u >outputs
out=$(wc -l <outputs)
check "50 seeds: at least 20 outputs" test "$out" -ge 20
finish
