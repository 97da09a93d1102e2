#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A handler forks in the middle of a switch: a fiber that was about to be queued runs in the parent alone (switch/leave.c).
. "$SOURCE_ROOT/tests/command/lib.sh"

text="a fork where a fiber that yields has been left"
if ! command -v gdb >/dev/null; then
    skip "$text" "gdb is not installed"
    finish
    exit
fi
for ((i = 0; i < 3; i++)); do # a busy machine may be so slow that the fibers wait at home
    timeout -k 2 "$(stretched 60)" gdb -nx -q -batch -ex "set environment LD_PRELOAD $BUILD_ROOT/libsubutai/libsubutai.so" \
        -ex "set environment SUBUTAI_WAIT switch" -x "$SOURCE_ROOT/tests/switch/fork_in_switch.gdb" \
        --args "$SUBJECTS/switch-fork-in-switch" >"$scratch/gdb" 2>&1
    grep -q 'hit Breakpoint 2' "$scratch/gdb" && break
done
status=0 out=$(cat "$scratch/gdb") err=
if grep -q 'ptrace: Operation not permitted' "$scratch/gdb"; then
    skip "$text" "gdb may not look at other processes"
    finish
    exit
fi
check "$text: it was there" matches "$out" 'hit Breakpoint 2'
check "$text: the child runs no thread of its parent" matches "$out" 'exited normally'
finish
