#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Waits, releases and timelines as the Python package has them.
. "$(dirname "$0")/lib.sh"
: "${SUBJECT:?}"
need_python "waits and timelines"
export PYSUBUTAI_COMMAND=$SUBUTAI
made_waits made.sbt
subutai record -o all.sbt -- "$SUBJECT"
check "a trace is recorded" is "$status" 0
run "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/waits.py" made.sbt all.sbt
points ""
size=$(stat -c %s all.sbt)
cp all.sbt damaged.sbt
printf '\xff\xff\xff\xff' | dd of=damaged.sbt bs=1 seek=$((size / 2)) conv=notrunc status=none
for what in 'trace.waits' 'lanes.read(trace, range(trace.n_threads), 10)'; do
    run "$PYSUBUTAI_PYTHON" -c "import subutai
from subutai import lanes
trace = subutai.load('damaged.sbt')
try:
    $what
except subutai.TraceError as error:
    print(error.path, error.reason)"
    check "a damaged trace: $what" matches "$status $out" '^0 damaged.sbt at byte [0-9]+: '
done
finish
