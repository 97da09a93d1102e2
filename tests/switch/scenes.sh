#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What could go wrong with waiting by switching: every scene of subject.c and subject_home.c, on the C library alone and switched.
. "$SOURCE_ROOT/tests/ni/lib.sh"

for subject in switch-subject switch-subject-home; do
    for scene in $("$SUBJECTS/$subject"); do
        run "$SUBJECTS/$subject" "$scene"
        check "$scene: the C library alone" is "$status" 0
        run "$SUBUTAI" run --verbose 2 --wait switch -- env SWITCHED=1 "$SUBJECTS/$subject" "$scene"
        check "$scene: switched" is "$status" 0
        check "$scene: by switching" matches "$err" 'waiting by switching'
    done
done
finish
