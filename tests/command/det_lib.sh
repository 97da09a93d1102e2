# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Runs of `ordered` under the engine det; sourced. $extra: more options.
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
