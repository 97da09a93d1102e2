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

from . import SweepError
from .journal import reason
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
    """Run the chunk. The last line of what it says is what the sweep tells of a task without an outcome."""
    words = sys.argv[1:]
    if len(words) != 2 or not words[1].isdecimal():
        legal = "FOLDER NUMBER; SLURM_ARRAY_TASK_ID is the number"
        print(f"task: no folder and number given (legal: {legal})", file=sys.stderr)
        return 2
    folder, number = Path(words[0]), words[1]
    chunk = folder / f"chunk-{number}.json"
    try:
        runs = [run_of(e) for e in json.loads(chunk.read_text(encoding="utf-8"))]
        command, processes = find(), Processes()
        write(folder / f"outcome-{number}.json", [command.simulate(run, processes) for run in runs])
    except OSError as error:
        print(f"task: '{error.filename or chunk}': {reason(error)}", file=sys.stderr)
    except (ValueError, KeyError, TypeError) as error:
        print(f"task: '{chunk}' has no runs: {error}", file=sys.stderr)
    except SweepError as error:
        print(f"task: {error}", file=sys.stderr)
    else:
        return 0
    return 2


if __name__ == "__main__":
    sys.exit(main())
