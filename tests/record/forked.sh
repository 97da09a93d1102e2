#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A handler forks in the middle of the recorder (forked_subject.c), and the child goes on there.
. "$(dirname "$0")/../command/lib.sh"
: "${SUBJECT:?}"

for engine in glibc direct; do
    for calls in all waits; do
        rm -f ./*.sbt
        subutai record -o t.sbt --record-calls $calls --engine $engine -- "$SUBJECT"
        check "$engine, $calls recorded: the children end as they should" is "$status $out" "0 0 of 20"
        subutai trace info t.sbt
        check "$engine, $calls recorded: the trace is whole" is "$status $err" "0 "
    done
done
finish
