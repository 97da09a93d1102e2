# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures of a sweep: speed-up curves over one parameter, and heat maps over two.

The speed-up of a prediction is the time of the same trace at the first value of every parameter, over its own. Nothing
is averaged: what varies beside a picture's own axes gets a panel, a line or a file of its own.
"""

import importlib
import itertools
import re
from pathlib import Path
from typing import Any

import polars

from . import SweepError
from .table import NAMES

FORMATS = ("svg", "png", "pdf")
MOST_LINES = 12  # in a panel: more could not be told apart
MOST_PICTURES = 200
# Of the table, what a grid can vary; everything else in it is a result.
RESULTS_BEGIN = "makespan_ns"
INSTALL = "pip install './python[plot]' in Subutai's sources"


class Sweep:
    """A table and what varies in it."""

    def __init__(self, folder: Path) -> None:
        path = folder / NAMES[0] if folder.is_dir() else folder
        try:
            self.table = polars.read_parquet(path)
        except FileNotFoundError as error:
            raise SweepError(f"plot: no '{path}' (legal: the folder of a finished sweep)", refused=True) from error
        except (OSError, polars.exceptions.PolarsError) as error:
            raise SweepError(f"plot: '{path}': {str(error).splitlines()[0]}", refused=True) from error
        if RESULTS_BEGIN not in self.table.columns or "trace" not in self.table.columns:
            raise SweepError(f"plot: '{path}' is no table of a sweep", refused=True)
        names = self.table.columns[1 : self.table.columns.index(RESULTS_BEGIN)]
        self.folder = path.parent
        self.values = {n: self.table[n].unique(maintain_order=True).to_list() for n in names}
        # What says the same as another column (the mesh that follows from the cores) is no axis of its own.
        self.varied: list[str] = []
        for name in names:
            if len(self.values[name]) > 1 and not any(self._follows(name, other) for other in self.varied):
                self.varied.append(name)
        keys = ["trace", *self.varied]
        if self.table.select(keys).is_duplicated().any():
            raise SweepError(f"plot: '{path}' has several rows for the same parameters", refused=True)
        base = self._base()
        self.table = self.table.join(base, on="trace", how="left").with_columns(
            speedup=polars.col("base_ns") / polars.col("makespan_ns")
        )

    def _follows(self, name: str, other: str) -> bool:
        return self.table.select(other, name).n_unique() == len(self.values[other])

    def _base(self) -> polars.DataFrame:
        first = self.table
        for name in self.varied:
            first = first.filter(polars.col(name).eq_missing(polars.lit(self.values[name][0])))
        return first.select("trace", base_ns="makespan_ns")

    def numeric(self, name: str) -> bool:
        """Is the parameter a number, so that a line over it means something?"""
        return self.table[name].dtype.is_numeric()

    def axis(self, option: str, given: str | None, legal: list[str], taken: str | None = None) -> str | None:
        """The parameter for an axis: the one asked for, or that with most values."""
        choices = [n for n in legal if n != taken]
        if given is None:
            return max(choices, key=lambda n: len(self.values[n]), default=None)
        name = given.replace("-", "_")
        if name not in choices:
            raise SweepError(
                f"plot: {option}: '{given}' (legal: {', '.join(choices) or 'nothing varies'})", refused=True
            )
        return name


def draw(folder: Path, out: Path | None, x: str | None, y: str | None, file_format: str) -> list[Path]:
    """Draw all pictures; the result has their files."""
    if file_format not in FORMATS:
        raise SweepError(f"plot: --format: unknown value '{file_format}' (legal: {', '.join(FORMATS)})", refused=True)
    try:
        matplotlib = importlib.import_module("matplotlib")
        matplotlib.use("agg")
        matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
        matplotlib.rcParams["svg.hashsalt"] = "subutai"  # the same picture for the same table, byte for byte
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ModuleNotFoundError as error:
        raise SweepError(f"plot needs the Python package matplotlib: {INSTALL}", refused=True) from error
    sweep = Sweep(folder)
    numbers = [n for n in sweep.varied if sweep.numeric(n)]
    across = sweep.axis("--x", x, numbers)
    if across is None:
        raise SweepError(
            "plot: no parameter with two numbers (legal: a grid with, say, two values of cores)", refused=True
        )
    up = sweep.axis("--y", y, sweep.varied, across)
    target = out or sweep.folder
    try:
        target.mkdir(parents=True, exist_ok=True)
        made = _curves(sweep, pyplot, target, across, file_format)
        return made + (_maps(sweep, pyplot, target, across, up, file_format) if up is not None else [])
    except OSError as error:
        raise SweepError(f"plot: '{target}': {error.strerror}") from error


def _slices(sweep: Sweep, table: polars.DataFrame, names: list[str]) -> list[tuple[str, polars.DataFrame]]:
    """The parts of the table with the same values of these parameters, and a name for each."""
    if not names:
        return [("", table)]
    found = []
    for values in itertools.product(*(sweep.values[n] for n in names)):
        part = table
        for name, value in zip(names, values, strict=True):
            part = part.filter(polars.col(name).eq_missing(polars.lit(value)))
        if part.height > 0:
            found.append((", ".join(f"{n} {_text(v)}" for n, v in zip(names, values, strict=True)), part))
    return found


def _curves(sweep: Sweep, pyplot: Any, target: Path, across: str, file_format: str) -> list[Path]:
    """A file for each value of what has no room as a line; in it a panel for each trace, in that lines for the rest."""
    others = [n for n in sweep.varied if n != across]
    lines: list[str] = []
    n_lines = 1
    for name in sorted(others, key=lambda n: len(sweep.values[n])):
        if n_lines * len(sweep.values[name]) <= MOST_LINES:
            lines.append(name)
            n_lines *= len(sweep.values[name])
    lines.sort(key=others.index)
    made: list[Path] = []
    for title, part in _slices(sweep, sweep.table, [n for n in others if n not in lines]):
        traces = part["trace"].unique(maintain_order=True).to_list()
        figure, panels = _panels(pyplot, len(traces))
        for trace, panel in zip(traces, panels, strict=False):
            for k, (label, line) in enumerate(_slices(sweep, part.filter(polars.col("trace") == trace), lines)):
                points = line.sort(across)
                # A line that lies on another one is thinner and has gaps, so that both are seen.
                panel.plot(
                    points[across].to_list(),
                    points["speedup"].to_list(),
                    marker="o",
                    markersize=7 * (1 - k / n_lines) + 2,
                    linewidth=3 * (1 - k / n_lines) + 1,
                    linestyle=("-", "--", "-.", ":")[k % 4],
                    label=label,
                )
            panel.set_title(trace, fontsize=10)
            panel.set_xlabel(across)
            panel.set_ylabel("speed-up")
            panel.set_ylim(bottom=0)
            panel.grid(alpha=0.3)
            if _spread(sweep.values[across]):
                panel.set_xscale("log", base=2)
            panel.set_xticks(sorted(sweep.values[across]), [_text(v) for v in sorted(sweep.values[across])])
            panel.minorticks_off()
        if n_lines > 1:
            figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", fontsize=8, ncols=2)
        made.append(_save(sweep, pyplot, figure, target, "speedup", title, file_format, len(made)))
    return made


def _maps(sweep: Sweep, pyplot: Any, target: Path, across: str, up: str, file_format: str) -> list[Path]:
    """A file for each value of what is on neither axis; in it a panel for each trace, all with the same colours."""
    made: list[Path] = []
    for title, part in _slices(sweep, sweep.table, [n for n in sweep.varied if n not in (across, up)]):
        traces = part["trace"].unique(maintain_order=True).to_list()
        figure, panels = _panels(pyplot, len(traces))
        low, high = part["speedup"].min(), part["speedup"].max()
        # What belongs to another machine alone has no row here.
        columns = [v for v in sorted(sweep.values[across]) if v in set(part[across].to_list())]
        rows = [v for v in sweep.values[up] if v in set(part[up].to_list())]
        for trace, panel in zip(traces, panels, strict=False):
            cells = {(r[across], r[up]): r["speedup"] for r in part.filter(polars.col("trace") == trace).to_dicts()}
            grid = [[_number(cells.get((c, r))) for c in columns] for r in rows]
            image = panel.imshow(grid, aspect="auto", cmap="viridis", vmin=low, vmax=high)
            panel.set_xticks(range(len(columns)), [_text(c) for c in columns])
            panel.set_yticks(range(len(rows)), [_text(r) for r in rows])
            panel.set_xlabel(across)
            panel.set_ylabel(up)
            panel.set_title(trace, fontsize=10)
            if len(columns) * len(rows) <= 100:
                middle = (_number(low) + _number(high)) / 2
                for i, j in itertools.product(range(len(rows)), range(len(columns))):
                    if grid[i][j] == grid[i][j]:
                        colour = "black" if grid[i][j] > middle else "white"
                        panel.text(j, i, f"{grid[i][j]:.3g}", ha="center", va="center", color=colour, fontsize=8)
            figure.colorbar(image, ax=panel, label="speed-up")
        made.append(_save(sweep, pyplot, figure, target, "heat", title, file_format, len(made)))
    return made


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _spread(values: list[Any]) -> bool:
    return bool(min(values) > 0 and max(values) / min(values) >= 8)


def _panels(pyplot: Any, n: int) -> tuple[Any, list[Any]]:
    columns = min(n, 3)
    rows = -(-n // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(5 * columns, 3.6 * rows), squeeze=False, layout="constrained"
    )
    panels = list(axes.flat)
    for panel in panels[n:]:
        panel.set_axis_off()
    return figure, panels[:n]


def _save(
    sweep: Sweep, pyplot: Any, figure: Any, target: Path, kind: str, title: str, file_format: str, n_before: int
) -> Path:
    if n_before >= MOST_PICTURES:
        raise SweepError(f"plot: more than {MOST_PICTURES} pictures (legal: a table with fewer parameters)")
    base = ", ".join(f"{n} {_text(sweep.values[n][0])}" for n in sweep.varied)
    figure.suptitle(f"{title}\n1.0: {base}" if title else f"1.0: {base}", fontsize=9)
    name = "-".join([kind, *re.findall(r"[A-Za-z0-9_.]+", title)])
    path, new = target / f"{name}.{file_format}", target / f".{name}.new"
    metadata = {"png": None, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[file_format]
    try:
        figure.savefig(new, format=file_format, dpi=150, metadata=metadata)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
        pyplot.close(figure)
    return path
