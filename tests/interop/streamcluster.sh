#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The PARSEC work-alike: thousands of barrier rounds, by pthread_barrier_t and by a mutex and a condition. What it
# computes is a function of its input and the number of threads.
. "$(dirname "$0")/lib.sh"
streamcluster=$build/bench/parsec/streamcluster

cluster() {
    for barrier in pthread cond; do
        for threads in 2 5; do
            check_run "clusters with $threads threads, barrier $barrier" 60 \
                "$streamcluster" --barrier "$barrier" 5 10 16 1024 1024 200 \
                none "$variant.$barrier.$threads.centres" "$threads"
            same "centres of $threads threads, barrier $barrier" "$barrier.$threads.centres"
        done
    done
}

each_variant cluster
finish
