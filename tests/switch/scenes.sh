#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What could go wrong with waiting by switching: every scene of subject.c, subject_home.c, timed.c, home.c and summon.c,
# on the C library alone and switched.
. "$SOURCE_ROOT/tests/ni/lib.sh"

for subject in subject subject-home timed home summon cancel; do
    for scene in $("$SUBJECTS/switch-$subject"); do
        run "$SUBJECTS/switch-$subject" "$scene"
        check "$scene: the C library alone" is "$status" 0
        run "$SUBUTAI" run --verbose 2 --wait switch -- env SWITCHED=1 "$SUBJECTS/switch-$subject" "$scene"
        check "$scene: switched" is "$status" 0
        check "$scene: by switching" matches "$err" 'waiting by switching'
    done
done
finish
