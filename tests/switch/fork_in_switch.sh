#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Handlers that come where only gdb can send them in time.
#  - One forks in the middle of a switch: a fiber that was about to be queued runs in the parent alone (switch/leave.c).
#  - One that cannot be deferred filters its thread's system calls in a section of the thread's own run queue: it does not
#    wait until that has ended (sbt_switch_before_filter).
. "$SOURCE_ROOT/tests/command/lib.sh"

# at PROGRAM TEXT END : the signal comes where PROGRAM's script sends it, and the program ends well, as END says.
at() {
    if ! command -v gdb >/dev/null; then
        skip "$2" "gdb is not installed"
        return
    fi
    for ((i = 0; i < 3; i++)); do # a busy machine may be so slow that the fibers wait at home
        timeout -k 2 "$(stretched 60)" gdb -nx -q -batch -ex "set environment LD_PRELOAD $BUILD_ROOT/libsubutai/libsubutai.so" \
            -ex "set environment SUBUTAI_WAIT switch" -x "$SOURCE_ROOT/tests/switch/${1//-/_}.gdb" \
            --args "$SUBJECTS/switch-$1" >"$scratch/gdb" 2>&1
        grep -q 'hit Breakpoint 2' "$scratch/gdb" && break
    done
    status=0 out=$(cat "$scratch/gdb") err=
    if grep -q 'ptrace: Operation not permitted' "$scratch/gdb"; then
        skip "$2" "gdb may not look at other processes"
        return
    fi
    check "$2: it was there" matches "$out" 'hit Breakpoint 2'
    check "$2: $3" matches "$out" 'exited normally'
}

at fork-in-switch "a fork where a fiber that yields has been left" "the child runs no thread of its parent"
at filter-in-section "a filter in a run queue's section" "the threads go on"
finish
