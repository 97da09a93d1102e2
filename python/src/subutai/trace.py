# SPDX-License-Identifier: LGPL-2.1-or-later
"""A trace as data frames of polars.

A frame is made when it is asked for first, and kept. Absent numbers (an event without an object, an unknown call site)
are nulls.
"""

import ctypes
import os
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy
import polars

from . import waits
from .library import COLUMNS, TALLY_COLUMNS, Columns, Error, Lanes, TallyColumns, library

NONE = 0xFFFFFFFF  # SBT_TRACE_NONE
MAX_DEPTH = 64  # TRACE_MAX_STACK
CHUNK = 1 << 20  # events of one call where their number is not known before
PART = 1 << 16  # events for which another thread of this process's is worth starting
MAX_PARTS = 8
_NULLABLE = ("object", "other", "site")
_NAMED = {"op": "sbt_trace_op_name", "type": "sbt_trace_type_name"}


class TraceError(ValueError):
    """The file cannot be opened, is no trace of a known version, or is damaged: `path`, and in `reason` where."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


def _names(function: Callable[[int], bytes | None]) -> list[str]:
    """The names 0, 1, 2 ... as long as there is one."""
    found: list[str] = []
    while (name := function(len(found))) is not None:
        found.append(name.decode())
    return found


def _arrays(wanted: list[str], room: int) -> "dict[str, numpy.ndarray[Any, Any]]":
    """Columns of zeros, which take no memory before they are written."""
    return {name: numpy.zeros(room, dtype=COLUMNS[name]) for name in wanted}


def _cuts(ends: list[int], n_parts: int) -> list[int]:
    """Threads at which to cut the trace into parts with about as many events each: 0, ..., the number of threads."""
    inner = {bisect_left(ends, ends[-1] * part // n_parts) for part in range(1, n_parts)}
    return sorted({0, *inner, len(ends) - 1})


def _side_by_side(work: Callable[[int, int], None], parts: list[tuple[int, int]]) -> None:
    """Each part in a thread of its own; the first in the caller, and those for which no thread starts: there may be no
    memory for it, and at the end of the interpreter none may.
    """
    errors: dict[int, BaseException] = {}

    def run(part: tuple[int, int]) -> None:
        try:
            work(*part)
        except BaseException as error:  # the caller raises it
            errors[part[0]] = error

    threads, own = [], parts[:1]
    for part in parts[1:]:
        thread = threading.Thread(target=run, args=(part,))
        try:
            thread.start()
            threads.append(thread)
        except (RuntimeError, MemoryError):
            own.append(part)
    for part in own:
        run(part)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]


class Trace:
    """One recorded process. Use subutai.load."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._library = library()
        error = Error()
        self._trace = self._library.sbt_trace_open(os.fsencode(self.path), ctypes.byref(error))
        if not self._trace:
            raise self._error(error)
        info = self._library.sbt_trace_info(self._trace).contents
        self.command: str = info.command.decode(errors="replace")
        self.engine: str = info.engine.decode(errors="replace")
        self.process_id: int = info.process_id
        self.duration_ns: int = info.duration_ns
        self.n_events: int = info.n_events
        self.n_lost: int = info.n_lost
        self.n_threads: int = info.n_threads
        self.n_objects: int = info.n_objects
        self.n_sites: int = info.n_sites
        self.whole: bool = info.whole
        self.completed: bool = info.completed
        self.generated: bool = info.generated
        self.profile: bool = info.profile
        self.n_tallies: int = info.n_tallies
        self.n_counted_holds: int = info.n_counted_holds
        self.n_misses: int = info.n_misses

    def __del__(self) -> None:
        if getattr(self, "_trace", None):
            self._library.sbt_trace_close(self._trace)
            self._trace = None

    def __repr__(self) -> str:
        return f"<subutai.Trace {self.path!r}: {self.n_events} events of {self.n_threads} threads>"

    def read_lanes(self, wanted: Lanes) -> None:
        """sbt_trace_read_lanes, for subutai.lanes."""
        error = Error()
        if self._library.sbt_trace_read_lanes(self._trace, ctypes.byref(wanted), ctypes.byref(error)) < 0:
            raise self._error(error)

    def _error(self, error: Error) -> TraceError:
        return TraceError(self.path, f"at byte {error.offset}: {error.reason.decode(errors='replace')}")

    def read(
        self, columns: Iterable[str] | None = None, ops: Iterable[str] | None = None, least_ns: int = 0
    ) -> polars.DataFrame:
        """The events with these columns only, all by default: less memory and time than `events`.

        With `ops`, only these operations; with `least_ns` only calls among them that may wait and took so long, and all
        calls of the other operations. Events stand thread by thread, each thread's in its order.
        """
        wanted = list(COLUMNS) if columns is None else list(columns)
        unknown = [name for name in wanted if name not in COLUMNS]
        if unknown:
            raise ValueError(f"unknown column '{unknown[0]}' (legal: {', '.join(COLUMNS)})")
        known = self._known("op")
        chosen = known if ops is None else list(ops)
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise ValueError(f"unknown operation '{unknown[0]}' (legal: {', '.join(known)})")
        if ops is None and least_ns == 0:
            return self._all_rows(wanted)
        reader = self._reader()
        try:
            mask = sum(1 << known.index(name) for name in set(chosen))
            self._library.sbt_trace_reader_select(
                reader, mask, sum(1 << known.index(name) for name in waits.WAITING if name in chosen), least_ns
            )
            frames: list[polars.DataFrame] = []
            while not frames or frames[-1].height == CHUNK:
                frames.append(self._rows(reader, wanted, CHUNK))
            return polars.concat(frames)
        finally:
            self._library.sbt_trace_reader_free(reader)

    def _reader(self) -> int:
        reader: int | None = self._library.sbt_trace_reader_new()
        if not reader:
            raise MemoryError
        return reader

    def _rows(self, reader: int, wanted: list[str], room: int) -> polars.DataFrame:
        """The next events of the reader, at most `room` of them."""
        arrays = _arrays(wanted, room)
        n = self._fill(reader, arrays, 0, room)
        return polars.DataFrame([self._series(name, array[:n]) for name, array in arrays.items()])

    def _all_rows(self, wanted: list[str]) -> polars.DataFrame:
        """All events. C decodes on several CPUs, each of them some of the trace's threads, into the same arrays."""
        arrays = _arrays(wanted, self.n_events)
        counts = numpy.empty(self.n_threads, dtype=numpy.uint64)
        self._library.sbt_trace_read_counts(self._trace, counts.ctypes.data, self.n_threads)
        ends = [0, *(int(end) for end in numpy.cumsum(counts))]  # ends[t]: the events before thread t
        cuts = _cuts(ends, min(len(os.sched_getaffinity(0)), MAX_PARTS, 1 + self.n_events // PART))

        def fill(first: int, end: int) -> None:
            reader = self._reader()
            try:
                self._library.sbt_trace_reader_limit(reader, first, end)
                if self._fill(reader, arrays, ends[first], ends[end] - ends[first]) < ends[end] - ends[first]:
                    raise TraceError(self.path, "events went away while they were read")
            finally:
                self._library.sbt_trace_reader_free(reader)

        _side_by_side(fill, list(pairwise(cuts)))
        return polars.DataFrame([self._series(name, array) for name, array in arrays.items()])

    def _fill(self, reader: int, arrays: "dict[str, numpy.ndarray[Any, Any]]", begin: int, room: int) -> int:
        """The next events of the reader into the arrays from `begin` on. C runs without Python's lock."""
        places = {name: array.ctypes.data + begin * array.itemsize for name, array in arrays.items()}
        error = Error()
        n: int = self._library.sbt_trace_read_columns(
            self._trace, reader, ctypes.byref(Columns(**places, zeroed=True)), room, ctypes.byref(error)
        )
        if n < 0:
            raise self._error(error)
        return n

    def _known(self, column: str) -> list[str]:
        return _names(getattr(self._library, _NAMED[column]))

    def _series(self, name: str, array: "numpy.ndarray[Any, Any]") -> polars.Series:
        series = polars.Series(name, array)
        if name in _NAMED:
            names = self._known(name)
            return polars.Series(name, names, polars.Enum(names)).gather(series)
        if name in _NULLABLE:
            absent = series == NONE
            return series.set(absent, None) if absent.any() else series
        return series

    @cached_property
    def events(self) -> polars.DataFrame:
        """One row for each event: thread, op, type, result, object, other, site, size, work_ns, at_ns, took_ns, order,
        relock, stack, as docs/trace-format.md has them.
        """
        return self.read()

    @cached_property
    def objects(self) -> polars.DataFrame:
        """One row for each object with an event: object, type, address (null: not known), n_calls, n_threads, n_failed,
        took_ns (the sum of its calls), first_ns and last_ns.
        """
        addresses = numpy.zeros(self.n_objects, dtype=numpy.uint64)
        self._library.sbt_trace_read_addresses(self._trace, addresses.ctypes.data, self.n_objects)
        named = polars.DataFrame(
            {"object": numpy.arange(self.n_objects, dtype=numpy.uint32), "address": addresses}
        ).with_columns(address=polars.when(polars.col("address") != 0).then(polars.col("address")))
        used = (
            self.events.lazy()
            .filter(polars.col("object").is_not_null())
            .group_by("object")
            .agg(
                polars.col("type").first(),
                n_calls=polars.len(),
                n_threads=polars.col("thread").n_unique(),
                n_failed=(polars.col("result") != 0).sum(),
                took_ns=polars.col("took_ns").sum(),
                first_ns=polars.col("at_ns").min(),
                last_ns=(polars.col("at_ns") + polars.col("took_ns")).max(),
            )
        )
        return (
            used.join(named.lazy(), on="object", how="left")
            .select("object", "type", "address", "n_calls", "n_threads", "n_failed", "took_ns", "first_ns", "last_ns")
            .sort("object")
            .collect()
        )

    @cached_property
    def threads(self) -> polars.DataFrame:
        """One row for each thread with an event: thread, creator (null: not in the trace), routine (the site of its
        start routine; null: not known), n_events, work_ns and took_ns (sums), first_ns, last_ns, ended (false: the
        trace ends before the thread does).
        """
        routines = numpy.empty(self.n_threads, dtype=numpy.uint32)
        self._library.sbt_trace_read_routines(self._trace, routines.ctypes.data, self.n_threads)
        routine = polars.DataFrame(
            {"thread": numpy.arange(self.n_threads, dtype=numpy.uint32), "routine": routines}
        ).with_columns(routine=polars.when(polars.col("routine") != NONE).then("routine"))
        events = self.events.lazy()
        created = events.filter(polars.col("op") == "thread_create", polars.col("other").is_not_null()).select(
            thread="other", creator="thread"
        )
        seen = events.group_by("thread").agg(
            n_events=polars.len(),
            work_ns=polars.col("work_ns").sum(),
            took_ns=polars.col("took_ns").sum(),
            first_ns=polars.col("at_ns").min(),
            last_ns=(polars.col("at_ns") + polars.col("took_ns")).max(),
            ended=((polars.col("op") == "thread_end") & (polars.col("size") == 0)).any(),
        )
        return (
            seen.join(created.unique("thread", keep="first", maintain_order=True), on="thread", how="left")
            .join(routine.lazy(), on="thread", how="left")
            .select("thread", "creator", "routine", "n_events", "work_ns", "took_ns", "first_ns", "last_ns", "ended")
            .sort("thread")
            .collect()
        )

    @cached_property
    def waits(self) -> polars.DataFrame:
        """One row for each call that waited, 1 us or longer: thread, op, type, object, site, at_ns, took_ns, result,
        order as in `events`; the call that ended the wait: from_thread, from_site, release_ns (when it began; null: not
        known); and delay_ns, from there, or from the wait's own beginning if that was later, to the wait's end.

        Times of generated traces are as if each thread had run from 0 without a break.
        """
        return waits.waits(self._clocked(self.read(waits.COLUMNS, waits.OPS)), profile=self.profile)

    @cached_property
    def releases(self) -> polars.DataFrame:
        """One row for each call that ended waits: thread, type, object, at_ns, site, n_waits (how many), waited_ns (the
        sum of these waits), first_delay_ns and last_delay_ns.
        """
        return waits.releases(self.waits)

    def _clocked(self, events: polars.DataFrame) -> polars.DataFrame:
        """The events with times of day, which generated traces have not."""
        if not self.generated:
            return events
        ends = (polars.col("work_ns") + polars.col("took_ns")).cum_sum().over("thread")
        return events.with_columns(at_ns=ends - polars.col("took_ns"))

    @cached_property
    def tallies(self) -> polars.DataFrame:
        """Of a profile: calls that did not wait and are no events, added up by thread, op, type, object and site:
        n_calls, n_failed; and the holds of locks: n_timed of them, which stand for n_held with held_ns in sum,
        held_max_ns. No rows of other traces.
        """
        arrays = {name: numpy.empty(self.n_tallies, dtype=kind) for name, kind in TALLY_COLUMNS.items()}
        table = TallyColumns(*(array.ctypes.data for array in arrays.values()))
        error = Error()
        n = self._library.sbt_trace_read_tallies(self._trace, ctypes.byref(table), self.n_tallies, ctypes.byref(error))
        if n < 0:
            raise self._error(error)
        keys = ["thread", "op", "type", "object", "site"]
        sums = [polars.col(name).sum() for name in TALLY_COLUMNS if name not in (*keys, "held_max_ns")]
        return (
            polars.DataFrame([self._series(name, array[:n]) for name, array in arrays.items()])
            .group_by(keys)
            .agg(*sums, polars.col("held_max_ns").max())
            .sort(keys)
        )

    @cached_property
    def stacks(self) -> polars.DataFrame:
        """The call stacks that events name in `stack`, frame by frame: stack, depth (0: the innermost), site."""
        numbers = [number for number in self.read(["stack"])["stack"].unique().sort() if number != 0]
        frames = (ctypes.c_uint32 * MAX_DEPTH)()
        rows = []
        for number in numbers:
            depth = self._library.sbt_trace_stack(self._trace, number, frames, MAX_DEPTH)
            rows += [(number, i, frames[i]) for i in range(min(depth, MAX_DEPTH))]
        schema = {"stack": polars.UInt32, "depth": polars.UInt32, "site": polars.UInt32}
        return polars.DataFrame(rows, schema, orient="row")

    def end_ns(self) -> int:
        """When the last event ends. Of killed programs and generated traces this reads all events."""
        end, error = ctypes.c_uint64(), Error()
        if self._library.sbt_trace_end(self._trace, ctypes.byref(end), ctypes.byref(error)) < 0:
            raise self._error(error)
        return end.value

    @cached_property
    def sites(self) -> polars.DataFrame:
        """One row for each call site: site, name ("module+0xoffset"; null: not known)."""
        names = [self._library.sbt_trace_site_name(self._trace, site) for site in range(self.n_sites)]
        return polars.DataFrame(
            {
                "site": numpy.arange(self.n_sites, dtype=numpy.uint32),
                "name": polars.Series([n.decode(errors="replace") or None for n in names], dtype=polars.String),
            }
        )


def load(path: str | os.PathLike[str]) -> Trace:
    """Open the trace that `subutai record` has written. TraceError: it is none, or is damaged."""
    return Trace(path)
