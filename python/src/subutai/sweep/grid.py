# SPDX-License-Identifier: LGPL-2.1-or-later
"""The file of a sweep, and its runs: every trace with every combination of the grid's values.

traces = ["app.sbt", "runs/*.sbt", ["app.sbt*2", "other.sbt"]]

[grid]
cores = [2, 16, 64]
sync = ["software", "subutai"]
pinned = [false, true]
"""

import glob
import hashlib
import itertools
import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import SweepError
from .predict import Command, Option, Run

KEYS = ("traces", "grid")
MOST_RUNS = 1000000  # each takes some KB of memory, and milliseconds
# Options that choose what predict prints, not what it simulates; and app, which is `traces` here.
NOT_PARAMETERS = frozenset({"app", "calls", "json", "progress", "timeline", "help"})


@dataclass(frozen=True)
class Workload:
    """What runs on the chip together: applications, each a trace as often as `copies` says."""

    name: str
    applications: tuple[tuple[Path, int], ...]


@dataclass(frozen=True)
class Grid:
    """A file of a sweep that has been read and found good."""

    workloads: tuple[Workload, ...]
    parameters: dict[str, tuple[Any, ...]]
    left_out: frozenset[tuple[str, str, Any]]  # machine, parameter and a value that another machine has

    def runs(self, command: Command, digests: dict[Path, str]) -> list[Run]:
        """All runs in the order of the file: the last parameter varies fastest."""
        found = []
        costs = {machine: digest_of(path, "costs") for machine, path in self.costs().items()}
        for workload in self.workloads:
            traces = tuple((str(path), digests[path], copies) for path, copies in workload.applications)
            for values in itertools.product(*self.parameters.values()):
                parameters = dict(zip(self.parameters, values, strict=True))
                if any((parameters.get("machine"), *item) in self.left_out for item in parameters.items()):
                    continue
                machine = parameters.get("machine")
                measured = {"costs": costs[machine]} if machine in costs else {}
                key = _key(command, workload.name, traces, parameters | measured)
                found.append(Run(key, workload.name, traces, tuple(parameters.items())))
        return found

    def costs(self) -> dict[str, Path]:
        """The files of costs of the grid's machines. Their contents are what a run depends on, as those of traces."""
        machines = [m for m in self.parameters.get("machine", ()) if isinstance(m, str) and m.startswith("host:")]
        return {machine: Path(machine.removeprefix("host:")) for machine in machines}

    def files(self) -> list[Path]:
        """The traces, each once."""
        return list(dict.fromkeys(path for w in self.workloads for path, _ in w.applications))


def _key(command: Command, name: str, traces: tuple[tuple[str, str, int], ...], parameters: dict[str, Any]) -> str:
    """Names a run by what its rows depend on. So a journal is good for a larger grid too."""
    what = [command.version, name, [(digest, copies) for _, digest, copies in traces], sorted(parameters.items())]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:24]


def digest_of(path: Path, what: str = "trace") -> str:
    """The checksum that a trace, or another file, is known by."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SweepError(f"{what} '{path}': {error.strerror}", refused=True) from error


def read(path: Path, command: Command) -> Grid:
    """Read and check the file. Traces are looked for from the folder of the file."""
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SweepError(f"'{path}': {error.strerror}", refused=True) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SweepError(f"'{path}': not TOML: {error}", refused=True) from error
    for key in text:
        if key not in KEYS:
            raise SweepError(f"{path}: unknown key '{key}' (legal: {', '.join(KEYS)})", refused=True)
    workloads, values = _workloads(path, text.get("traces", [])), text.get("grid", {})
    if isinstance(values, dict):
        n_runs = math.prod([len(workloads), *(len(v) for v in values.values() if isinstance(v, list) and v)])
        if n_runs > MOST_RUNS:
            raise SweepError(f"{path}: grid: {n_runs} runs (legal: at most {MOST_RUNS})", refused=True)
    parameters = _parameters(path, values, command)
    return Grid(workloads, parameters, _left_out(path, command, parameters))


def _workloads(path: Path, traces: Any) -> tuple[Workload, ...]:
    found: dict[str, Workload] = {}
    if not isinstance(traces, list) or not traces:
        raise SweepError(
            f"{path}: traces: no trace given (legal: a list of files, patterns and lists of files)", refused=True
        )
    for entry in traces:
        if isinstance(entry, str):
            made = [_workload(path, [name]) for name in _expand(path, entry)]
        elif isinstance(entry, list) and entry and all(isinstance(e, str) for e in entry):
            made = [_workload(path, entry)]
        else:
            raise SweepError(
                f'{path}: traces: {entry!r} is no file (legal: "FILE", or ["FILE", "FILE*N"])', refused=True
            )
        for workload in made:
            if workload.name in found:
                raise SweepError(f"{path}: traces: '{workload.name}' twice", refused=True)
            found[workload.name] = workload
    return tuple(found.values())


def _expand(path: Path, text: str) -> list[str]:
    """The files that a pattern stands for. "FILE*N" is N copies of a file if FILE is there."""
    name, star, copies = text.rpartition("*")
    if not any(c in text for c in "*?[") or (star and copies.isdecimal() and (path.parent / name).exists()):
        return [text]
    matches = sorted(glob.glob(text, root_dir=path.parent, recursive=True))
    if not matches:
        raise SweepError(f"{path}: traces: no file matches '{text}'", refused=True)
    return matches


def _workload(path: Path, entries: list[str]) -> Workload:
    applications = []
    for entry in entries:
        name, star, copies = entry.rpartition("*")
        n = int(copies) if star and copies.isdecimal() else 1
        file = path.parent / (name if star and copies.isdecimal() else entry)
        if not 1 <= n <= 1024:
            raise SweepError(f"{path}: traces: '{entry}': copies (legal: 1 to 1024)", refused=True)
        if not file.is_file():
            raise SweepError(f"{path}: traces: no such trace '{file}'", refused=True)
        applications.append((file.absolute(), n))
    return Workload("+".join(entries), tuple(applications))


def _parameters(path: Path, grid: Any, command: Command) -> dict[str, tuple[Any, ...]]:
    legal = {name: option for name, option in command.options.items() if name not in NOT_PARAMETERS}
    if not isinstance(grid, dict) or not grid:
        raise SweepError(f"{path}: [grid] is empty (legal: lists of values of {', '.join(legal)})", refused=True)
    found: dict[str, tuple[Any, ...]] = {}
    machines: tuple[Any, ...] = ()
    for name, values in sorted(grid.items(), key=lambda item: item[0] != "machine"):
        if name not in legal:
            raise SweepError(f"{path}: grid: unknown key '{name}' (legal: {', '.join(legal)})", refused=True)
        values = values if isinstance(values, list) else [values]
        if not values:
            raise SweepError(f"{path}: grid: {name}: no value (legal: {legal[name].legal})", refused=True)
        for value in values:
            _check(path, command, legal[name], value, machines)
        if len({json.dumps(v) for v in values}) < len(values):
            twice = next(v for i, v in enumerate(values) if v in values[:i])
            raise SweepError(f"{path}: grid: {name}: '{twice}' twice", refused=True)
        found[name] = tuple(values)
        if name == "machine":
            machines = tuple(values)
    return {name: found[name] for name in grid}


def _left_out(path: Path, command: Command, parameters: dict[str, tuple[Any, ...]]) -> frozenset[tuple[str, str, Any]]:
    """Values that only some of the grid's machines have: as in predict's lists, the others have no run with them."""
    found = set()
    machines = parameters.get("machine", ())
    for machine, (name, values) in itertools.product(machines if len(machines) > 1 else (), parameters.items()):
        if name == "machine":
            continue
        reasons = {
            v: reason
            for v in values
            if not isinstance(v, bool) and (reason := command.refusal(name, str(v), machine)) is not None
        }
        if len(reasons) == len(values):
            raise SweepError(f"{path}: grid: machine '{machine}': {reasons[values[0]]}", refused=True)
        found |= {(machine, name, value) for value in reasons}
    return frozenset(found)


def _check(path: Path, command: Command, option: Option, value: Any, machines: tuple[Any, ...]) -> None:
    flag = isinstance(value, bool)
    if flag is not option.is_flag or not isinstance(value, int | str):
        kind = "true, false" if option.is_flag else option.legal
        raise SweepError(f"{path}: grid: {option.name}: {value!r} is no value of it (legal: {kind})", refused=True)
    if flag:
        return
    reasons = [command.refusal(option.name, str(value), machine) for machine in machines or (None,)]
    if None not in reasons:
        raise SweepError(f"{path}: grid: {reasons[0]}", refused=True)
