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
printf '0 %s\n' 'mutex_lock object=0 order=1 work=1000' 'mutex_unlock object=0 work=1000' 'thread_end work=8000' |
    "$WRITE_TRACE" even.sbt
# A thread that still waits for a condition when the trace ends has given back its mutex.
printf '0 %s\n' 'mutex_lock object=0 order=1 work=1000' 'thread_end object=1 type=2 size=10 work=1000 took=8000' |
    "$WRITE_TRACE" idle.sbt
# In a profile there is nothing between the two calls of the first thread.
subutai record -o asleep.sbt --engine glibc --record-calls waits -- /usr/bin/python3 -I -S -c 'import threading, time
thread = threading.Thread(target=lambda: time.sleep(1.5))
thread.start()
time.sleep(1)
thread.join()'
check "a profile of a program that sleeps" is "$status" 0
run "$PYSUBUTAI_PYTHON" "$SOURCE_ROOT/tests/python/waits.py" made.sbt all.sbt even.sbt idle.sbt asleep.sbt
points ""

# ---- a profile: its calls are in its events and tallies together ----
# A lock that was let go before its waiter said so has order 0: what ended that wait is not known.
subutai profile -o prof -- "$SUBJECT"
check "a profile is made" is "$status" 0
run "$PYSUBUTAI_PYTHON" -c 'import polars, subutai
from subutai import lanes
trace = subutai.load("prof/record-subject.sbt")
calls = polars.concat([trace.events.select("op", n=polars.lit(1, polars.UInt64)), trace.tallies.select("op", n="n_calls")])
calls = dict(calls.group_by("op").agg(polars.col("n").sum()).rows())
print(trace.profile, calls["mutex_lock"], calls["sem_wait"], calls["spin_lock"], calls["barrier_wait"],
      calls["rwlock_rdlock"] + calls["rwlock_wrlock"])
held = trace.tallies.filter(polars.col("op").is_in(["mutex_lock", "rwlock_wrlock", "rwlock_rdlock", "spin_lock"]))
print((held["n_timed"] <= held["n_held"]).all(), held["n_held"].sum() > 0, held["held_max_ns"].max() > 0)
print(trace.waits.filter(op="cond_wait")["release_ns"].null_count(),
      trace.waits.filter(polars.col("order") > 0, op="mutex_lock")["release_ns"].null_count(),
      trace.waits.filter(polars.col("release_ns").is_not_null(), op="mutex_lock").height > 0)
print(trace.threads["routine"].null_count(), trace.sites["name"][trace.threads["routine"][1]].split("+")[0])
timeline = lanes.read(trace, trace.threads["thread"].to_list(), 50)
print(set(timeline.activity.flatten().tolist()) & {lanes.ACTIVITIES.index("section")})'
check "its calls, those that waited and the others; holds; what ended waits; routines; no sections in the timeline" \
    is "$status $out" "0 True 16000 8000 8000 400 8000
True True True
0 0 True
1 $SUBJECT
set()"
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
