# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command line of `subutai sweep`. The C command has read the options once already, for its help and refusals."""

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from . import SweepError, grid, pool
from .dask import Cluster
from .journal import Journal
from .predict import Command, Outcome, Run, find, shell_line
from .slurm import Slurm

if TYPE_CHECKING:
    import polars

OK, REFUSED, FAILED, INTERRUPTED = 0, 2, 3, 130
SHOW_FAILED = 20
NEEDED = ("numpy", "polars", "tqdm")  # loaded when they are used first: that takes longer than a small sweep

Done = Callable[[list[Outcome]], None]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SweepError(message, refused=True)


def parse(words: list[str]) -> argparse.Namespace:
    """The options, those of `plot` among them."""
    parser = _Parser(prog="subutai sweep", allow_abbrev=False)
    parser.add_argument("operands", nargs="*", metavar="FILE")
    parser.add_argument("-j", "--jobs", type=_jobs, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--dask", metavar="ADDRESS")
    parser.add_argument("--slurm", action="store_true")
    parser.add_argument("--sbatch", metavar="OPTIONS", type=shlex.split)
    parser.add_argument("--chunk", metavar="N", type=_chunk)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-x", "--x", metavar="NAME")
    parser.add_argument("-y", "--y", metavar="NAME")
    parser.add_argument("--format", default="svg")
    return parser.parse_intermixed_args(words)


def _number(option: str, text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise SweepError(f"{option}: '{text}' is not a legal value (legal: 1 to {most})", refused=True)
    return int(text)


def _jobs(text: str) -> int:
    return _number("--jobs", text, 4096)


def _chunk(text: str) -> int:
    return _number("--chunk", text, 100000)


def main(words: list[str] | None = None) -> int:
    """The status to exit with. Whatever ends the sweep early ends it with one line on standard error."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        for name in NEEDED:
            if importlib.util.find_spec(name) is None:
                raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        options = parse(sys.argv[1:] if words is None else words)
        if options.operands[:1] == ["plot"]:
            return _plot(options)
        return _sweep(options)
    except SweepError as error:
        print(f"subutai: sweep: {' '.join(str(error).split())}", file=sys.stderr)
        return REFUSED if error.refused else FAILED
    except BrokenPipeError:
        return FAILED
    except KeyboardInterrupt:
        print("subutai: sweep: stopped; --resume goes on", file=sys.stderr)
        return INTERRUPTED


def _plot(options: argparse.Namespace) -> int:
    if len(options.operands) != 2:
        raise SweepError("plot: no sweep given (legal: subutai sweep plot FOLDER)", refused=True)
    from . import plot

    for path in plot.draw(Path(options.operands[1]), options.out, options.x, options.y, options.format):
        print(path)
    return OK


def _sweep(options: argparse.Namespace) -> int:
    if len(options.operands) != 1:
        raise SweepError("no sweep given (legal: a TOML file, or plot FOLDER)", refused=True)
    if options.dask is not None and options.slurm:
        raise SweepError("--dask and --slurm (legal: one of them)", refused=True)
    if options.sbatch is not None and not options.slurm:
        raise SweepError("--sbatch without --slurm", refused=True)
    if options.chunk is not None and options.dask is None and not options.slurm:
        raise SweepError("--chunk without --dask and --slurm", refused=True)
    file = Path(options.operands[0])
    command = find()
    wanted = grid.read(file, command)
    runs = wanted.runs(command, {path: grid.digest_of(path) for path in wanted.files()})
    folder = options.out or file.with_suffix("")
    if folder == file:
        raise SweepError(f"'{file}' has no .toml at its end (legal: a folder for the results with -o)", refused=True)
    cluster = Cluster(options.dask, command, options.chunk) if options.dask is not None else None
    try:
        slurm = Slurm(folder, command, options.sbatch or [], options.chunk) if options.slurm else None
        with Journal(folder, resume=options.resume) as journal:
            failed = _run(runs, journal, command, options.jobs, cluster, slurm)
            from . import table

            frame = table.frame(runs, journal.rows)
        return _report(options, folder, runs, frame, failed)
    finally:
        if cluster is not None:
            cluster.close()


def _run(
    runs: list[Run], journal: Journal, command: Command, jobs: int, cluster: Cluster | None, slurm: Slurm | None
) -> dict[str, str]:
    """Run what the journal has not, and what failed once more. The result says of each failed run why."""
    failed: dict[str, str] = {}
    known = {run.key for run in runs}
    n_before = sum(run.key in journal.rows for run in runs)
    import tqdm

    # A terminal that does not know its size (of `script`, of some CI) is taken to have 80 by 24.
    columns, rows = shutil.get_terminal_size()
    with tqdm.tqdm(
        total=len(runs),
        initial=n_before,
        unit="run",
        disable=None,
        file=sys.stderr,
        ncols=columns or 80,
        nrows=rows or 24,
        smoothing=0.1,
    ) as bar:

        def done(outcomes: list[Outcome]) -> None:
            had = len(journal.rows)
            journal.add(outcomes)
            for outcome in outcomes:
                if outcome.error is not None and outcome.key in known:
                    failed[outcome.key] = outcome.error
                else:
                    failed.pop(outcome.key, None)
            bar.set_postfix_str(f"{len(failed)} failed" if failed else "", refresh=False)
            bar.update(len(journal.rows) - had)

        try:
            if slurm is not None:
                slurm.left_over(done)
            for _ in range(2):
                todo = [run for run in runs if run.key not in journal.rows]
                if todo and cluster is not None:
                    cluster.run(todo, done)
                elif todo and slurm is not None:
                    slurm.run(todo, done)
                elif todo:
                    pool.run(command, todo, jobs, done)
        except KeyboardInterrupt:
            if slurm is not None and slurm.job is not None:
                raise SweepError(f"stopped; Slurm job {slurm.job} goes on, and --resume takes its results") from None
            raise
    # Whatever an engine has lost: a run without a row is a failed one.
    lost = {run.key: "no result has come" for run in runs if run.key not in journal.rows}
    return lost | failed


def _report(
    options: argparse.Namespace, folder: Path, runs: list[Run], frame: "polars.DataFrame", failed: dict[str, str]
) -> int:
    from . import table

    files = table.write(folder, frame) if frame.height > 0 else []
    listed = [(run, failed[run.key]) for run in runs if run.key in failed]
    if options.json:
        json.dump(
            {
                "runs": len(runs),
                "done": len(runs) - len(listed),
                "rows": frame.height,
                "files": [str(path) for path in files],
                "failed": [{"command": shell_line(run), "error": error} for run, error in listed],
            },
            sys.stdout,
            indent=1,
        )
        print()
    else:
        print(f"{len(runs)} runs, {len(listed)} failed; {' '.join(map(str, files)) or 'no results'}")
        for run, error in listed[:SHOW_FAILED]:
            print(f"{shell_line(run)}\n  {error}")
        if len(listed) > SHOW_FAILED:
            print(f"... and {len(listed) - SHOW_FAILED} more (--json lists all)")
    sys.stdout.flush()
    if listed:
        raise SweepError(f"{len(listed)} of {len(runs)} runs failed, twice each")
    return OK
