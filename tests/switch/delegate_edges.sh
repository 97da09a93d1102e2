#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Delegated mutexes, as delegate.sh: the scenes of delegate_ends.c and delegate_edges.c, and a name of two variables.
. "$SOURCE_ROOT/tests/switch/delegate_scenes.sh"

subject=$SUBJECTS/switch-delegate
play_delegated 'switch!' "$subject-ends" "$subject-edges"
run "$SUBUTAI" run --verbose 2 --wait 'switch!' --delegate same -- "$subject-edges" same-name
check 'a name of two variables: right' is "$status" 0
check 'a name of two variables: both are delegated' is "$(grep -Ec "delegated: 'same': [1-9]" <<<"$err")" 2
finish
