# SPDX-License-Identifier: LGPL-2.1-or-later
"""A trace's data frames as files, for other tools: Parquet and CSV, both by polars itself."""

from pathlib import Path

from ..trace import Trace
from . import output

FRAMES = ("events", "objects", "threads", "sites", "waits", "releases", "tallies", "stacks")


def write(trace: Trace, option: str, folder: Path, kind: str) -> list[Path]:
    """One file for each frame. `kind`: "parquet" or "csv"."""
    output.folder(option, folder)
    written = []
    for name in FRAMES:
        frame = getattr(trace, name)
        path = folder / f"{name}.{kind}"
        output.write(option, path, frame.write_parquet if kind == "parquet" else frame.write_csv)
        written.append(path)
    return written
