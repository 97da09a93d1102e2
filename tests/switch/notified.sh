#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A waiter that has been notified under a queue's lock is not notified again: no handler that lasts may come between that
# and the wake-up (core/handlers.h). Looks at every such wake-up, with waits that sleep, or are switched, at once.
. "$SOURCE_ROOT/tests/command/lib.sh"

for wait in adaptive switch; do
    for kind in "contended --cs-ns 2000" "rwlock --write-percent 50 --cs-ns 2000" signal-storm; do
        text="$wait: ${kind%% *}, 8 threads: handlers are deferred at each wake-up"
        if ! command -v gdb >/dev/null; then
            skip "$text" "gdb is not installed"
            continue
        fi
        # Each wake-up is a stop. A busy machine has few of them in the time that is enough for an idle one.
        for seconds in 0.2 1 4; do
            # shellcheck disable=SC2086 # several words
            timeout -k 2 "$(stretched 100)" gdb -nx -q -batch -ex "set environment LD_PRELOAD $BUILD_ROOT/libsubutai/libsubutai.so" \
                -ex "set environment SUBUTAI_WAIT $wait" -ex "set environment SUBUTAI_SPIN_NS 0" \
                -ex "set environment SUBUTAI_YIELDS 0" -x "$SOURCE_ROOT/tests/switch/notified.gdb" \
                --args "$BUILD_ROOT/bench/micro/subutai-bench" $kind --threads 8 --seconds $seconds >"$scratch/gdb" 2>&1
            status=$? out=$(cat "$scratch/gdb") err=
            counts=$(sed -n 's/^woken \([0-9]*\), open \([0-9]*\)$/\1 \2/p' "$scratch/gdb")
            [[ $counts =~ ^([0-9]|10)\ 0$ ]] || break
        done
        if grep -q 'ptrace: Operation not permitted' "$scratch/gdb"; then
            skip "$text" "gdb may not look at other processes"
            continue
        fi
        check "$text (${counts% *})" test "${counts% *}" -gt 10 -a "${counts#* }" -eq 0
    done
done
finish
