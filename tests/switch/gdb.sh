#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tools/gdb/fibers.gdb: the stacks of threads that wait by switching, in a live process.
. "$SOURCE_ROOT/tests/ni/lib.sh"

text="a ring of 8: the stacks of the waiters, down to the program's function"
if ! command -v gdb >/dev/null; then
    skip "$text" "gdb is not installed"
    finish
    exit
fi
SUBUTAI_WAIT=switch LD_PRELOAD=$BUILD_ROOT/libsubutai/libsubutai.so "$BUILD_ROOT/bench/micro/subutai-bench" turn-ring --threads 8 --seconds 60 >"$scratch/bench" 2>&1 &
pid=$!
trap 'kill -KILL $pid; rm -rf "$scratch"' EXIT
for ((i = 0; i < 100; i++)); do # until all threads are there: eight, the main one, two carriers at least, the monitor
    (($(find /proc/$pid/task -mindepth 1 -maxdepth 1 2>/dev/null | wc -l) >= 11)) && break
    sleep 0.1
done
# Of the eight one or two run, and threads that have been woken are in no wait: several looks.
for ((i = 0; i < 5; i++)); do
    timeout -k 2 "$(stretched 60)" gdb -nx -batch -p $pid -x "$SOURCE_ROOT/tools/gdb/fibers.gdb" -ex fibers >"$scratch/gdb" 2>&1
    n=$(grep -c '^--- fiber' "$scratch/gdb")
    ((n >= 4)) && break
done
if grep -q 'ptrace: Operation not permitted' "$scratch/gdb"; then
    skip "$text" "gdb may not look at other processes"
    finish
    exit
fi
status=0 out=$(cat "$scratch/gdb") err=$(cat "$scratch/bench")
check "$text" test "$n" -ge 4 -a "$n" -le 8 -a "$(grep -c 'in turn_ring_worker' "$scratch/gdb")" -eq "$n"
check "the process goes on" kill -0 $pid
finish
