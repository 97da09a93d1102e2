# SPDX-License-Identifier: LGPL-2.1-or-later
"""The engine on this machine: as many runs at once as `jobs` says. Threads are enough, because each of them only waits
for its process.
"""

import queue
import threading
from collections.abc import Callable

from .predict import Command, Outcome, Processes, Run


def run(command: Command, runs: list[Run], jobs: int, done: Callable[[list[Outcome]], None]) -> None:
    """Run all, and call `done` on this thread as outcomes come."""
    todo: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
    came: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    processes = Processes()
    for item in runs:
        todo.put(item)
    jobs = min(jobs, len(runs))

    def work() -> None:
        while (item := todo.get()) is not None:
            came.put(command.simulate(item, processes))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for _ in threads:
        todo.put(None)
    for thread in threads:
        thread.start()
    try:
        left = len(runs)
        while left > 0:
            outcomes = [came.get()]
            while not came.empty():
                outcomes.append(came.get())
            left -= len(outcomes)
            done(outcomes)
    except BaseException:
        processes.stop()
        raise
