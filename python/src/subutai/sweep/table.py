# SPDX-License-Identifier: LGPL-2.1-or-later
"""The journal as one table, a row for each prediction, in DIR/results.parquet and DIR/results.csv."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import polars

from . import SweepError
from .journal import reason
from .predict import Row, Run

NAMES = ("results.parquet", "results.csv")


def frame(runs: list[Run], rows: dict[str, list[Row]]) -> polars.DataFrame:
    """In the grid's order, whatever order the runs ended in: the trace and the parameters first."""
    listed = [row for run in runs for row in rows.get(run.key, [])]
    names = dict.fromkeys(name for row in listed for name in row)
    columns = []
    for name in names:
        values = [row.get(name) for row in listed]
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and kinds != {int, float}:  # a parameter such as "host" and 2
            values = [None if value is None else str(value) for value in values]
        # Of nothing but nulls: what it would hold.
        kind = None if kinds else polars.String if name == "warning" else polars.Float64
        columns.append(polars.Series(name, values, kind, strict=False))
    return polars.DataFrame(columns)


def write(folder: Path, table: polars.DataFrame) -> list[Path]:
    """Both files, each whole or not at all."""
    parquet, csv = (folder / name for name in NAMES)
    _write(parquet, table.write_parquet)
    _write(csv, table.write_csv)
    return [parquet, csv]


def _write(path: Path, writer: Callable[[io.BytesIO], None]) -> None:
    """Through memory: polars has other errors than the system's where a disk is full."""
    new = path.with_name(f".{path.name}.new")
    made = io.BytesIO()
    writer(made)
    try:
        with new.open("wb") as file:
            file.write(made.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise SweepError(f"'{path}': {reason(error)}; --resume goes on where it is mended") from error
