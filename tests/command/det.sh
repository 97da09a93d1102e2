#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det: the same schedule and output in each run, whatever else the machine does; another order by seed.
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
        echo "$status $out $(sed -n 's/.*[^-]schedule \([0-9a-f]\{16\}\)/\1/p' log)" >>seen
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

# A machine that stands still between two readings, or serves its devices, may count that as the thread's CPU time. Then a
# run has another schedule: at most one of 20 may, in one of three times 20.
by_clocks() { # WHAT
    for _ in 1 2 3; do
        runs 20 -- "$1"
        out=$(sort seen | uniq -c | sort -n | tail -1)
        [[ ! $out =~ ^\ *(19|20)\ 0\  ]] || break
    done
    matches "$out" '^ *(19|20) 0 [0-9a-f]{16} [0-9a-f]{16}, [0-9]+ operations, 0 returns from outside$'
}
check "deadlines that follow from two readings of clocks: one schedule and one output" by_clocks deadlines
check "waits in parts, of what a clock says is left: one schedule and one output" by_clocks parts
for how in "" --serial; do
    extra=(${how:+"$how"})
    check "also where the machine stands still between two readings ($how)" by_clocks left
done
extra=()
runs 20 -- dozes
check "sleeps in ppoll and pselect, and calls that only look, are not outside: one schedule in 20 runs" one_inside
extra=(--serial)
runs 20 -- looks-within
check "serially, loops of looks at what other threads give: one schedule in 20 runs, and nothing outside" one_inside
runs 5 taskset -c "$(allowed_cpu)" -- looks-within
check "the same on one CPU" one_inside
extra=()
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" barrier
check "a thread that a barrier lets go needs no turn for that" is "$status $out" "0 done"
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" served
check "a thread in a handler is served at a barrier, and no other waits for it" is "$status $out" "0 done"
for what in takes leaves; do
    runs 3 -- "$what"
    check "a handler comes before the thread is served ($what): one schedule" matches "$out" \
        '^0 done [0-9a-f]{16}, [0-9]+ operations, 0 returns from outside$'
    check "no line more" is "$(wc -l <<<"$out")" 1
done
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" copies
check "it may fork" is "$status $out" "0 done"
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" copied
check "the child may return from the handler" is "$status $out" "0 done
child done"
within 60 "$SUBUTAI" run --engine det --verbose 2 --log guests -- "$ORDERED" guest
check "if it comes after, its operations are from outside" matches "$status $out $(cat guests)" \
    '^0 done .* [1-9][0-9]* returns from outside'
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" clocks
check "clocks go on while a thread reads them, and agree" is "$status $out" "0 done"
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" steps
check "no time is shown for more than 0.2 ms of CPU time" is "$status $out" "0 0 times the same"
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" stamps
check "the monotonic clock does not go back between threads" is "$status $out" "0 0 before"
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" filtered
check "clocks go on under a filter of system calls" matches "$status $out" "^0 (done|no filters here)$"

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
