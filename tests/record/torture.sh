#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The stress program under the recorder: nothing of what it checks changes, and all its traces, also those of the
# processes that it starts, say what could have happened.
# usage: torture.sh TORTURE LIBRARY CHECK ENGINE      output: TAP
set -u
torture=$1 library=$2 check=$3 engine=$4
work=$(mktemp -d "${TMPDIR:-/var/tmp}/subutai-record.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
echo 1..2
if SUBUTAI_ENGINE=$engine SUBUTAI_RECORD=$work/t.sbt LD_PRELOAD=$library "$torture" --scale 20 >"$work/out" 2>&1; then
    echo "ok 1 - the stress program, $(grep -c '^ok' "$work/out") tests"
else
    echo "not ok 1 - the stress program"
    sed 's/^/# /' "$work/out"
fi
n=0 n_bad=0
for trace in "$work"/*.sbt; do
    n=$((n + 1))
    "$check" "$trace" >"$work/said" 2>&1 && continue
    n_bad=$((n_bad + 1))
    tail -5 "$work/said" | sed 's/^/# /'
done
[[ $n_bad == 0 && -s $work/t.sbt ]] && echo "ok 2 - $n traces" || echo "not ok 2 - $n_bad of $n traces"
