#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# stress-ng's stressors that use pthread objects or live beside them (raw futexes, System V semaphores, fork, vfork),
# each bounded by a number of operations and verified by stress-ng itself.
. "$(dirname "$0")/lib.sh"
need stress-ng

stressor() { # NAME INSTANCES OPERATIONS [SECONDS]
    # The time only caps it, except for sem and mcontend, whose parents wait for the time whatever their children did.
    check_run "$1: $2 instances, $3 operations" 240 stress-ng --temp-path "$scratch" --verify --metrics-brief \
        --no-rand-seed --timeout "${4:-200}" "--$1" "$2" "--$1-ops" "$3"
    check "$1: ended well" grep -q 'successful run completed' "$variant.out" "$variant.err"
    check "$1: at least $3 operations" awk -v name="$1" -v least="$3" \
        '$1 == "stress-ng:" && $4 == name && $5 ~ /^[0-9]+$/ { ok = $5 >= least } END { exit !ok }' \
        "$variant.out" "$variant.err"
}

stressors() {
    # So many that the first thread cannot do them all before its creator looks again: stress-ng takes that for a failure.
    stressor mutex 2 1000000
    stressor pthread 2 500
    stressor futex 2 1000
    stressor mcontend 2 100 4
    stressor memthrash 1 10
    stressor malloc 2 5000
    stressor sem-sysv 1 1000
    stressor fork 1 50
    stressor vfork 1 50
    stressor aio 1 200
    stressor sem 2 1000 4
}

each_variant stressors
finish
