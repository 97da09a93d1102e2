#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# --wait auto: it begins to switch a program that waits often, and not one that must not be switched; and then the library's
# threads sleep.
. "$SOURCE_ROOT/tests/ni/lib.sh"

for scene in $("$SUBJECTS/switch-auto"); do
    run "$SUBJECTS/switch-auto" "$scene"
    check "$scene: the C library alone" is "$status" 0
    run "$SUBUTAI" run --wait adaptive -- "$SUBJECTS/switch-auto" "$scene"
    check "$scene: adaptively" is "$status" 0
    # On a busy machine a trial may last longer than the scene takes for one, which then ends before its answer.
    for ((i = 0; i < 3; i++)); do
        run "$SUBUTAI" run --verbose 3 -- env SWITCHED=1 "$SUBJECTS/switch-auto" "$scene"
        [[ $scene == *-stays-* && $status == 0 && $err != *'switching pays'* ]] || break
    done
    check "$scene: by default" is "$status" 0
    check "$scene: says what it does" matches "$err" 'waiting by switching while that gets more done'
    [[ $scene != *-stays-* ]] || check "$scene: says that it pays" matches "$err" 'switching pays'
done
for scene in auto-gives-up auto-gives-up-for-good; do
    run "$SUBUTAI" run --verbose 2 -- "$SUBJECTS/switch-auto-ineligible" "$scene"
    check "$scene: by default" is "$status" 0
    check "$scene: says why, where that is wanted" matches "$err" 'threads are not switched but wait adaptively: .*sighold'
    check "$scene: once" is "$(grep -c 'threads are not switched' <<<"$err")" 1
    run "$SUBUTAI" run -- "$SUBJECTS/switch-auto-ineligible" "$scene"
    check "$scene: and nothing otherwise" is "$err" ''
done
finish
