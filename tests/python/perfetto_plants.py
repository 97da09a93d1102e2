# SPDX-License-Identifier: LGPL-2.1-or-later
"""Does each rule of perfetto_check.py find the mistakes that it is about? Each is made in a file that is right.

usage: perfetto_plants.py TRACE PERFETTO        of a program with two joins, failures and call sites
output: TAP
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from perfetto_check import check
from points import done, point
from trace_processor import Processor

import subutai


class File:
    """The messages of a file."""

    def __init__(self, data: bytes) -> None:
        self.all = perfetto.Trace.FromString(data)
        self.packets = [p for p in self.all.packet if p.HasField("track_event")]
        self.events = [p.track_event for p in self.packets]
        self.tracks = [p.track_descriptor for p in self.all.packet if p.HasField("track_descriptor")]
        self.arrows = [e.terminating_flow_ids for e in self.events if e.terminating_flow_ids]
        self.names = [n for p in self.all.packet for n in p.interned_data.event_names]

    def part(self) -> perfetto.TracePacket:
        """The beginning of the first part of a wait, after what ended it."""
        return next(
            p for p, then in zip(self.packets, self.packets[1:], strict=False) if then.track_event.terminating_flow_ids
        )

    def argument(self, name: str) -> perfetto.DebugAnnotation:
        """The first with this name."""
        (iid,) = (n.iid for n in self.all.packet[0].interned_data.debug_annotation_names if n.name == name)
        return next(a for e in self.events for a in e.debug_annotations if a.name_iid == iid)

    def cut(self, packet: perfetto.TracePacket) -> None:
        """Take a packet away."""
        self.all.packet.remove(packet)


def to(message: Any, field: str, value: Any) -> None:
    """Another value for a field."""
    setattr(message, field, value)


def exchange(f: File) -> None:
    """The ends of the first two arrows."""
    f.arrows[0][0], f.arrows[1][0] = f.arrows[1][0], f.arrows[0][0]


def on_another_track(f: File) -> None:
    """The first slice of the first thread, on the last thread's track."""
    for event in f.events[:2]:
        event.track_uuid = f.tracks[-1].uuid


# The rule that finds it, what it is, and how it is made.
PLANTS: tuple[tuple[str, str, Callable[[File], None]], ...] = (
    (
        "names",
        "no word that the names begin anew",
        lambda f: to(f.all.packet[0], "sequence_flags", 0),
    ),
    (
        "interned",
        "a name that is there twice",
        lambda f: f.all.packet[-1].interned_data.event_names.append(f.names[0]),
    ),
    (
        "process",
        "a process with another number",
        lambda f: to(f.tracks[0].process, "pid", 1),
    ),
    (
        "threads",
        "two threads of one number",
        lambda f: to(f.tracks[1].thread, "thread_name", f.tracks[2].thread.thread_name),
    ),
    (
        "routines",
        "a thread without its routine's name",
        lambda f: to(f.tracks[-1].thread, "thread_name", "thread 3"),
    ),
    ("times", "a slice without an end", lambda f: f.cut(f.packets[1])),
    (
        "times",
        "a slice that ends a nanosecond late",
        lambda f: to(f.packets[1], "timestamp", f.packets[1].timestamp + 1),
    ),
    ("times", "a slice on another thread's track", on_another_track),
    (
        "names",
        "a slice with another one's name",
        lambda f: to(f.events[0], "name_iid", f.events[2].name_iid),
    ),
    ("names", "a name that is not there", lambda f: to(f.events[0], "name_iid", 4000)),
    (
        "arguments",
        "another amount of work",
        lambda f: to(f.argument("work_ns"), "uint_value", 7),
    ),
    (
        "results",
        "another result",
        lambda f: to(
            f.argument("result"),
            "string_value_iid",
            f.argument("place").string_value_iid,
        ),
    ),
    (
        "places",
        "a place that is another's",
        lambda f: to(
            f.argument("place"),
            "string_value_iid",
            f.argument("result").string_value_iid,
        ),
    ),
    (
        "parts",
        "a delay that begins a nanosecond late",
        lambda f: to(f.part(), "timestamp", f.part().timestamp + 1),
    ),
    (
        "flows",
        "an arrow's end with a number that no beginning has",
        lambda f: f.arrows[0].__setitem__(0, 4000),
    ),
    (
        "flows",
        "an arrow's beginning that is away",
        lambda f: [e.ClearField("flow_ids") for e in f.events],
    ),
    ("flows", "the ends of two arrows exchanged", exchange),
)


def main(trace: subutai.Trace, data: bytes) -> None:
    """Each mistake, in a file of its own."""
    processor = Processor()
    for rule, text, make in PLANTS:
        file = File(data)
        make(file)
        broken = [name for name, good, _ in check(trace, processor, file.all.SerializeToString()) if not good]
        point(rule in broken, f"{text}: found")
        print(f"# {', '.join(broken)}")
    processor.close()
    done()


if __name__ == "__main__":
    main(subutai.load(sys.argv[1]), Path(sys.argv[2]).read_bytes())
