#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Who has been told something under a queue's lock is not told again by others: no handler that lasts may come between
# that and the wake-up (core/handlers.h). Looks at every such wake-up, with waits that sleep, or are switched, at once.
. "$SOURCE_ROOT/tests/command/lib.sh"

for wait in adaptive switch; do
    for kind in "contended --cs-ns 2000" "rwlock --write-percent 50 --cs-ns 2000" signal-storm; do
        text="$wait: ${kind%% *}, 8 threads: handlers are put off at each wake-up"
        if ! command -v gdb >/dev/null; then
            skip "$text" "gdb is not installed"
            continue
        fi
        # shellcheck disable=SC2086 # several words
        timeout -k 2 100 gdb -nx -q -batch -ex "set environment LD_PRELOAD $BUILD_ROOT/libsubutai/libsubutai.so" \
            -ex "set environment SUBUTAI_WAIT $wait" -ex "set environment SUBUTAI_SPIN_NS 0" \
            -ex "set environment SUBUTAI_YIELDS 0" -x "$SOURCE_ROOT/tests/switch/told.gdb" \
            --args "$BUILD_ROOT/bench/micro/subutai-bench" $kind --threads 8 --seconds 0.2 >"$scratch/gdb" 2>&1
        status=$? out=$(cat "$scratch/gdb") err=
        if grep -q 'ptrace: Operation not permitted' "$scratch/gdb"; then
            skip "$text" "gdb may not look at other processes"
            continue
        fi
        counts=$(sed -n 's/^woken \([0-9]*\), open \([0-9]*\)$/\1 \2/p' "$scratch/gdb")
        check "$text (${counts% *})" test "${counts% *}" -gt 10 -a "${counts#* }" -eq 0
    done
done
finish
