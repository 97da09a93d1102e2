#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# stress-ng's stressors that use pthread objects or live beside them (raw futexes, System V semaphores, fork, vfork). Each
# ends after a number of operations or after some seconds, and stress-ng verifies what it did.
# usage: stress-ng.sh STRESSOR...
. "$(dirname "$0")/lib.sh"
need stress-ng

# NAME: INSTANCES OPERATIONS SECONDS [LEAST]. A busy machine does fewer operations in the time: LEAST, a hundredth of them
# if it is not said, is progress. mutex ends by the time: its threads have real-time priority, and stress-ng takes it for
# a failure if the first one has done all operations before its creator gets a core again, up to a second later. The
# parents of sem and mcontend wait for the time anyway.
declare -A stressors=(
    [mutex]="2 100000000 2 10000" [pthread]="2 500 6" [futex]="2 1000 6" [mcontend]="2 100 1"
    [memthrash]="1 10 6" [malloc]="2 5000 6" [aio]="1 200 6"
    [sem-sysv]="1 1000 6" [fork]="1 50 6" [vfork]="1 50 6" [sem]="2 1000 1"
)

stressor() { # NAME INSTANCES OPERATIONS SECONDS [LEAST]
    check_run "$1: $2 instances, $3 operations or $4 s" 40 stress-ng --temp-path "$scratch" --verify --metrics-brief \
        --no-rand-seed --timeout "$4" "--$1" "$2" "--$1-ops" "$3"
    check "$1: ended well" grep -q 'successful run completed' "$variant.out" "$variant.err"
    check "$1: operations were done" awk -v name="$1" -v least="${5:-$(($3 / 100))}" \
        '$1 == "stress-ng:" && $4 == name && $5 ~ /^[0-9]+$/ { ok = $5 > 0 && $5 >= least } END { exit !ok }' \
        "$variant.out" "$variant.err"
}

run_stressors() {
    local name words
    for name; do
        read -ra words <<<"${stressors[$name]}"
        stressor "$name" "${words[@]}"
    done
}

each_variant run_stressors "$@"
finish
