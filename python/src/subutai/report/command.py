# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command line of the Python half of `subutai report`. The C command has read the options once already."""

import argparse
import importlib.util
import shutil
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from . import ReportError, analysis, output

OK, REFUSED, FAILED, INTERRUPTED = 0, 2, 3, 130
NEEDED = ("numpy", "polars", "tqdm")
NEEDED_HTML = (*NEEDED, "jinja2", "plotly", "itables")
INSTALL = "pip install './python[report]' in Subutai's sources"
TOP = 200  # objects of the page
SHOWN_AFTER_S = 2.0  # a progress bar


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ReportError(message)


def parse(words: list[str]) -> argparse.Namespace:
    """The options."""
    parser = _Parser(prog="subutai report", allow_abbrev=False)
    parser.add_argument("traces", nargs="+", metavar="FILE", help="a trace of subutai record or subutai profile")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with pictures")
    parser.add_argument("--parquet", type=Path, metavar="DIR", help="write the trace's data frames as Parquet")
    parser.add_argument("--speedscope", type=Path, metavar="FILE", help="write stacks of waits for speedscope.app")
    parser.add_argument("--predict", action="store_true", help="simulate the traces with --wait switch, for advice")
    parser.add_argument("--try", action="store_true", dest="tried", help="measure advice by subutai compare")
    parser.add_argument("--command", metavar="LINE", help="the command line of --try")
    parser.add_argument("--delegate-from", metavar="SHARES", help="where delegation pays on the traces' machine")
    parser.add_argument("--top", type=int, default=TOP, metavar="N", help=f"objects of the page (default: {TOP})")
    options = parser.parse_intermixed_args(words)
    if not any((options.html, options.parquet, options.speedscope)):
        raise ReportError("nothing to write (legal: --html FILE, --parquet DIR, --speedscope FILE)")
    return options


def main(words: list[str] | None = None) -> int:
    """The status to exit with. Whatever ends the report early ends it with one line on standard error."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        options = parse(sys.argv[1:] if words is None else words)
        for name in NEEDED_HTML if options.html else NEEDED:
            if importlib.util.find_spec(name) is None:
                raise ReportError(f"{sys.executable} has no module {name} (legal: {INSTALL})")
        _report(options)
        return OK
    except ReportError as error:
        print(f"subutai: report: {' '.join(str(error).split())}", file=sys.stderr)
        return REFUSED if error.refused else FAILED
    except KeyboardInterrupt:
        print("subutai: report: stopped", file=sys.stderr)
        return INTERRUPTED


def _report(options: argparse.Namespace) -> None:
    from ..library import LibraryError
    from ..trace import TraceError

    try:
        with ExitStack() as files:
            html, speedscope = (
                files.enter_context(output.whole(option, path, options.traces)) if path is not None else None
                for option, path in (("--html", options.html), ("--speedscope", options.speedscope))
            )
            if html is not None:
                _html(options, html)
            if speedscope is not None:
                _speedscope(options.traces, speedscope)
        _frames(options)
    except TraceError as error:
        legal = "what subutai record or profile of this version has written: record the program again"
        raise ReportError(f"'{error.path}': {error.reason} (legal: {legal})") from error
    except (LibraryError, MemoryError) as error:
        raise ReportError(str(error) or "out of memory") from error


def _html(options: argparse.Namespace, file: IO[bytes]) -> None:
    import tqdm

    from ..trace import load
    from . import page, stacks, timeline

    asked = ["--predict"] * options.predict + ["--try"] * options.tried
    asked += [f"--command={options.command}"] if options.command else []
    asked += [f"--delegate-from={options.delegate_from}"] if options.delegate_from else []
    traces = [load(path) for path in options.traces]
    columns, rows = shutil.get_terminal_size()
    with tqdm.tqdm(
        total=sum(trace.n_events for trace in traces) * 2,
        unit="event",
        unit_scale=True,
        delay=SHOWN_AFTER_S,
        disable=None,
        leave=False,
        file=sys.stderr,
        ncols=columns or 80,
        nrows=rows or 24,
    ) as bar:
        processes = []
        for number, trace in enumerate(traces):
            found = analysis.read(trace.path, options.top, *asked)
            bar.update(trace.n_events)
            n_lanes = max(len(timeline.shown_threads(found)), 1)
            events = trace.n_events / n_lanes

            def drawn(done: int, events: float = events) -> None:
                bar.update(int(events * done))

            lanes = timeline.read(trace, found, 1 / len(traces), drawn)
            processes.append(page.Process(number, trace, found, lanes, stacks.read(trace.path)))
        file.write(page.render(processes))


def _speedscope(traces: list[str], file: IO[bytes]) -> None:
    from . import stacks

    if len(traces) != 1:
        raise ReportError(f"--speedscope: {len(traces)} traces (legal: one)")
    file.write(stacks.speedscope(traces[0], stacks.read(traces[0])))


def _frames(options: argparse.Namespace) -> None:
    from ..trace import load
    from . import export

    if options.parquet is None:
        return
    for path in options.traces:
        # Of several traces each has a folder of its own, named after its file.
        folder = output.folder("--parquet", options.parquet)
        export.write(load(path), "--parquet", folder if len(options.traces) == 1 else folder / Path(path).stem)
