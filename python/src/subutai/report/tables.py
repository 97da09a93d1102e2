# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page's tables: what each column says, as text and as the number to sort by."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .analysis import Analysis
from .figures import KINDS, thread_name
from .text import count, duration, object_name, share

Row = dict[str, Any]
MAX_ROWS = 2000
LEAST_SHARE = 0.0005  # of the critical path: less is not worth a row


@dataclass
class Cell:
    """One cell. `object`: the cell is a button that selects this object. `order`: what to sort by."""

    text: str
    order: float | str | None = None
    object: int | None = None


@dataclass
class Table:
    """`sorted_by`: the column that the rows come sorted by, downwards. `cut`: how many rows are not shown."""

    key: str
    caption: str
    headings: list[tuple[str, bool]]  # and whether it is a number
    rows: list[list[Cell]] = field(default_factory=list)
    sorted_by: int = 0
    cut: int = 0


class Names:
    """The names of objects, threads and sites by number."""

    def __init__(self, analysis: Analysis) -> None:
        self._objects = {o["id"]: object_name(o) for o in analysis["objects"]}
        self._threads = {t["id"]: thread_name(t) for t in analysis["threads"]}
        self._sites = {s["id"]: s["place"] for s in analysis["sites"]}
        self._functions = {s["id"]: s["function"] or s["place"] for s in analysis["sites"]}

    def object(self, number: int | None) -> Cell:
        """An object, as a button."""
        if number is None:
            return Cell("—", "")
        name = self._objects.get(number, f"object #{number}")
        return Cell(name, name, number)

    def thread(self, number: int | None) -> str:
        """A thread's name; "not known" of none."""
        return "not known" if number is None else self._threads.get(number, f"thread {number}")

    def site(self, number: int | None) -> str:
        """A call site's place."""
        return "" if number is None else self._sites.get(number) or ""

    def function(self, number: int) -> str:
        """The function that a call site is in."""
        return self._functions.get(number) or "?"


def _ns(value: float | None) -> Cell:
    return Cell(duration(value), -1 if value is None else value)


def _n(value: float | None) -> Cell:
    return Cell(count(value), -1 if value is None else value)


def _part(value: float | None) -> Cell:
    return Cell(share(value), -1 if value is None else value)


def _text(value: str | None) -> Cell:
    return Cell(value or "", value or "")


Column = tuple[str, bool, Callable[[Row], Cell]]


def _table(key: str, caption: str, rows: Iterable[Row], columns: list[Column], sorted_by: int) -> Table | None:
    listed = list(rows)
    if not listed:
        return None
    return Table(
        key,
        caption,
        [(heading, number) for heading, number, _ in columns],
        [[get(row) for _, _, get in columns] for row in listed[:MAX_ROWS]],
        sorted_by,
        max(0, len(listed) - MAX_ROWS),
    )


def _sum(kind: str, key: str) -> Callable[[Row], Cell]:
    return lambda row: _ns((row[kind] or {}).get(key))


def _hold(key: str) -> Callable[[Row], Cell]:
    def cell(row: Row) -> Cell:
        made = _sum("hold", key)(row)
        known = row["hold_of"] == "waited" and row["hold"]
        return Cell(f"{made.text} (if waited for)", made.order) if known else made

    return cell


def of(analysis: Analysis) -> dict[str, Table]:
    """All tables that have rows, by key."""
    names = Names(analysis)
    made = [
        _objects(analysis, names),
        _groups(analysis, names),
        _unended(analysis, names),
        _pairs(analysis, names),
        _site_pairs(analysis, names),
        _chains(analysis, names),
        _barriers(analysis, names),
        _convoys(analysis, names),
        _tasks(analysis, names),
        _orders(analysis, names),
        _path(analysis, names),
        _threads(analysis),
    ]
    return {table.key: table for table in made if table is not None}


def _objects(analysis: Analysis, names: Names) -> Table | None:
    return _table(
        "objects",
        "Objects: a click on a name shows that object in the timeline and in the histograms",
        analysis["objects"],
        [
            ("object", False, lambda o: names.object(o["id"])),
            ("type", False, lambda o: _text(o["type"])),
            ("calls", True, lambda o: _n(o["acquisitions"])),
            ("waited", True, lambda o: _n(o["contended"])),
            ("waiting, sum", True, _sum("wait", "ns")),
            ("mean", True, _sum("wait", "mean_ns")),
            ("p99", True, _sum("wait", "p99_ns")),
            ("longest", True, _sum("wait", "max_ns")),
            ("hold, mean", True, _hold("mean_ns")),
            ("longest hold", True, _hold("max_ns")),
            ("critical path", True, lambda o: _part(o["path_share"])),
            ("made at", False, lambda o: _text(names.site(o["made"]))),
        ],
        4,
    )


def _groups(analysis: Analysis, names: Names) -> Table | None:
    return _table(
        "groups",
        "Objects of one type that were made at one place",
        analysis["groups"],
        [
            ("made at", False, lambda g: _text(names.site(g["made"]))),
            ("type", False, lambda g: _text(g["type"])),
            ("objects", True, lambda g: _n(g["objects"])),
            ("calls", True, lambda g: _n(g["acquisitions"])),
            ("waited", True, lambda g: _n(g["contended"])),
            ("waiting, sum", True, lambda g: _ns(g["wait_ns"])),
            ("held, sum", True, lambda g: _ns(g["hold_ns"])),
            ("calls' cost", True, lambda g: _ns(g["calls_ns"])),
        ],
        5,
    )


def _ender(wait: Row, member: str, name: Callable[[int | None], str]) -> Cell:
    """The thread or place that a wait was for; no call ended one that timed out."""
    return _text("timed out" if wait[member] is None and wait["timed_out"] else name(wait[member]))


def _kind(wait: Row) -> Cell:
    return _text(f"{wait['kind']}, timed out" if wait["timed_out"] and wait["holder"] is not None else wait["kind"])


def _pairs(analysis: Analysis, names: Names) -> Table | None:
    return _table(
        "pairs",
        "Which thread waited for which",
        analysis["waits_for"],
        [
            ("waiting thread", False, lambda w: _text(names.thread(w["waiter"]))),
            ("kept waiting by", False, lambda w: _ender(w, "holder", names.thread)),
            ("object", False, lambda w: names.object(w["object"])),
            ("wait", False, _kind),
            ("waits", True, lambda w: _n(w["n"])),
            ("sum", True, lambda w: _ns(w["ns"])),
        ],
        5,
    )


def _unended(analysis: Analysis, names: Names) -> Table | None:
    def at(wait: Row) -> Cell:
        return names.object(wait["object"]) if wait["joins"] is None else _text(names.thread(wait["joins"]))

    def held_by(wait: Row) -> Cell:
        return _text(None if wait["holder"] is None else names.thread(wait["holder"]))

    return _table(
        "unended",
        "Waits that had not ended when the program did, and count until then",
        analysis["unended"],
        [
            ("waiting thread", False, lambda w: _text(names.thread(w["thread"]))),
            ("wait", False, lambda w: _text(w["kind"])),
            ("at", False, at),
            ("place", False, lambda w: _text(names.site(w["site"]))),
            ("since", True, lambda w: _ns(w["since_ns"])),
            ("waited", True, lambda w: _ns(w["ns"])),
            *([("held by", False, held_by)] if any(w["holder"] is not None for w in analysis["unended"]) else []),
        ],
        5,
    )


def _site_pairs(analysis: Analysis, names: Names) -> Table | None:
    return _table(
        "sites",
        "Which place in the program waited for which",
        analysis["site_waits"],
        [
            ("waited at", False, lambda w: _text(names.site(w["waiter_site"]))),
            ("while held, or until woken, at", False, lambda w: _ender(w, "holder_site", names.site)),
            ("object", False, lambda w: names.object(w["object"])),
            ("wait", False, lambda w: _text(w["kind"])),
            ("waits", True, lambda w: _n(w["n"])),
            ("sum", True, lambda w: _ns(w["ns"])),
        ],
        5,
    )


def _chains(analysis: Analysis, names: Names) -> Table | None:
    def links(row: Row) -> Cell:
        text = ", held by a thread that waited for ".join(names.object(link["object"]).text for link in row["links"])
        return Cell(text, text)

    return _table(
        "chains",
        "Chains: threads that waited for threads that waited themselves",
        analysis["chains"],
        [
            ("a thread waited for", False, links),
            ("times", True, lambda c: _n(c["n"])),
            ("sum", True, lambda c: _ns(c["ns"])),
        ],
        2,
    )


def _barriers(analysis: Analysis, names: Names) -> Table | None:
    return _table(
        "barriers",
        "Barriers: imbalance is from the first to the last arrival, release from there until the last thread has left",
        analysis["barriers"],
        [
            ("barrier", False, lambda b: names.object(b["object"])),
            ("threads", True, lambda b: _n(b["count"])),
            ("generations", True, lambda b: _n(b["generations"])),
            ("imbalance, sum", True, _sum("imbalance", "ns")),
            ("median", True, _sum("imbalance", "median_ns")),
            ("longest", True, _sum("imbalance", "max_ns")),
            ("release, sum", True, _sum("release", "ns")),
            ("median release", True, _sum("release", "median_ns")),
            ("p99", True, _sum("release", "p99_ns")),
            ("longest release", True, _sum("release", "max_ns")),
        ],
        3,
    )


def _convoys(analysis: Analysis, names: Names) -> Table | None:
    return _table(
        "convoys",
        "Convoys: each acquisition had to wait for the one before",
        analysis["convoys"],
        [
            ("lock", False, lambda c: names.object(c["object"])),
            ("convoys", True, lambda c: _n(c["n"])),
            ("acquisitions in them", True, lambda c: _n(c["acquisitions"])),
            ("longest", True, lambda c: _n(c["longest"])),
            ("threads", True, lambda c: _n(c["threads"])),
            ("held", True, lambda c: _ns(c["held_ns"])),
            ("handed over", True, lambda c: _ns(c["handover_ns"])),
        ],
        6,
    )


def _tasks(analysis: Analysis, names: Names) -> Table | None:
    return _table(
        "tasks",
        "OpenMP's tasks, by their functions",
        analysis["tasks"],
        [
            ("task", False, lambda t: _text(names.site(t["site"]))),
            ("times", True, lambda t: _n(t["n"])),
            ("sum", True, lambda t: _ns(t["ns"])),
            ("mean", True, lambda t: _ns(t["ns"] // t["n"])),
            ("longest", True, lambda t: _ns(t["max_ns"])),
        ],
        2,
    )


def _orders(analysis: Analysis, names: Names) -> Table | None:
    rows = [order | {"circle": i + 1} for i, circle in enumerate(analysis["lock_order"]) for order in circle["orders"]]
    stacks: Column = ("taken in", False, lambda o: _text(" < ".join(names.function(site) for site in o["stack"])))
    return _table(
        "orders",
        "Locks taken in both orders: the program may deadlock",
        rows,
        [
            ("circle", True, lambda o: _n(o["circle"])),
            ("held", False, lambda o: names.object(o["held"])),
            ("locked at", False, lambda o: _text(names.site(o["held_site"]))),
            ("taken while held", False, lambda o: names.object(o["taken"])),
            ("taken at", False, lambda o: _text(names.site(o["taken_site"]))),
            ("thread", False, lambda o: _text(names.thread(o["thread"]))),
            ("times", True, lambda o: _n(o["n"])),
            *([stacks] if any(order["stack"] for order in rows) else []),
        ],
        6,
    )


def _path(analysis: Analysis, names: Names) -> Table | None:
    return _table(
        "path",
        "Objects on the critical path",
        [o for o in analysis["critical_path"]["objects"] if o["share"] >= LEAST_SHARE],
        [
            ("object", False, lambda o: names.object(o["object"])),
            ("sum", True, lambda o: _ns(o["ns"])),
            ("share", True, lambda o: _part(o["share"])),
            ("held", True, lambda o: _ns(o["held_ns"])),
            ("handed over", True, lambda o: _ns(o["wakeup_ns"])),
            ("waited", True, lambda o: _ns(o["waiting_ns"])),
        ],
        1,
    )


def _threads(analysis: Analysis) -> Table | None:
    used = [kind for kind in KINDS if analysis["summary"]["waiting"][kind]["n"]]

    is_known = analysis["summary"]["no_core_ns"] is not None

    def waited(kind: str) -> Callable[[Row], Cell]:
        return lambda t: _ns(t["waiting"][kind]["ns"])

    return _table(
        "threads",
        "Threads",
        analysis["threads"],
        [
            ("thread", False, lambda t: _text(thread_name(t))),
            ("number", True, lambda t: _n(t["id"])),
            ("life", True, lambda t: _ns(t["life_ns"])),
            ("running", True, lambda t: _ns(t["cpu_ns"])),
            ("off the CPU", True, lambda t: _ns(t["off_cpu_ns"])),
            *([("of that, without a core", True, lambda t: _ns(t["no_core_ns"]))] if is_known else []),
            ("in sections", True, lambda t: _part(t["sections"]["share"])),
            *[(f"waiting: {kind}", True, waited(kind)) for kind in used],
            ("idle", True, lambda t: _ns(t["idle_ns"])),
            ("critical path", True, lambda t: _ns(t["path_ns"])),
        ],
        2,
    )
