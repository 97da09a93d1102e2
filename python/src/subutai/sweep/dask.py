# SPDX-License-Identifier: LGPL-2.1-or-later
"""The engine on a Dask cluster: chunks of runs are its tasks.

A trace travels as the result of a task of its own, which the scheduler can run again. So a worker's death takes no
trace along, and Dask gives the chunks of a dead worker to another one. Only what reaches this process is noted down,
so no run counts twice.
"""

import importlib
import logging
import queue
import re
import threading
import time
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import SweepError
from .predict import Command, Outcome, Processes, Run, find

CONNECT_S = 10  # to reach the scheduler, and for a first worker to be there
GRACE_S = 5  # for the client to say by itself that it has not reached it
LOST_S = 30  # without the scheduler until the sweep ends
SCHEMES = ("tcp", "tls", "ws", "wss", "ucx")
MOST_RUNS = 64  # of a chunk
INSTALL = "pip install './python[dask]' in Subutai's sources"


def _identity(data: bytes) -> bytes:
    return data


def worker_version() -> str:
    """On a worker: the version of its command."""
    return find().version


def run_chunk(runs: list[Run], traces: dict[str, bytes]) -> list[Outcome]:
    """On a worker: the outcomes of these runs. Traces are kept in the worker's folder, by checksum."""
    from distributed import get_worker

    folder = Path(get_worker().local_directory) / "subutai-traces"
    folder.mkdir(exist_ok=True)
    places = {}
    for digest, data in traces.items():
        place = folder / f"{digest}.sbt"
        if not place.exists():
            new = folder / f".{digest}.{uuid.uuid4().hex}"
            new.write_bytes(data)
            new.replace(place)
        places[digest] = str(place)
    command, processes = find(), Processes()
    return [command.simulate(run, processes, places) for run in runs]


def chunk_size(n_runs: int, n_places: int) -> int:
    """Eight chunks for each place, so that no place waits long for the last one; chunks are not too large to lose."""
    return max(1, min(MOST_RUNS, n_runs // (8 * max(1, n_places))))


class Cluster:
    """The connection to a scheduler. `chunk`: runs of a task; None: chunk_size."""

    def __init__(self, address: str, command: Command, chunk: int | None) -> None:
        try:
            self._distributed: Any = importlib.import_module("distributed")
        except ModuleNotFoundError as error:
            raise SweepError(f"--dask needs the Python package distributed: {INSTALL}", refused=True) from error
        scheme, colons, _ = address.partition("://")
        if (colons and scheme not in SCHEMES) or re.search(r"[^:/]:\d+$", address) is None:
            raise SweepError(f"--dask: '{address}' (legal: HOST:PORT, {', '.join(SCHEMES)}://HOST:PORT)", refused=True)
        logging.disable(logging.CRITICAL)  # what Dask logs is told in a line, where it matters
        warnings.filterwarnings("ignore", module="distributed")
        began = time.monotonic()
        self._connect(address)
        self._address = address
        self._chunk = chunk
        self._traces: dict[str, Any] = {}
        try:
            self._client.wait_for_workers(1, timeout=max(1.0, CONNECT_S - (time.monotonic() - began)))
            self._check(command)
        except TimeoutError as error:
            self.close()
            raise SweepError(f"--dask: the scheduler at '{address}' has no worker", refused=True) from error
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str) -> None:
        """On a thread of its own: what answers need not be a scheduler. Some servers say nothing, and the client waits
        for their greeting without a limit; others say something that it takes for a size, and fails with any error.
        """
        # Made in two steps, so that there is something to give up: its end would wait for a scheduler.
        self._client = self._distributed.Client.__new__(self._distributed.Client)
        came: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

        def connect() -> None:
            try:
                self._client.__init__(address, timeout=CONNECT_S, set_as_default=False)
                came.put(None)
            except Exception as error:
                came.put(error)

        threading.Thread(target=connect, daemon=True).start()
        try:
            error = came.get(timeout=CONNECT_S + GRACE_S)
        except queue.Empty:
            error = TimeoutError(f"no greeting within {CONNECT_S + GRACE_S} s")
        if error is not None:
            self._client.status = "closed"
            raise SweepError(f"--dask: no scheduler answers at '{address}' ({_line(error)})", refused=True) from error

    def close(self) -> None:
        """Leave the cluster; what still runs there is given up."""
        self._client.close(timeout=5)

    def _check(self, command: Command) -> None:
        """Every worker must have this package and the same command: the rows of one table have one meaning."""
        for worker, said in self._client.run(worker_version, on_error="return").items():
            if isinstance(said, BaseException):
                raise SweepError(
                    f"--dask: worker {worker}: {_line(said)} (legal: workers with the package subutai, and the "
                    "command in PATH or PYSUBUTAI_COMMAND)",
                    refused=True,
                )
            if said != command.version:
                raise SweepError(f"--dask: worker {worker} has {said}, here is {command.version}", refused=True)

    def _trace(self, path: str, digest: str) -> Any:
        if digest not in self._traces:
            data = Path(path).read_bytes()
            self._traces[digest] = self._client.submit(_identity, data, key=f"subutai-trace-{digest}", pure=True)
        return self._traces[digest]

    def _n_places(self) -> int:
        return sum(worker["nthreads"] for worker in self._client.scheduler_info(n_workers=-1)["workers"].values())

    def run(self, runs: list[Run], done: Callable[[list[Outcome]], None]) -> None:
        """Run all, and call `done` on this thread as outcomes come."""
        came: queue.SimpleQueue[Any] = queue.SimpleQueue()
        size = self._chunk or chunk_size(len(runs), self._n_places())
        chunks = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a trace is larger than what Dask likes to send
            for at in range(0, len(runs), size):
                chunk = runs[at : at + size]
                traces = {digest: self._trace(path, digest) for run in chunk for path, digest, _ in run.traces}
                future = self._client.submit(
                    run_chunk, chunk, traces, key=f"subutai-chunk-{uuid.uuid4().hex}", pure=False
                )
                chunks[future.key] = (future, chunk)
                future.add_done_callback(came.put)
        lost_since = None
        while chunks:
            try:
                future = came.get(timeout=1)
            except queue.Empty:
                if self._client.status == "running":
                    lost_since = None
                    continue
                lost_since = lost_since or time.monotonic()
                if self._client.status != "closed" and time.monotonic() - lost_since < LOST_S:
                    continue
                raise SweepError(f"--dask: the scheduler at '{self._address}' is gone; --resume goes on") from None
            if future.key in chunks:
                future, chunk = chunks.pop(future.key)
                done(self._outcomes(future, chunk))

    def _outcomes(self, future: Any, chunk: list[Run]) -> list[Outcome]:
        if future.status == "cancelled":
            raise SweepError(f"--dask: the scheduler at '{self._address}' is gone; --resume goes on")
        try:
            outcomes: list[Outcome] = future.result(timeout=LOST_S)
            return outcomes
        except Exception as error:  # of the worker's: any kind
            return [Outcome(run.key, error=f"on the cluster: {_line(error)}") for run in chunk]


def _line(error: BaseException) -> str:
    text = str(error).strip().split("\n")[0]
    return text or type(error).__name__
