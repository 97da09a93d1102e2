# SPDX-License-Identifier: LGPL-2.1-or-later
"""Protocol buffers of `subutai trace to-perfetto`, decoded by the classes of Perfetto's own package, against the frames.

The package's trace processor is not in it: it fetches a program at its first use, which a test must not do. So what the
trace processor does with packets is done here: the state of a sequence, slices of tracks, flows.

usage: perfetto_check.py TRACE PERFETTO        output: TAP
"""

import sys
from collections import defaultdict

import polars
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from points import done, point

import subutai

TRACE, PERFETTO = sys.argv[1:]
trace = subutai.load(TRACE)
packets = perfetto.Trace()
with open(PERFETTO, "rb") as file:
    packets.ParseFromString(file.read())
packets = packets.packet
point(
    packets[0].sequence_flags == packets[0].SEQ_INCREMENTAL_STATE_CLEARED,
    "the sequence begins with a cleared state",
)
point({p.trusted_packet_sequence_id for p in packets} == {1}, "one sequence")

# ---- tracks ----
tracks = {p.track_descriptor.uuid: p.track_descriptor for p in packets if p.HasField("track_descriptor")}
processes = [t for t in tracks.values() if t.HasField("process")]
threads = {t.uuid: t for t in tracks.values() if t.HasField("thread")}
point(
    [(p.process.pid, p.process.process_name) for p in processes] == [(trace.process_id, trace.command)],
    "a track of the process",
)
point(
    len(threads) == trace.threads.height
    and all(t.parent_uuid == processes[0].uuid and t.thread.pid == trace.process_id for t in threads.values())
    and len({t.thread.tid for t in threads.values()}) == len(threads),
    "a track of each thread, in it",
)
number = {uuid: int(t.thread.thread_name.split()[1]) for uuid, t in threads.items()}
point(
    sorted(number.values()) == trace.threads["thread"].to_list(),
    "they have the threads' numbers",
)

# ---- slices ----
names = {kind: {} for kind in ("event_categories", "event_names", "debug_annotation_names")}
strings: dict[int, str] = {}
twice, unknown, order = 0, 0, 0
open_slices: dict[int, dict] = {}
slices: list[dict] = []
for p in packets:
    for kind, known in names.items():
        for entry in getattr(p.interned_data, kind):
            twice += entry.iid in known
            known[entry.iid] = entry.name
    for entry in p.interned_data.debug_annotation_string_values:
        twice += entry.iid in strings
        strings[entry.iid] = entry.str.decode()
    if not p.HasField("track_event"):
        continue
    e = p.track_event
    if e.type == e.TYPE_SLICE_BEGIN:
        order += e.track_uuid in open_slices
        unknown += e.name_iid not in names["event_names"]
        notes = {
            names["debug_annotation_names"][a.name_iid]: strings[a.string_value_iid]
            if a.HasField("string_value_iid")
            else a.uint_value
            for a in e.debug_annotations
        }
        open_slices[e.track_uuid] = {
            "thread": number[e.track_uuid],
            "at": p.timestamp,
            "name": names["event_names"][e.name_iid],
            "category": names["event_categories"][e.category_iids[0]],
            "notes": notes,
            "from": list(e.flow_ids),
        }
    else:
        slices.append(open_slices.pop(e.track_uuid) | {"end": p.timestamp, "to": list(e.terminating_flow_ids)})
point(twice == 0 and unknown == 0, "each name is interned once, before its use")
point(order == 0 and not open_slices, "slices of a track do not overlap, and end")
events = trace.events
if trace.generated:
    clock = (polars.col("work_ns") + polars.col("took_ns")).cum_sum().over("thread")
    events = events.with_columns(at_ns=clock - polars.col("took_ns"))
point(
    [(s["thread"], s["at"], s["end"] - s["at"]) for s in slices]
    == list(events.select("thread", "at_ns", "took_ns").iter_rows()),
    f"a slice for each of {events.height} events",
)
rows = list(events.iter_rows(named=True))


def said(e: dict) -> str:
    """The name of an event's slice."""
    if e["object"] is not None:
        return f"{e['op']} #{e['object']}"
    return f"{e['op']} thread {e['other']}" if e["other"] is not None else e["op"]


point(
    [s["name"] for s in slices] == [said(e) for e in rows],
    "with the names of calls and objects",
)
point(
    [s["category"] for s in slices] == [e["type"] if e["type"] != "none" else "thread" for e in rows],
    "with the types of objects as categories",
)
point(
    [(s["notes"]["work_ns"], s["notes"].get("order", 0)) for s in slices] == [(e["work_ns"], e["order"]) for e in rows],
    "with work and order as arguments",
)
point(
    [("place" in s["notes"], "result" in s["notes"]) for s in slices]
    == [(e["site"] is not None, e["result"] != 0) for e in rows],
    "with place and result, where there are any",
)

# ---- flows ----
begins, ends = defaultdict(list), defaultdict(list)
for s in slices:
    for flow in s["from"]:
        begins[flow].append(s)
    for flow in s["to"]:
        ends[flow].append(s)
point(
    begins.keys() == ends.keys() and all(len(x) == 1 for x in (*begins.values(), *ends.values())),
    f"{len(begins)} flows, each with one beginning and one end",
)
arrows = {
    (ends[f][0]["thread"], ends[f][0]["at"], begins[f][0]["thread"])
    for f in begins
    if not begins[f][0]["name"].startswith("thread_end")
}
waits = trace.waits.filter(polars.col("from_thread").is_not_null())
paired = set(waits.filter(polars.col("op") != "thread_join").select("thread", "at_ns", "from_thread").iter_rows())
point(
    arrows == paired and len(arrows) > 0,
    f"they lead from the calls that the package has as the ends of waits, {len(paired)}, to these",
)
for side, odd in (
    ("only here", arrows - paired),
    ("only in the package", paired - arrows),
):
    for wait in sorted(odd)[:5]:
        print(f"# {side}: {wait}")
point(
    all(begins[f][0]["at"] <= ends[f][0]["end"] for f in begins),
    "no flow leads into the past",
)
joined = trace.waits.filter(polars.col("op") == "thread_join", polars.col("from_thread").is_not_null())
point(
    set(joined.select("thread", "from_thread").iter_rows())
    == {
        (ends[f][0]["thread"], begins[f][0]["thread"]) for f in begins if begins[f][0]["name"].startswith("thread_end")
    },
    f"and from the ends of threads to joins, {joined.height}",
)
done()
