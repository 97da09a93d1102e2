#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# --delegate auto: the scenes of delegate.c with decisions that change all the time and with real ones; and what is refused.
. "$SOURCE_ROOT/tests/ni/lib.sh"

said='mutexes that were delegated because it pays: '
subject=$SUBJECTS/switch-delegate
for program in "$subject" "$subject-waits"; do
    for scene in $("$program"); do
        for how in 'switch! turns! 0' 'turns! turns! 0' 'switch! turns! 1' 'turns! turns! 2' 'switch! auto 0'; do
            read -r wait delegate servers <<<"$how"
            run "$SUBUTAI" run --verbose 2 --wait "$wait" --delegate "$delegate" --servers "$servers" -- "$program" "$scene"
            check "$scene: --wait $wait --delegate $delegate, $servers servers" is "$status" 0
        done
    done
done
run "$SUBUTAI" run --verbose 2 --delegate auto -- "$subject" counts
check 'with --wait auto: right' is "$status" 0
check 'with --wait auto: says what was delegated' matches "$err" "${said}[0-9]+, and not any more: [0-9]+"
# Only a run that has it delegate can tell.
run "$SUBUTAI" run --verbose 2 --wait 'switch!' --delegate 'auto' -- "$subject" types
check 'a short run: sections of no entry' matches "$err" "delegated: 'auto': [0-9]+ sections in [0-9]+ batches"

# Refused, one line for each, and the program runs.
for name in auto@0 auto,hot hot,auto; do
    run "$SUBUTAI" run --wait switch --servers 1 --delegate "$name" -- "$subject" counts
    check "$name: the program runs" is "$status" 0
    check "$name: says why" matches "$err" "^subutai: not delegated: 'auto(@0)?': it stands alone, without other names and servers\$"
done
run "$SUBUTAI" run --delegate auto -- true
check 'a program without threads: nothing to say' is "$err" ''
run "$SUBUTAI" run --wait adaptive --delegate auto -- "$subject" counts
check 'without switching: says why' matches "$err" "^subutai: run: --delegate does nothing: with --wait adaptive no thread is switched\$"
check 'without switching: the program runs' is "$status" 0
finish
