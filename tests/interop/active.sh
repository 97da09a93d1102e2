#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Threads wait actively at an OpenMP barrier. Natively the last thread to arrive asks the kernel to wake sleepers, each
# round. Served, it makes no system call, because no thread sleeps. Counted by strace.
. "$(dirname "$0")/lib.sh"
need strace
bench=$build/bench/micro/subutai-bench
if ! strace -o counts true 2>/dev/null || [ "$(nproc)" = 1 ]; then
    echo "1..0 # SKIP system calls cannot be traced here, or there is one CPU"
    exit 0
fi
rounds=5000

# futex_calls: how many futex(2) calls the rounds take.
futex_calls() {
    bounded 100 strace -f -c -e trace=futex -o counts env "$@" OMP_WAIT_POLICY=active \
        "$bench" omp-barrier --threads 2 --ops "$rounds" >out 2>err
    check "all rounds are made" grep -q "\"ops\":$rounds," out
    calls=$(awk '$NF == "futex" { n += $4 } END { print n + 0 }' counts)
}

futex_calls A=b
check "natively a call for each round: $calls" test "$calls" -ge "$rounds"
for engine in direct ni; do
    futex_calls LD_PRELOAD="$library" SUBUTAI_ENGINE="$engine"
    check "$engine: none for a round, some for start and end: $calls" test "$calls" -lt $((rounds / 10))
done
finish
