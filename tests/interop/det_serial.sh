#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runtimes that wait by futex(2) under the engine det with --serial: one schedule and one output in each run, alone,
# beside two processes that compute, on one CPU, and when passing the turn is a switch. Natively the same program prints
# something else nearly each time: that is the control.
#
# usage: det_serial.sh PROGRAM [ARG...]   DET_RUNS=N (default 100): so many runs alone
. "$(dirname "$0")/lib.sh"
program=$bin/${1:?"usage: det_serial.sh PROGRAM [ARG...]"}
arguments=("${@:2}")
runs=${DET_RUNS:-100}
unset OMP_NUM_THREADS OMP_WAIT_POLICY GOMP_SPINCOUNT

# det OPTION... : one run; its lines go to `seen`, what it printed and its schedules in one line.
det() {
    rm -f log
    bounded 60 "${wrapper[@]}" "$launcher" run --engine det --verbose 2 --log log "$@" -- "$program" "${arguments[@]}" \
        >output 2>errors || echo "failed: $?" >>output
    sed -n 's/.*: schedule //p' log >ends
    {
        tr '\n' ' ' <output
        sort ends | tr '\n' ' '
        echo
    } >>seen
}

# series TEXT N OPTION... : N runs that are all like the first of all.
wrapper=()
series() {
    local text=$1 n=$2 i
    shift 2
    : >seen
    for ((i = 0; i < n; i++)); do
        det "$@"
    done
    [ -e first ] || head -n 1 seen >first
    sort -u seen >different
    check "$text: one schedule and one output in $n runs" cmp first different
}

# How many different lines the program prints natively: stops at two.
: >native
for ((i = 0; i < 500; i++)); do
    "$program" "${arguments[@]}" | tr '\n' ' ' >>native
    echo >>native
    [ "$(sort -u native | wc -l)" -lt 2 ] || break
done
check "natively the output is not always the same" test "$(sort -u native | wc -l)" -ge 2

series "alone" "$runs" --serial
check "no failure" test "$(grep -c failed first)" = 0
if [ ${#arguments[@]} = 0 ]; then
    check "nothing came from outside, and nothing more has to be said" grep -q ', 0 returns from outside $' first
fi
begin_load 2
series "beside two computing processes" 10 --serial
end_load
wrapper=(taskset -c "$(allowed_cpu)")
series "on one CPU" 10 --serial
wrapper=()
series "when passing the turn is a switch" 10 --serial --wait switch

mv first by-creation
series "with a seed" 20 --serial --seed 5
check "with a seed: another one than without" test "$(cat first)" != "$(cat by-creation)"
: >seen
for ((seed = 1; seed <= 20; seed++)); do
    det --serial --seed "$seed"
done
sort -u seen >different
check "20 seeds: at least 10 schedules" test "$(wc -l <different)" -ge 10

: >seen
det
check "without --serial: what is not the engine's is said" \
    grep -Eq ', [0-9]+ of them on futexes: whether they are made is not the engine.s order' seen
finish
