# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of `subutai report --html`: one file that needs no other and no network.

Jinja fills in the template. The page carries plotly.js (of the package plotly) for the pictures and DataTables (of the
package itables) for the tables; both come with their packages and are put into the page.
"""

import importlib.resources
import json
from pathlib import Path
from typing import Any

import itables
import jinja2
import markupsafe
import plotly.offline

from .. import __version__, lanes
from ..trace import Trace
from . import figures, stacks, tables
from .analysis import Analysis
from .text import count, duration, figure, object_name, share, shortened

WEB = importlib.resources.files(__package__) / "web"


def _script_json(value: Any) -> markupsafe.Markup:
    """JSON that no HTML parser finds an end of its element in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return markupsafe.Markup(text)


def _web(name: str) -> markupsafe.Markup:
    return markupsafe.Markup((WEB / name).read_text(encoding="utf-8"))


def _library(name: str) -> str:
    """A file that comes with the package itables."""
    return (Path(itables.__file__).parent / "html" / name).read_text(encoding="utf-8")


def _misses(a_section: float | None) -> list[tuple[str, str, str]]:
    if a_section is None:
        return []
    return [("cache misses", f"{a_section:.1f}", "in a section, on average, in user code")]


def _no_core(s: dict[str, Any]) -> list[tuple[str, str, str]]:
    if s["no_core_ns"] is None:
        return []
    life = max(1, s["life_ns"])
    note = f"of the threads' time, between calls; in calls too: {share(s['queued_ns'] / life)}"
    return [("without a core", share(s["no_core_ns"] / life), note)]


def facts(analysis: Analysis) -> list[tuple[str, str, str]]:
    """The key figures: what, how much, what it means."""
    s = analysis["summary"]
    return [
        ("run time", duration(s["wall_ns"]), f"{count(analysis['trace']['events'])} events"),
        (
            "processor time",
            duration(s["cpu_ns"]) + (f" and up to {duration(s['unknown_ns'])} more" if s["unknown_ns"] else ""),
            f"{s['parallelism']:.2f} threads ran on average",
        ),
        ("threads", count(s["threads"]), f"{count(analysis['trace']['objects'])} objects"),
        (
            "in sections",
            share(s["sections"]["share"]),
            "of the threads' time: in locks, waiting for them and holding them",
        ),
        *_misses(s["sections"]["cache_misses"]),
        *_no_core(s),
        ("contention", share(s["contention"]["share"]), "of the threads' time: waiting for locks"),
        ("barriers", share(s["waiting"]["barrier"]["share"]), "of the threads' time: waiting at barriers"),
        ("idle", share(s["idle"]["share"]), "of the threads' time: waiting for work, keeping no thread waiting"),
    ]


def notes(analysis: Analysis, *, profile: bool) -> list[str]:
    """What a reader must know of this trace."""
    trace, limits, found = analysis["trace"], analysis["limits"], []
    if analysis["empty"]:
        found.append(f"{analysis['empty'][:1].upper()}{analysis['empty'][1:]}.")
    if trace["completed"]:
        found.append(
            "The program was killed, or has become another one by exec. What its threads waited for then is here."
        )
    elif not trace["whole"]:
        found.append(
            "The trace is not whole: the program was killed, has become another one by exec, or its disk was full. "
            "It ends with what was written."
        )
    if profile:
        found.append(
            "This is a profile: it has waits, what ended them, and sums of all other calls. The timeline does not show"
            " which threads held locks."
        )
    if trace["lost"]:
        found.append(f"{count(trace['lost'])} events were lost, since there was no memory for them.")
    if limits["objects_shown"] < limits["objects"]:
        found.append(f"{count(limits['objects_shown'])} of {count(limits['objects'])} objects are shown, by waiting.")
    if len(analysis["threads"]) > figures.MAX_BARS:
        found.append(
            f"The bars of threads' times are of the {figures.MAX_BARS} that waited longest; the table has all."
        )
    return found


def _histogram(sums: dict[str, Any] | None) -> list[list[int]] | None:
    """[octave, n], of the analysis' finer classes: durations of 2^octave to 2^(octave + 1) ns."""
    if not sums or not sums["n"]:
        return None
    classes: dict[int, int] = {}
    for from_ns, n in sums["histogram"]:
        octave = max(int(from_ns), 1).bit_length() - 1
        classes[octave] = classes.get(octave, 0) + n
    return [[octave, n] for octave, n in sorted(classes.items())]


def objects(analysis: Analysis) -> dict[int, dict[str, Any]]:
    """What the script says of an object that is selected."""
    return {
        o["id"]: {
            "name": object_name(o),
            "type": o["type"],
            "said": f"{count(o['acquisitions'])} calls, {count(o['contended'])} of them waited, "
            f"{duration(o['wait']['ns'])} in sum, {duration(o['wait']['max_ns'])} at most.",
            "wait": _histogram(o["wait"]),
            "hold": _histogram(o["hold"]),
        }
        for o in analysis["objects"]
    }


class Process:
    """What the page has of one trace."""

    def __init__(
        self,
        number: int,
        trace: Trace,
        analysis: Analysis,
        timeline: dict[str, Any],
        folded: list[tuple[list[str], int]],
    ) -> None:
        self.key = f"p{number}"
        self.trace, self.analysis = trace, analysis
        self.title = analysis["trace"]["command"] or trace.path
        self.facts, self.notes = facts(analysis), notes(analysis, profile=trace.profile)
        self.tables = tables.of(analysis)
        self.advice = [
            a | {"said": figure(a["figure"]["name"], a["figure"]["value"], a["figure"]["unit"]) if a["figure"] else ""}
            for a in analysis["advice"]
        ]
        self.names = tables.Names(analysis)
        self.timeline = timeline
        made = {
            "threads": figures.threads(analysis),
            "path": figures.critical_path(analysis),
            "waits": figures.waits_for(analysis),
            "delays": figures.release_delays(analysis),
            "flames": figures.flames(stacks.tree(folded)),
        }
        self.figures = {name: figure for name, figure in made.items() if figure is not None}
        self.data = _script_json({"figures": self.figures, "timeline": timeline, "objects": objects(analysis)})


def render(processes: list[Process]) -> bytes:
    """The page."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"duration": duration, "share": share, "count": count, "shortened": shortened}
    template = environment.from_string((WEB / "page.html").read_text(encoding="utf-8"))
    return template.render(
        processes=processes,
        version=__version__,
        style=_web("page.css"),
        script=_web("page.js"),
        plotly=markupsafe.Markup(plotly.offline.get_plotlyjs().replace("</script", "<\\/script")),
        datatables=_script_json(_library("dt_bundle.js")),
        datatables_style=markupsafe.Markup(_library("dt_bundle.css")),
        page=_script_json(
            {
                "activities": lanes.ACTIVITIES,
                "colours": figures.COLOURS,
                "labels": figures.LABELS,
            }
        ),
    ).encode()
