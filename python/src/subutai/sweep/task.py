# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a task of a Slurm job array runs: python3 -m subutai.sweep.task FOLDER NUMBER

Reads the runs of FOLDER/chunk-NUMBER.json, and writes their outcomes to FOLDER/outcome-NUMBER.json, which is there
whole or not at all.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

from .predict import Outcome, Processes, Run, find


def run_of(entry: dict[str, Any]) -> Run:
    """A run as JSON has it."""
    return Run(
        entry["key"],
        entry["workload"],
        tuple((path, digest, copies) for path, digest, copies in entry["traces"]),
        tuple((name, value) for name, value in entry["parameters"]),
    )


def write(path: Path, entries: list[Run] | list[Outcome]) -> None:
    """A file of runs or outcomes."""
    new = path.with_name(f".{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        json.dump([dataclasses.asdict(entry) for entry in entries], file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def main() -> int:
    """Run the chunk."""
    folder, number = Path(sys.argv[1]), sys.argv[2]
    runs = [run_of(e) for e in json.loads((folder / f"chunk-{number}.json").read_text(encoding="utf-8"))]
    command, processes = find(), Processes()
    write(folder / f"outcome-{number}.json", [command.simulate(run, processes) for run in runs])
    return 0


if __name__ == "__main__":
    sys.exit(main())
