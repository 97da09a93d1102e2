#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Python: interpreter lock, Lock (a semaphore: a million sem_trywait calls in real programs), RLock, Condition,
# Semaphore, Barrier, Event, queue, ThreadPoolExecutor; and fork with threads alive (multiprocessing).
. "$(dirname "$0")/lib.sh"
need /usr/bin/python3

python() {
    check_run "threads.py holds its assertions" 90 /usr/bin/python3 -B "$here/subjects/threads.py"
    keep threads
    same "threads.py prints the same results" threads
    check_run "a pool of forked processes beside threads" 60 /usr/bin/python3 -B "$here/subjects/processes.py"
    keep processes
    same "processes.py prints the same results" processes
}

each_variant python
finish
