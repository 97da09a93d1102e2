#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Protocol buffers for Perfetto: decoded by Perfetto's own classes, against the trace.
. "$(dirname "$0")/lib.sh"
: "${SUBJECT:?}"
need_python "protocol buffers for Perfetto"
export PYSUBUTAI_COMMAND=$SUBUTAI

# decodes TEXT TRACE: the points of perfetto_check.py.
decodes() {
    local text=$1 trace=$2
    subutai trace to-perfetto -o "$trace.pftrace" "$trace"
    check "$text: written" is "$status $out$err" "0 "
    run "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/perfetto_check.py" "$trace" "$trace.pftrace"
    points "$text: "
}
subutai record -o all.sbt -- "$SUBJECT"
check "a trace is recorded" is "$status" 0
decodes "all primitives" all.sbt

subutai profile -o prof -- "$SUBJECT"
check "a profile is made" is "$status" 0
decodes "a profile" prof/record-subject.sbt
made_waits made.sbt
decodes "a generated trace" made.sbt
check "its arrows" matches "$out" "from the calls that the package has as the ends of waits, 8, to these"
# The first of two readers has gone before the second one returns: both were let in by the writer.
printf '%s\n' '0 thread_create other=1' '0 thread_create other=2' '0 rwlock_wrlock object=0 order=1' \
    '0 rwlock_unlock object=0 work=10000' '0 thread_end' \
    '1 rwlock_rdlock object=0 order=1 work=100 took=12000' '1 rwlock_unlock object=0 work=100' '1 thread_end' \
    '2 rwlock_rdlock object=0 order=1 work=100 took=20000' '2 rwlock_unlock object=0' '2 thread_end' |
    "$WRITE_TRACE" readers.sbt
decodes "two readers" readers.sbt

: | "$WRITE_TRACE" empty.sbt
subutai trace to-perfetto -o empty.pftrace empty.sbt
check "a trace without an event: the process alone" is "$status $(strings empty.pftrace | grep -c write-trace)" "0 1"
subutai trace to-perfetto --json -o made.json made.sbt
check "--json: JSON, as before" is "$status $(jq '.traceEvents | map(select(.ph == "X")) | length' made.json)" "0 35"
if command -v script >/dev/null; then
    run script -qec "'$SUBUTAI' trace to-perfetto made.sbt" /dev/null
    check "not to a terminal" matches "$status $out" "^2 subutai: trace: to-perfetto: protocol buffers are not for a \
terminal \(legal: --out FILE, or --json\)"
else
    skip "not to a terminal" "no command script"
fi
finish
