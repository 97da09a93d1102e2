#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Signals that come to a thread at any instruction of a switch.
. "$SOURCE_ROOT/tests/ni/lib.sh"

subject=$SUBJECTS/switch-handlers-in-switch
cpu=$(allowed_cpu)
for scene in yields yields-nodefer; do
    run taskset -c "$cpu" "$SUBUTAI" run --verbose 2 --wait 'switch!' -- "$subject" "$scene"
    check "$scene: by switching" matches "$err" 'waiting by switching'
    check "$scene" is "$status" 0
done
for servers in 0 1; do
    run "$SUBUTAI" run --wait 'switch!' --delegate all --servers $servers -- "$subject" unlocks
    check "unlocks, delegated, $servers servers" is "$status" 0
done
run taskset -c "$cpu" "$SUBUTAI" run --wait 'switch!' --delegate all -- "$subject" unlocks
check "unlocks, delegated, one CPU" is "$status" 0
finish
