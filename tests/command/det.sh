#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det: the same schedule and output in each run, whatever else the machine does; another order by seed; calls
# that wait for the outside, and stalls.
. "$(dirname "$0")/lib.sh"

# runs N WRAPPER... -- WHAT: N runs; $out has the distinct lines "OUTPUT SCHEDULE".
runs() {
    local n=$1 wrapper=()
    shift
    while [[ $1 != -- ]]; do
        wrapper+=("$1")
        shift
    done
    : >seen
    for ((i = 0; i < n; i++)); do
        rm -f log
        run "${wrapper[@]}" "$SUBUTAI" run --engine det --verbose 2 --log log "${extra[@]}" -- "$ORDERED" "$2"
        echo "$status $out $(sed -n 's/.*schedule //p' log)" >>seen
    done
    out=$(sort -u seen)
}
extra=()
one_inside() {
    is "$(wc -l <<<"$out")" 1 && matches "$out" '^0 [0-9a-f]{16} [0-9a-f]{16}, [0-9]+ operations, 0 returns from outside$'
}

runs 100 -- counters
check "a race for a mutex: one schedule and one output in 100 runs" one_inside
counters=$out
runs 100 -- all
check "every kind of object: one schedule and one output in 100 runs" one_inside
all=$out
runs 20 taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" -- all
check "the same on one CPU" is "$out" "$all"
computing=()
for _ in 1 2; do
    timeout 60 sh -c 'while :; do :; done' &
    computing+=($!)
done
runs 20 -- all
kill "${computing[@]}"
check "the same beside two computing processes" is "$out" "$all"

extra=(--wait switch)
runs 20 -- all
check "the same when passing the turn is a switch" is "$out" "$all"
extra=(--seed 7)
runs 100 -- counters
check "with a seed: one schedule and one output in 100 runs" one_inside
check "with a seed: another one than without" test "$out" != "$counters"
for ((seed = 1; seed <= 50; seed++)); do
    run "$SUBUTAI" run --engine det --seed "$seed" -- "$ORDERED" counters
    echo "$out"
done | sort -u >outputs
out=$(wc -l <outputs)
check "50 seeds: at least 20 outputs" test "$out" -ge 20
extra=()

run "$SUBUTAI" run --engine det --verbose 2 --log log -- "$ORDERED" pipe
check "a thread that reads from a pipe does not keep the others" is "$status $out" "0 done"
run "$SUBUTAI" run --engine det -- "$ORDERED" nap
check "a sleep of no time is over after a few turns" is "$status $out" "0 done"
run "$SUBUTAI" run --engine det --stall release --log told -- "$ORDERED" stall
check "a loop on a plain variable goes on outside" is "$status $out" "0 done"
check "and that is said" matches "$(cat told)" 'thread 0 keeps the turn and makes no operation'
run timeout 2 "$SUBUTAI" run --engine det --log waits -- "$ORDERED" stall
check "without that it is said, and how to go on" matches "$(cat waits)" '\-\-stall release lets them go on'
finish
