# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page's pictures, by plotly. The page's script draws timeline and histograms, since they follow the reader."""

from collections import defaultdict
from typing import Any

import plotly.graph_objects as go

from .analysis import Analysis
from .text import duration, object_name, plain, shortened

# One colour for one thing in all pictures; each has a contrast of 3 or more to white (WCAG 1.4.11).
COLOURS = {
    "running": "#4d9221",
    "section": "#2166ac",
    "join": "#767676",
    "mutex": "#b2182b",
    "relock": "#e0607a",
    "cond": "#b35806",
    "barrier": "#762a83",
    "rwlock": "#d6604d",
    "sem": "#01665e",
    "spin": "#c51b7d",
    "futex": "#8c6d1f",
    "outside": "#6b6ecf",
    "off_cpu": "#949494",
    "unknown": "#4d4d4d",
    "calls": "#5a7d9a",
}
LABELS = {
    "running": "running",
    "section": "with a lock held",
    "join": "waiting for a thread to end",
    "mutex": "waiting for a mutex",
    "relock": "waiting for a condition's mutex",
    "cond": "waiting for a condition",
    "barrier": "waiting at a barrier",
    "rwlock": "waiting for an rwlock",
    "sem": "waiting for a semaphore",
    "spin": "waiting for a spin lock",
    "futex": "waiting for a futex",
    "outside": "waiting outside: other processes, devices, time",
    "off_cpu": "off the CPU, between calls",
    "unknown": "since its last call, until it was killed: running, or off the CPU",
    "calls": "in calls that did not wait",
}
TEXT = "#1a1a1a"
MAX_BARS = 40
MAX_NODES = 14  # on each side of the graph of waits
MAX_BARRIERS = 5
KINDS = ("mutex", "relock", "rwlock", "spin", "barrier", "cond", "sem", "futex", "join")

Figure = dict[str, Any]


def thread_name(thread: dict[str, Any]) -> str:
    """The start routine and the number."""
    return thread["name"] or f"thread {thread['id']}"


def _figure(traces: list[Any], height: int, sides: int = 10, **layout: Any) -> Figure:
    figure = go.Figure(traces)
    figure.update_layout(
        template="none",
        height=height,
        font={"family": "system-ui, sans-serif", "size": 13, "color": TEXT},
        margin={"l": sides, "r": sides, "t": 10, "b": 10},
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        hoverlabel={"font": {"size": 13}, "align": "left"},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "traceorder": "normal"},
        **layout,
    )
    made: Figure = figure.to_plotly_json()
    return made


def _seconds(ns: float) -> float:
    return ns / 1e9


def _time_axis(title: str) -> dict[str, Any]:
    return {"title": {"text": title}, "tickformat": "~s", "ticksuffix": "s", "gridcolor": "#d9d9d9", "zeroline": False}


def threads(analysis: Analysis) -> Figure | None:
    """Where each thread's time went: bars of what it did, the threads that waited longest."""
    listed = analysis["threads"]
    if not listed:
        return None
    waited = {t["id"]: sum(t["waiting"][kind]["ns"] for kind in KINDS) for t in listed}
    rows = sorted(listed, key=lambda t: -waited[t["id"]])[:MAX_BARS]
    rows.sort(key=lambda t: -int(t["id"]))  # the first at the top
    names = [plain(shortened(thread_name(t), 30)) for t in rows]
    parts: list[tuple[str, list[float]]] = [
        ("running", [t["cpu_ns"] for t in rows]),
        ("off_cpu", [t["off_cpu_ns"] for t in rows]),
        ("unknown", [t["unknown_ns"] for t in rows]),
        ("calls", [t["calls_ns"] for t in rows]),
    ]
    parts += [(kind, [t["waiting"][kind]["ns"] for t in rows]) for kind in KINDS]
    bars = [
        go.Bar(
            name=LABELS[kind],
            y=list(range(len(rows))),
            x=[_seconds(ns) for ns in values],
            orientation="h",
            marker={"color": COLOURS[kind], "line": {"color": "#ffffff", "width": 0.5}},
            text=[duration(ns) for ns in values],
            textposition="none",
            customdata=names,
            hovertemplate="%{customdata}: %{text}<extra>" + LABELS[kind] + "</extra>",
        )
        for kind, values in parts
        if any(values)
    ]
    return _figure(
        bars,
        120 + 20 * len(rows),
        barmode="stack",
        bargap=0.25,
        yaxis={"tickvals": list(range(len(rows))), "ticktext": names, "automargin": True},
        xaxis=_time_axis("time") | {"automargin": True},
    )


def critical_path(analysis: Analysis) -> Figure | None:
    """What the critical path consists of: one bar."""
    path = analysis["critical_path"]
    if not path or not path["ns"]:
        return None
    parts = [
        ("running outside of locks", "work_ns", "running"),
        ("with a lock held", "held_ns", "section"),
        ("from a release to the waiting thread's return", "wakeup_ns", "mutex"),
        ("in calls that did not wait", "calls_ns", "calls"),
        ("off the CPU, between calls", "off_cpu_ns", "off_cpu"),
        ("running, or off the CPU: not known", "unknown_ns", "unknown"),
        ("in waits with an unknown end", "waiting_ns", "cond"),
    ]
    bars = [
        go.Bar(
            name=label,
            y=[""],
            x=[path[key] / path["ns"] * 100],
            orientation="h",
            marker={"color": COLOURS[colour], "line": {"color": "#ffffff", "width": 1}},
            text=[duration(path[key])],
            textposition="none",
            hovertemplate="%{text}, %{x:.1f} %<extra>" + label + "</extra>",
        )
        for label, key, colour in parts
        if path[key]
    ]
    return _figure(
        bars,
        190,
        sides=30,  # for half of the first and of the last tick's text
        barmode="stack",
        bargap=0.1,
        yaxis={"showticklabels": False},
        xaxis={
            "title": {"text": "share of the program's time"},
            "ticksuffix": " %",
            "range": [0, 100],
            "automargin": True,
        },
    )


def release_delays(analysis: Analysis) -> Figure | None:
    """Of each barrier, each thread's delay from the last arrival to its own leaving: the threads by their median."""
    barriers = sorted(analysis["barriers"], key=lambda b: -b["release"]["ns"])[:MAX_BARRIERS]
    barriers = [b for b in barriers if b["threads"]]
    if not barriers:
        return None
    threads_of = {t["id"]: thread_name(t) for t in analysis["threads"]}
    names = {o["id"]: object_name(o) for o in analysis["objects"]}
    traces = []
    colours = ("#762a83", "#2166ac", "#b35806", "#01665e", "#b2182b")
    for barrier, colour in zip(barriers, colours, strict=False):
        rows = sorted(barrier["threads"], key=lambda t: t["delay_median_ns"])
        name = plain(shortened(names.get(barrier["object"], f"barrier #{barrier['object']}")))
        thread_names = [plain(threads_of.get(t["thread"], f"thread {t['thread']}")) for t in rows]
        for key, label, style in (("delay_median_ns", "median", "solid"), ("delay_max_ns", "longest", "dot")):
            traces.append(
                go.Scatter(
                    name=f"{name}, {label}",
                    x=list(range(1, len(rows) + 1)),
                    y=[_seconds(max(t[key], 1)) for t in rows],
                    mode="lines+markers" if len(rows) <= MAX_BARS else "lines",
                    line={"color": colour, "dash": style, "width": 2},
                    marker={"size": 6, "symbol": "circle" if style == "solid" else "diamond"},
                    text=[f"{thread}: {duration(t[key])}" for thread, t in zip(thread_names, rows, strict=True)],
                    customdata=[barrier["object"]] * len(rows),
                    hovertemplate="%{text}<extra>%{fullData.name}</extra>",
                )
            )
    return _figure(
        traces,
        420,
        xaxis={
            "title": {"text": "threads, by their median delay"},
            "automargin": True,
            "gridcolor": "#e6e6e6",
            "dtick": max(1, len(traces[0].x) // 16),
        },
        yaxis=_time_axis("delay after the last arrival") | {"type": "log", "automargin": True, "dtick": "D2"},
    )


def _grouped(analysis: Analysis) -> dict[int, str]:
    """A name for each thread's node: its own, or with many threads, that of all threads with its start routine."""
    if len(analysis["threads"]) <= MAX_NODES:
        return {t["id"]: thread_name(t) for t in analysis["threads"]}
    members: dict[str, list[int]] = defaultdict(list)
    for t in analysis["threads"]:
        members[t["routine"] or thread_name(t)].append(t["id"])
    return {
        t: name if len(group) == 1 else f"{len(group)} threads {name}" for name, group in members.items() for t in group
    }


def waits_for(analysis: Analysis) -> Figure | None:
    """The graph of waits, from left to right: threads that kept others waiting, objects, threads that waited."""
    names, objects = _grouped(analysis), {o["id"]: object_name(o) for o in analysis["objects"]}
    links: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0])
    kept: dict[str, int | None] = {}

    def add(left: str, right: str, row: dict[str, Any]) -> None:
        links[left, right][0] += row["ns"]
        links[left, right][1] += row["n"]

    weights: dict[int, float] = defaultdict(float)
    sides: tuple[dict[str, float], dict[str, float]] = (defaultdict(float), defaultdict(float))
    rows = [row for row in analysis["waits_for"] if row["object"] is not None and row["ns"] > 0]
    for row in rows:
        weights[row["object"]] += row["ns"]
        for side, end in zip(sides, (_holder(row, names), _of(row["waiter"], names)), strict=True):
            side[end] += row["ns"]
    shown = {o for o, _ in sorted(weights.items(), key=lambda item: -item[1])[:MAX_NODES]}
    tops = [dict(sorted(side.items(), key=lambda item: -item[1])[:MAX_NODES]) for side in sides]
    for row in rows:
        middle = objects.get(row["object"], f"object #{row['object']}") if row["object"] in shown else "other objects"
        kept[middle] = row["object"] if row["object"] in shown else None
        left, right = (
            end if end in top else "other threads"
            for end, top in zip((_holder(row, names), _of(row["waiter"], names)), tops, strict=True)
        )
        add(f"<{left}", middle, row)
        add(middle, f">{right}", row)
    if not links:
        return None
    nodes = list(dict.fromkeys(end for pair in links for end in pair))
    number = {node: i for i, node in enumerate(nodes)}
    sankey = go.Sankey(
        arrangement="snap",
        node={
            "label": [plain(shortened(node if node in kept else node[1:])) for node in nodes],
            "color": ["#5a5a5a" if node not in kept else "#762a83" for node in nodes],
            "customdata": [kept.get(node) for node in nodes],
            "pad": 14,
            "thickness": 14,
            "hovertemplate": "%{label}: %{value:.3s}s<extra></extra>",
        },
        link={
            "source": [number[a] for a, _ in links],
            "target": [number[b] for _, b in links],
            "value": [_seconds(ns) for ns, _ in links.values()],
            "color": "rgba(118,42,131,0.25)",
            "customdata": [f"{n:,.0f} waits, {duration(ns)}" for ns, n in links.values()],
            "hovertemplate": "%{source.label} → %{target.label}: %{customdata}<extra></extra>",
        },
        textfont={"size": 13, "color": TEXT},
    )
    return _figure([sankey], min(760, 180 + 26 * max(len(shown), *(len(top) for top in tops))))


def _holder(row: dict[str, Any], names: dict[int, str]) -> str:
    return "timed out" if row["holder"] is None and row["timed_out"] else _of(row["holder"], names)


def _of(thread: int | None, names: dict[int, str]) -> str:
    return "not known" if thread is None else names.get(thread, f"thread {thread}")


def flames(tree: dict[str, list[Any]]) -> Figure | None:
    """The flame graph of wait stacks, as an icicle: the outermost frame at the top."""
    if not tree["values"] or tree["values"][0] == 0:
        return None
    labels = [plain(label) for label in tree["labels"]]
    icicle = go.Icicle(
        ids=tree["ids"],
        labels=labels,
        parents=tree["parents"],
        values=tree["values"],
        branchvalues="total",
        tiling={"orientation": "v", "pad": 1},
        pathbar={"visible": True, "thickness": 22},
        marker={"colors": [_warm(label) for label in labels], "line": {"color": "#ffffff", "width": 1}},
        textfont={"color": TEXT},
        text=[duration(value) for value in tree["values"]],
        textinfo="label",
        hovertemplate="%{label}<br>%{text}, %{percentRoot:.1%} of all waits<extra></extra>",
        sort=True,
    )
    return _figure([icicle], 480)


def _warm(label: str) -> str:
    """A light colour of its own for each frame, so that dark text can be read on it."""
    mixed = sum(ord(c) * 31**i for i, c in enumerate(label[:24]))
    return f"hsl({14 + mixed % 40}, {70 + mixed % 20}%, {72 + mixed % 11}%)"
