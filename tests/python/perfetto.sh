#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Protocol buffers for Perfetto: loaded by Perfetto's own trace processor, against the trace. And does the test find mistakes?
. "$(dirname "$0")/lib.sh"
: "${SUBJECT:?}" "${TIMED:?}"
need_python "protocol buffers for Perfetto"
export PYSUBUTAI_COMMAND=$SUBUTAI

if ! no=$("$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/trace_processor.py" 2>&1); then
    skip "protocol buffers for Perfetto" "$no"
    finish
fi

pairs=()
# writes TEXT TRACE: a file to load.
writes() {
    subutai trace to-perfetto -o "$2.pftrace" "$2"
    check "$1: written" is "$status $out$err" "0 "
    pairs+=("$2" "$2.pftrace")
}
subutai record -o all.sbt -- "$SUBJECT"
check "a trace is recorded" is "$status" 0
subutai report --perfetto all.pftrace all.sbt
check "all primitives: written by report" is "$status $out$err" "0 "
pairs+=(all.sbt all.pftrace)
subutai record -o misuse.sbt -- "$SUBJECT" misuse
check "a trace with failures is recorded" is "$status" 0
writes "failures" misuse.sbt

subutai profile -o prof -- "$SUBJECT"
check "a profile is made" is "$status" 0
writes "a profile" prof/record-subject.sbt
made_waits made.sbt
writes "a generated trace" made.sbt
# The first of two readers has gone before the second one returns: both were let in by the writer.
printf '%s\n' '0 thread_create other=1' '0 thread_create other=2' '0 rwlock_wrlock object=0 order=1' \
    '0 rwlock_unlock object=0 work=10000' '0 thread_end' \
    '1 rwlock_rdlock object=0 order=1 work=100 took=12000' '1 rwlock_unlock object=0 work=100' '1 thread_end' \
    '2 rwlock_rdlock object=0 order=1 work=100 took=20000' '2 rwlock_unlock object=0' '2 thread_end' |
    "$WRITE_TRACE" readers.sbt
writes "two readers" readers.sbt
# The last of two readers is the next writer: no other thread kept it waiting.
printf '%s\n' '0 thread_create other=1' '0 thread_create other=2' '0 thread_end' \
    '1 rwlock_rdlock object=0 order=1 work=100' '1 rwlock_unlock object=0 work=3000' \
    '1 rwlock_wrlock object=0 order=2 work=100 took=5000' '1 rwlock_unlock object=0' '1 thread_end' \
    '2 rwlock_rdlock object=0 order=1 work=100' '2 rwlock_unlock object=0 work=1000' '2 thread_end' |
    "$WRITE_TRACE" own.sbt
writes "a reader that writes next" own.sbt
# Of a profile, where by the recorder's times a wait ended before the unlock began that ended it. Another one did not.
printf '%s\n' '0 thread_create other=1' '0 mutex_unlock object=0 order=1 work=10000' \
    '0 mutex_unlock object=1 order=1 work=5000' '0 thread_end' \
    '1 mutex_lock object=0 order=1 work=1000 took=8500' '1 mutex_unlock object=0 order=2 work=100' \
    '1 mutex_lock object=1 order=1 work=400 took=9000' '1 mutex_unlock object=1 order=2 work=100' '1 thread_end' |
    "$WRITE_TRACE" early.sbt profile
writes "a wait that ends early" early.sbt

run_as_long "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/perfetto_check.py" "${pairs[@]}"
points ""
check "a thread's name has its routine's" grep -qE '^# thread [1-4] subject\.c:[0-9]+ everything ' <<<"$out"
check "arrows of the wait that ends early: none, but of the other one" matches "$out" "early.sbt: 1 arrows from"
check "arrows of a reader that writes next: none" matches "$out" "own.sbt: 0 arrows from"
check "arrows of the generated trace" matches "$out" "made.sbt: 9 arrows from"
run_as_long "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/perfetto_plants.py" misuse.sbt misuse.sbt.pftrace
points "a mistake in it: "

# Of five waits that timed out three were for a lock that the other thread had.
for calls in all waits; do
    subutai record -o timed.sbt --engine glibc --record-calls $calls -- "$TIMED"
    subutai trace to-perfetto -o timed.pftrace timed.sbt
    run_as_long "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/trace_processor.py" timed.pftrace "
        select group_concat(slice.category || ' ' || ifnull(extract_arg(slice.arg_set_id, 'debug.holder'), 'none'), ', ')
        from slice where extract_arg(slice.arg_set_id, 'debug.result') = 'ETIMEDOUT' order by ts"
    check "$calls: waits that timed out have the thread that had the lock" matches "$out" \
        'mutex 1, rwlock 1, rwlock 1, sem none, cond none'
done

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
