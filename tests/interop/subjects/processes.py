# SPDX-License-Identifier: LGPL-2.1-or-later
"""Forks while threads of the parent take and release locks; queues and locks of multiprocessing are named or
process-shared semaphores."""
import multiprocessing
import subprocess
import sys
import threading

sys.setswitchinterval(1e-4)

context = multiprocessing.get_context("fork")


def square(n):
    with context.Lock():
        return n * n


def count(counter, n):
    for _ in range(n):
        with counter.get_lock():
            counter.value += 1


def main():
    stop, lock, beats = threading.Event(), threading.Lock(), [0]

    def churn():
        while not stop.is_set():
            with lock:
                beats[0] += 1

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    with context.Pool(4) as pool:
        print("pool", sum(pool.map(square, range(200), chunksize=5)))
    counter = context.Value("i", 0)
    children = [context.Process(target=count, args=(counter, 500)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0, child.exitcode
    print("counter", counter.value)
    for n in range(10):
        assert subprocess.run(["/bin/echo", str(n)], stdout=subprocess.PIPE, check=True).stdout == b"%d\n" % n
    print("subprocess", 10)
    stop.set()
    for thread in threads:
        thread.join()
    assert beats[0] > 0


main()
