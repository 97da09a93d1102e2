# SPDX-License-Identifier: LGPL-2.1-or-later
"""subutai.load against `subutai trace dump --json`, event by event.

usage: load.py COMMAND TRACE CUT DAMAGED        output: TAP
"""

import json
import os
import subprocess
import sys

import polars
from points import done, point, raises

import subutai

COMMAND, TRACE, CUT, DAMAGED = sys.argv[1:]

said = subprocess.run(
    [COMMAND, "trace", "dump", "--json", TRACE],
    capture_output=True,
    text=True,
    check=True,
).stdout
dumped = [json.loads(line) for line in said.splitlines()]
info = json.loads(
    subprocess.run(
        [COMMAND, "trace", "info", "--json", TRACE],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
)
trace = subutai.load(TRACE)
events = trace.events.to_dicts()
point(
    len(events) == len(dumped) == trace.n_events > 100,
    f"{len(dumped)} events, as many as dump has",
)
for name in ("thread", "op", "at_ns", "work_ns", "took_ns", "order", "result"):
    point([e[name] for e in events] == [d[name] for d in dumped], f"{name} of each")
for name in ("object", "other", "site"):
    point(
        [e[name] for e in events] == [d.get(name) for d in dumped],
        f"{name} of each, null where there is none",
    )
for name in ("relock", "size"):
    point(
        [e[name] for e in events] == [d.get(name, 0) for d in dumped],
        f"{name} of each, 0 where there is none",
    )
point(
    [e["type"] for e in events] == [d.get("type", "none") for d in dumped],
    "the type of each object, none without one",
)
subutai.trace.PART = 10  # of so few events each CPU has some, also beside one CPU only
os.sched_getaffinity = lambda _: range(4)
point(trace.read().equals(trace.events), "the same by several CPUs")
places = dict(zip(trace.sites["site"], trace.sites["name"], strict=True))
point(
    [places[e["site"]] if e["site"] is not None else None for e in events] == [d.get("place") for d in dumped]
    and len(set(places.values())) > 3,
    "the call site of each",
)
point(
    trace.whole and trace.engine == "glibc" and trace.command == info["command"] and "subject" in trace.command,
    "what the trace says of itself",
)

used = {}
for d in dumped:
    if "object" in d:
        used.setdefault(d["object"], []).append(d)
objects = trace.objects.to_dicts()
point([o["object"] for o in objects] == sorted(used), "one row for each object")
for name, of in {
    "type": lambda all_: all_[0]["type"],
    "address": lambda all_: int(all_[0]["address"], 0),
    "n_calls": len,
    "n_threads": lambda all_: len({d["thread"] for d in all_}),
    "n_failed": lambda all_: sum(d["result"] != 0 for d in all_),
    "took_ns": lambda all_: sum(d["took_ns"] for d in all_),
    "first_ns": lambda all_: min(d["at_ns"] for d in all_),
    "last_ns": lambda all_: max(d["at_ns"] + d["took_ns"] for d in all_),
}.items():
    point(
        [o[name] for o in objects] == [of(used[o["object"]]) for o in objects],
        f"{name} of each object",
    )

threads = trace.threads.to_dicts()
creators = {d["other"]: d["thread"] for d in dumped if d["op"] == "thread_create"}
own = {t["thread"]: [d for d in dumped if d["thread"] == t["thread"]] for t in threads}
point(
    [t["thread"] for t in threads] == sorted({d["thread"] for d in dumped}),
    "one row for each thread",
)
point(
    [t["creator"] for t in threads] == [creators.get(t["thread"]) for t in threads],
    "the creator of each thread",
)
point(
    [t["n_events"] for t in threads] == [len(own[t["thread"]]) for t in threads],
    "the events of each thread",
)
for name in ("work_ns", "took_ns"):
    point(
        [t[name] for t in threads] == [sum(d[name] for d in own[t["thread"]]) for t in threads],
        f"{name} of each",
    )
point(
    [t["ended"] for t in threads] == [any(d["op"] == "thread_end" for d in own[t["thread"]]) for t in threads],
    "which threads have ended",
)

few = trace.read(["took_ns", "op"])
point(
    few.columns == ["took_ns", "op"] and few.equals(trace.events.select("took_ns", "op")),
    "two columns are two columns",
)
point(
    few["op"].dtype == polars.Enum(few["op"].dtype.categories),
    "operations are an enumeration",
)
point(
    raises(
        ValueError,
        "unknown column 'took' (legal: thread, op,",
        lambda: trace.read(["took"]),
    ),
    "unknown column",
)
cut = subutai.load(CUT)
point(
    not cut.whole and 0 < cut.events.height == cut.n_events < trace.n_events,
    "a trace that was cut: as far as it goes",
)
point(
    cut.events.join(trace.events.group_by("thread").agg(), on="thread", how="anti").height == 0
    and cut.events.equals(
        polars.concat(
            trace.events.filter(thread=t).head(cut.events.filter(thread=t).height)
            for t in cut.events["thread"].unique(maintain_order=True)
        )
    ),
    "each thread's events up to there",
)
point(
    raises(subutai.TraceError, "at byte", lambda: subutai.load(DAMAGED).events),
    "a damaged trace",
)
point(
    raises(subutai.TraceError, "No such file", lambda: subutai.load("no-such.sbt")),
    "no such file",
)
point(
    raises(subutai.TraceError, "not a trace", lambda: subutai.load(__file__)),
    "another file",
)
done()
