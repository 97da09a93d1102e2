# SPDX-License-Identifier: LGPL-2.1-or-later
"""A trace's data frames as Parquet files, for other tools; polars writes them."""

from pathlib import Path

from ..trace import Trace
from . import output

FRAMES = ("events", "objects", "threads", "sites", "waits", "releases", "tallies", "stacks")


def write(trace: Trace, option: str, folder: Path) -> None:
    """One file for each frame."""
    output.folder(option, folder)
    for name in FRAMES:
        output.write(option, folder / f"{name}.parquet", getattr(trace, name).write_parquet)
