#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# --delegate auto!: a hot mutex is delegated and others are not, and one of which the sections sleep goes back;
# none is after switching has ended; and of two that are in each other's way at one server one gets another server.
. "$SOURCE_ROOT/tests/ni/lib.sh"

subject=$SUBJECTS/switch-delegate-auto
said='mutexes that were delegated because it pays: '
for scene in $("$subject"); do
    run "$subject" "$scene"
    check "$scene: the C library alone" is "$status" 0
    all_servers='0 1'
    [[ $scene != moves ]] || all_servers=2
    for servers in $all_servers; do
        rm -f "$scratch/log"
        # The scene finds what the library says also in a long log.
        [[ $scene != delegates ]] || yes 'said before' | head -n 100000 >"$scratch/log"
        run "$SUBUTAI" run --verbose 3 --log "$scratch/log" --wait 'switch!' --delegate 'auto!' --servers "$servers" -- "$subject" "$scene"
        check "$scene, $servers servers: as it is to be" is "$status" 0
        log=$(cat "$scratch/log")
        [[ $scene != not-* && $log != *'servers are more than the CPUs'* ]] || continue
        check "$scene, $servers servers: counted" matches "$log" "${said}[1-9][0-9]*, and not any more: [0-9]+"
        [[ $scene != moves ]] || check "$scene: and how often" matches "$log" ', moved to another server: [1-9]'
        [[ $scene != goes-back ]] ||
            check "$scene, $servers servers: and that it goes back" matches "$log" "${said}[1-9][0-9]*, and not any more: [1-9]"
    done
done
finish
