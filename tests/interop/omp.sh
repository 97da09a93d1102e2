#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# OpenMP: parallel, critical, barrier, ordered, tasks, locks; with libgomp's waiting spinning and sleeping.
. "$(dirname "$0")/lib.sh"

teams() {
    for threads in 2 16; do
        for policy in active passive; do
            check_run "team of $threads, waits $policy" 60 env OMP_WAIT_POLICY="$policy" "$bin/omp" "$threads"
            keep "$threads"
            same "team of $threads, waits $policy: same results" "$threads"
        done
    done
}

each_variant teams
finish
