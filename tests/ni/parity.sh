#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The request stream of a live run, replayed through the simulator's NIs, gives the same grants in the same order.
. "$(dirname "$0")/lib.sh"

# parity TEXT LEAST SERVICE [OPTION...] -- SUBJECT [ARGUMENT...]: LEAST grants were compared.
parity() {
    local text=$1 least=$2 service=$3
    shift 3
    rm -f requests
    under "$service" --requests requests "$@"
    passes "$service, $text"
    run "$PARITY" requests
    check "$service, $text: the same grants in the same order (${out##*$'\n'})" test "$status" = 0
    check "$service, $text: and enough of them" enough "$least"
}

enough() { # LEAST
    local n
    n=$(sed -n 's/.* \([0-9]*\) grants,.*/\1/p' <<<"$out")
    [ "${n:-0}" -ge "$1" ]
}

for service in dedicated inline; do
    parity 'mutexes, alone' 10000 "$service" -- many 4 8 500 alone
    parity 'many threads at one mutex' 1600 "$service" -- contend mutex 24 200
    parity 'conditions, cancelled and timed' 200 "$service" -- contend cond 24 200
    parity 'few elements: held, withdrawn and evicted' 500 "$service" --mesh 2x2 --control-elements 2 \
        --queue-elements 3 -- contend mixed 24 100
    held=$(sed -n 's/.* \([0-9]*\) held:.*/\1/p' <<<"$out")
    check "$service, few elements: some were held" test "${held:-0}" -gt 0
    parity 'tokens, and the program ends while others wait' 800 "$service" -- contend tokens 24 200
done

# It can fail: of two locks that came one after the other the wrong one first.
rm -f requests
under dedicated --requests requests -- contend mutex 24 500
run "$PARITY" requests
check 'many threads' test "$status" = 0
run "$PARITY" requests --swap
check "two requests changed places: different (${out##*$'\n'})" test "$status" = 1
check 'and the first difference is shown' matches "$out" '.*# live: operation.*# sim: operation.*'

# A file that is cut or cannot be written is one line, and no reason for the program to end.
printf x >>requests
run "$PARITY" requests
check 'a block that is cut is refused' test "$status" = 2 -a "$err" = 'parity: the file is none of --requests'
run "$SUBUTAI" run --engine ni --requests /nowhere/x -- "$SUBJECTS/ni-contend" mutex 4 200
check 'no such file: one line, the program goes on' test "$status" = 0 -a \
    "$err" = 'subutai: requests: cannot write /nowhere/x: no more of them are written'
# One block of 4 KiB fits, and of the second a quarter or nothing.
for kib in 5 4; do
    rm -f requests
    # shellcheck disable=SC2016  # expanded by the inner shell
    run bash -c 'ulimit -f "$0" && exec "$@"' $kib "$SUBUTAI" run --engine ni --requests requests -- \
        "$SUBJECTS/ni-contend" mutex 24 200
    check "a file of $kib KiB at most: one line, the program goes on" matches "$status $err" \
        '^0 subutai: requests: cannot write .*requests: no more of them are written$'
    check "a file of $kib KiB at most: whole blocks" is "$(stat -c %s requests)" 4096
done
finish
