#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# There are as many carriers as CPUs that may be used, also when those become more or fewer while the program runs. Of
# servers there are as many as ever, and one worker at least.
. "$SOURCE_ROOT/tests/ni/lib.sh"

IFS=, read -ra cpus < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
    while IFS=- read -r from to; do seq -s, "$from" "${to:-$from}"; done | paste -sd,)
if ((${#cpus[@]} < 2)); then
    echo "1..0 # SKIP there is one CPU"
    exit 0
fi

# has_found N: the library has said that so many CPUs may be used, and no other number since.
has_found() {
    grep 'may be used' "$scratch/err" | tail -n 1 | grep -q ": $1\$"
}

# follows TEXT OPTION... -- N... : N CPUs are given, one number after the other, from the start on; $servers of them
# are servers, and the library says $said at the end.
follows() {
    local text=$1 options=() workers=() n all line pid coprocess
    shift
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    all=$(IFS=,; echo "${cpus[*]:0:$1}")
    for n; do
        workers+=($((n > servers ? n - servers : 1)))
    done
    coproc program { exec timeout "$(stretched 100)" taskset -c "$all" "$SUBUTAI" run "${options[@]}" -- \
        "$SUBJECTS/switch-carriers" "${workers[@]}" 2>"$scratch/err"; }
    coprocess=$! # the shell forgets $program_PID as soon as that has ended
    for n; do
        read -r line <&"${program[0]}"
        check "$text: before $n CPUs" matches "$line" "^next [0-9]+$"
        pid=${line#next }
        taskset -acp "$(IFS=,; echo "${cpus[*]:0:$n}")" "$pid" >/dev/null
        ((servers == 0)) || comes has_found "$n" # the number of workers is the same
        echo go >&"${program[1]}"
    done
    read -r line <&"${program[0]}"
    check "$text: ${n} CPUs, and so many carriers" is "$line" "done"
    wait "$coprocess"
    check "$text: ends" matches "$? $(<"$scratch/err")" "^0 $said\$"
}

servers=0 said=
follows "two CPUs, one, two" --wait switch -- 2 1 2
follows "one CPU, two, one, two" --wait switch -- 1 2 1 2
follows "switching that begins and ends: one CPU, two, one" --wait turns! -- 1 2 1
servers=1 said=".*delegated: 'all': [1-9].*"
follows "a server: two CPUs, one, two" --verbose 2 --wait switch --delegate all --servers 1 -- 2 1 2
finish
