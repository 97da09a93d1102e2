# SPDX-License-Identifier: LGPL-2.1-or-later
"""Perfetto's files, loaded by Perfetto's own trace processor, and asked by SQL: all that the trace has is there.

usage: perfetto_check.py TRACE PERFETTO...         pairs of files
output: TAP
"""

import errno
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from points import done, point
from trace_processor import Processor

import subutai
from subutai.waits import LOCKS, UNLOCKS

PROBLEMS = """
    select name, value from stats where severity in ('error', 'data_loss') and value > 0
    union all select name, value from stats where name like 'flow_%' and value > 0"""
THREADS = """
    select thread.name, process.pid, process.name, tid from thread_track join thread using (utid) join process using (upid)"""
SLICES = """
    select thread.name, ts, dur, depth, slice.name, category, extract_arg(slice.arg_set_id, 'debug.work_ns'),
        extract_arg(slice.arg_set_id, 'debug.order'), extract_arg(slice.arg_set_id, 'debug.mutex'),
        extract_arg(slice.arg_set_id, 'debug.result'), extract_arg(slice.arg_set_id, 'debug.place')
    from slice join thread_track on track_id = thread_track.id join thread using (utid)
    where depth = 0 order by slice.id"""
PARTS = """
    select thread.name, wait.ts, part.ts, part.dur, part.depth, part.name, part.category = wait.category
    from slice part left join slice wait on part.parent_id = wait.id
        join thread_track on part.track_id = thread_track.id join thread using (utid)
    where part.depth > 0"""
FLOWS = """
    select waiter.name, wait.ts, wait.ts + wait.dur, releaser.name, release.ts, release.ts + release.dur, release.name
    from flow join slice part on slice_in = part.id join slice wait on part.parent_id = wait.id
        join slice release on slice_out = release.id
        join thread_track waits on wait.track_id = waits.id join thread waiter on waits.utid = waiter.utid
        join thread_track releases on release.track_id = releases.id join thread releaser on releases.utid = releaser.utid"""

Result = tuple[str, bool, str]  # the rule, is it kept, what it says


def number(thread: str) -> int:
    """Of a thread, by its name."""
    return int(thread.split()[1])


def name(e: dict) -> str:
    """The name of an event's slice."""
    if e["object"] is not None:
        return f"{e['op']} #{e['object']}"
    return f"{e['op']} thread {e['other']}" if e["other"] is not None else e["op"]


def odd(got: list, wanted: list) -> str:
    """The first of what only one has."""
    got, wanted = Counter(got), Counter(wanted)
    return "".join(
        f"\n# {side}: {x}"
        for side, y in (("only there", got - wanted), ("only here", wanted - got))
        for x in list(y)[:3]
    )


def tracks(trace: subutai.Trace, processor: Processor) -> Iterator[Result]:
    """The process and its threads."""
    threads = processor.rows(THREADS)
    good = {row[1:3] for row in threads} == {(trace.process_id or 1, trace.command)}
    yield "process", good, "the process has its number and command"
    good = sorted(number(row[0]) for row in threads) == trace.threads["thread"].to_list()
    good = good and len({row[3] for row in threads}) == len(threads)
    yield "threads", good, f"it has a track of each thread, {len(threads)}"
    routines = dict(trace.threads.select("thread", "routine").iter_rows())
    named = {(routines.get(number(row[0])), tuple(row[0].split()[2:])) for row in threads}
    good = all((routine is None) == (words == ()) for routine, words in named)
    good = good and len(named) == len({routine for routine, _ in named}) == len({words for _, words in named})
    yield (
        "routines",
        good,
        "threads have the names of their start routines" + "".join(f"\n# {row[0]}" for row in threads[-1:]),
    )


def clocked(trace: subutai.Trace) -> polars.DataFrame:
    """The events with times, which generated traces have not."""
    if not trace.generated:
        return trace.events
    clock = (polars.col("work_ns") + polars.col("took_ns")).cum_sum().over("thread")
    return trace.events.with_columns(at_ns=clock - polars.col("took_ns"))


def slices(trace: subutai.Trace, processor: Processor) -> Iterator[Result]:
    """The calls."""
    rows = list(clocked(trace).iter_rows(named=True))
    found = sorted(processor.rows(SLICES), key=lambda row: number(row[0]))  # in a thread, in the order of its calls
    times = [(number(row[0]), *row[1:3]) for row in found]
    wanted = [(e["thread"], e["at_ns"], e["took_ns"]) for e in rows]
    yield (
        "times",
        times == wanted,
        f"a slice for each of {len(rows)} events, to the nanosecond" + odd(times, wanted),
    )
    wanted = [(name(e), e["type"] if e["type"] != "none" else "thread") for e in rows]
    wanted = [(n, "outside" if n == "outside_wait" else c) for n, c in wanted]
    got = [row[4:6] for row in found]
    yield (
        "names",
        got == wanted,
        "with calls and objects as names, and types as categories" + odd(got, wanted),
    )
    wanted = [
        (
            e["work_ns"],
            e["order"] or None,
            e["other"] if e["op"] == "cond_wait" else None,
        )
        for e in rows
    ]
    got = [row[6:9] for row in found]
    yield (
        "arguments",
        got == wanted,
        "with work, order and the condition's mutex as arguments" + odd(got, wanted),
    )
    wanted = [e["result"] for e in rows]
    got = [getattr(errno, row[9] or "", 0) for row in found]
    yield (
        "results",
        got == wanted,
        "with results of calls that failed" + odd(got, wanted),
    )
    places = {(e["site"], row[10]) for e, row in zip(rows, found, strict=False)}
    modules = {site: Path(text).name.rsplit("+", 1)[0] for site, text in trace.sites.iter_rows()}
    good = len(places) == len({site for site, _ in places})
    good = good and all(a == b if a is None or b is None else modules[a] in b for a, b in places)
    yield (
        "places",
        good,
        "with a place in the right module where the call has one, of each call site the same",
    )


def ended_early(trace: subutai.Trace, waits: polars.DataFrame) -> polars.Series:
    """Of a profile's waits for locks: by the recorder's times the wait was over before the unlock began that ended it.

    The package has them as ended at their end. An arrow would go backwards, so the file has none.
    """
    unlocks = clocked(trace).filter(polars.col("op").is_in(list(UNLOCKS)), polars.col("order") > 0)
    began = unlocks.select("object", "order", began="at_ns")
    locks = polars.col("op").is_in(list(LOCKS))
    late = polars.col("began") > polars.col("at_ns") + polars.col("took_ns")
    found = waits.with_row_index("row").join(began, on=["object", "order"], how="left").sort("row")
    return found.select(early=locks & late.fill_null(value=False))["early"]


def flows(trace: subutai.Trace, processor: Processor) -> Iterator[Result]:
    """From the calls that ended waits to these."""
    waits = trace.waits.filter(polars.col("from_thread").is_not_null())
    if trace.profile:
        waits = waits.filter(~ended_early(trace, waits))
    begin = polars.max_horizontal("at_ns", "release_ns")
    wanted = list(waits.select("thread", "at_ns", begin.alias("begin"), "delay_ns").iter_rows())
    parts = processor.rows(PARTS)
    got = [(number(row[0]), *row[1:4]) for row in parts]
    good = sorted(got) == sorted(wanted) and {row[4:] for row in parts} <= {(1, "released", 1)}
    yield (
        "parts",
        good,
        f"{len(wanted)} waits have a part after what ended them, the delay" + odd(got, wanted),
    )
    found = [(number(row[0]), *row[1:3], number(row[3]), *row[4:]) for row in processor.rows(FLOWS)]
    end = polars.col("at_ns").add(polars.col("took_ns")).alias("end")
    wanted = list(waits.select("thread", "at_ns", end, "from_thread", "release_ns").iter_rows())
    got = [(*row[:4], row[5] if row[6].startswith("thread_end") else row[4]) for row in found]
    text = f"{len(wanted)} arrows from the calls that the package has as the ends of waits to these parts"
    yield "flows", sorted(got) == sorted(wanted), text + odd(got, wanted)


def check(trace: subutai.Trace, processor: Processor, data: bytes) -> Iterator[Result]:
    """All rules."""
    error = processor.load(data)
    yield "loads", error == "", "the trace processor loads it" + error
    problems = processor.rows(PROBLEMS)
    yield (
        "problems",
        problems == [],
        "and finds no error and nothing lost" + "".join(f"\n# {p}" for p in problems),
    )
    packets = perfetto.Trace.FromString(data).packet
    kinds = (
        "event_categories",
        "event_names",
        "debug_annotation_names",
        "debug_annotation_string_values",
    )
    known = Counter((k, entry.iid) for p in packets for k in kinds for entry in getattr(p.interned_data, k))
    yield (
        "interned",
        max(known.values()) == 1,
        f"each of {len(known)} names is in the file once",
    )
    for part in (tracks, slices, flows):
        yield from part(trace, processor)


def main(files: list[str]) -> None:
    """Each pair of files."""
    processor = Processor()
    for trace, file in zip(files[::2], files[1::2], strict=True):
        for _, good, text in check(subutai.load(trace), processor, Path(file).read_bytes()):
            text, *notes = text.split("\n")
            point(good, f"{trace}: {text}")
            print(*notes, sep="\n", end="\n" if notes else "")
    processor.close()
    done()


if __name__ == "__main__":
    main(sys.argv[1:])
