#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs a test program under the recorder, which must change none of its results, and then reads every trace that it and
# its children have left. One that cannot be read fails the run, whatever the program said.
# usage: recorded.sh SUBUTAI LIBRARY PROGRAM      output: TAP, the program's
set -u
subutai=$1 library=$2 program=$3
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

SUBUTAI_RECORD=$work/trace.sbt LD_PRELOAD=$library "$program"
status=$?
n=0
for trace in "$work"/*.sbt; do
    n=$((n + 1))
    if ! "$subutai" trace info "$trace" >"$work/info" 2>"$work/error"; then
        echo "# $trace: $(cat "$work/error")"
        status=1
    fi
done
echo "# $n traces, $("$subutai" trace info --json "$work/trace.sbt" | sed -n 's/.*"events":\([0-9]*\).*/\1/p') events in the first"
exit $status
