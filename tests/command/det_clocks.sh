#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det: what clocks show, waits by them, looks at the outside, and handlers in a wait.
. "$(dirname "$0")/det_lib.sh"

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
run env LD_PRELOAD="$SET_CLOCK" "$SUBUTAI" run --engine det -- "$ORDERED" set-back
check "a time of day that is set back is shown" is "$status $out" "0 done"
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" steps
check "no time is shown for more than 0.2 ms of CPU time" is "$status $out" "0 0 times the same"
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" stamps
check "the monotonic clock does not go back between threads" is "$status $out" "0 0 before"
within 60 "$SUBUTAI" run --engine det -- "$ORDERED" filtered
check "clocks go on under a filter of system calls" matches "$status $out" "^0 (done|no filters here)$"
finish
