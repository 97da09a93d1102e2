# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python's threading on whatever serves its locks: the interpreter lock is a mutex and a condition, threading.Lock a
semaphore. Every part asserts its invariant and prints a result that does not depend on the schedule."""
import concurrent.futures
import hashlib
import queue
import sys
import threading
import time

sys.setswitchinterval(1e-4)


def run(n, body):
    errors = []

    def guarded(i):
        try:
            body(i)
        except BaseException as error:  # a thread's exception must fail the program
            errors.append(repr(error))

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def lock_counts():
    lock, total = threading.Lock(), [0]

    def body(i):
        for _ in range(3000):
            with lock:
                seen = total[0]
                total[0] = seen + 1

    run(6, body)
    assert total[0] == 18000, total
    assert lock.acquire() and not lock.acquire(blocking=False)
    before = time.monotonic()
    assert not lock.acquire(timeout=0.05)
    assert time.monotonic() - before >= 0.049
    lock.release()
    return total[0]


def rlock_nests():
    lock, total = threading.RLock(), [0]

    def deeper(n):
        with lock:
            if n:
                deeper(n - 1)
            else:
                total[0] += 1

    run(4, lambda i: [deeper(5) for _ in range(500)])
    return total[0]


def queue_delivers():
    q, got, lock = queue.Queue(maxsize=4), [], threading.Lock()

    def body(i):
        if i < 3:
            for n in range(400):
                q.put(i * 1000 + n)
            q.put(None)
        else:
            mine = []
            while (item := q.get()) is not None:
                mine.append(item)
            with lock:
                got.extend(mine)

    run(6, body)
    assert q.empty()
    assert sorted(got) == sorted(i * 1000 + n for i in range(3) for n in range(400))
    return len(got), sum(got)


def condition_turns():
    condition, turn, order = threading.Condition(), [0], []

    def body(i):
        for _ in range(60):
            with condition:
                assert condition.wait_for(lambda: turn[0] % 5 == i, timeout=60)
                order.append(i)
                turn[0] += 1
                condition.notify_all()

    run(5, body)
    assert order == [n % 5 for n in range(300)], order
    with condition:
        assert not condition.wait(timeout=0.05)
    return len(order)


def semaphore_bounds():
    semaphore, lock, inside, most = threading.BoundedSemaphore(3), threading.Lock(), [0], [0]

    def body(i):
        for _ in range(60):
            with semaphore:
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                time.sleep(0.0002)
                with lock:
                    inside[0] -= 1

    run(8, body)
    assert most[0] <= 3 and inside[0] == 0, (most, inside)
    try:
        semaphore.release()
    except ValueError:
        return "bounded"
    raise AssertionError("a bounded semaphore was released too often")


def barrier_generations():
    phases, parties = [0] * 6, threading.Barrier(6)
    leaders = []

    def body(i):
        for n in range(80):
            phases[i] = n
            if parties.wait(timeout=60) == 0:
                leaders.append(n)
            assert min(phases) == n == max(phases), phases
            parties.wait(timeout=60)

    run(6, body)
    assert leaders == list(range(80))
    broken = threading.Barrier(2)
    try:
        broken.wait(timeout=0.05)
    except threading.BrokenBarrierError:
        return len(leaders)
    raise AssertionError("a barrier of two opened for one")


def event_wakes():
    event, woken, lock = threading.Event(), [0], threading.Lock()

    def body(i):
        if i == 0:
            time.sleep(0.02)
            event.set()
        else:
            assert event.wait(timeout=60)
            with lock:
                woken[0] += 1

    run(8, body)
    return woken[0]


def pool_maps():
    with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
        digests = pool.map(lambda n: hashlib.sha256(bytes([n % 251]) * 40000).hexdigest(), range(200))
        digest = hashlib.sha256("".join(digests).encode()).hexdigest()
        nested = [pool.submit(pow, n, 77, 1000003) for n in range(300)]
        total = sum(f.result(timeout=60) for f in concurrent.futures.as_completed(nested, timeout=60))
        failing = pool.submit(lambda: 1 // 0)
        assert isinstance(failing.exception(timeout=60), ZeroDivisionError)
    return digest, total


def local_and_timer():
    local, seen, lock = threading.local(), [], threading.Lock()

    def body(i):
        local.value = i
        time.sleep(0.001)
        with lock:
            seen.append(local.value)

    run(10, body)
    fired = threading.Event()
    timer = threading.Timer(0.02, fired.set)
    timer.start()
    assert fired.wait(timeout=60)
    timer.join()
    return sorted(seen)


def short_threads():
    total, lock = [0], threading.Lock()
    for _ in range(40):
        def body(i):
            with lock:
                total[0] += i
        run(10, body)
    return total[0]


for part in (lock_counts, rlock_nests, queue_delivers, condition_turns, semaphore_bounds, barrier_generations,
             event_wakes, pool_maps, local_and_timer, short_threads):
    print(part.__name__, part(), flush=True)
