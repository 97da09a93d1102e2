# SPDX-License-Identifier: LGPL-2.1-or-later
"""One run of a sweep: a process `subutai predict`, and its JSON as rows of the table.

What may vary is what the command's own help lists, so a new option of predict needs no change here.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from . import SweepError

Row = dict[str, Any]
_OPTION = re.compile(r"^  (?:-., )?--([a-z][a-z-]*)(?: (\S+))?(?:  +(.*(?:\n {12,}\S.*)*))?$", re.M)


@dataclass(frozen=True)
class Option:
    """An option of `subutai predict`. `metavar` is None for one without a value."""

    name: str
    metavar: str | None
    help: str

    @property
    def is_flag(self) -> bool:
        """Is it given or not, without a value?"""
        return self.metavar is None

    @property
    def legal(self) -> str:
        """What its values are, for a refusal."""
        return f"{self.metavar}: {self.help}" if self.metavar else "true, false"


@dataclass(frozen=True)
class Run:
    """A point of the grid. `traces` has path, checksum and number of copies of each application."""

    key: str
    workload: str
    traces: tuple[tuple[str, str, int], ...]
    parameters: tuple[tuple[str, Any], ...]

    def arguments(self, places: dict[str, str] | None = None) -> list[str]:
        """Of `subutai`. `places` says where this machine has a trace, by checksum."""
        words = ["predict", "--json"]
        for name, value in self.parameters:
            if value is True:
                words.append(f"--{name}")
            elif value is not False:
                words.append(f"--{name}={value}")
        for path, digest, copies in self.traces:
            words += [places[digest] if places else path] * copies
        return words


@dataclass(frozen=True)
class Outcome:
    """What came of a run: rows, or in `error` a line that says why there are none."""

    key: str
    rows: list[Row] = field(default_factory=list)
    error: str | None = None


class Processes:
    """The processes that run now, so that an end of the sweep can end them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, words: list[str]) -> tuple[int, bytes, bytes]:
        """Status, output and errors of a command."""
        with self._lock:
            if self._stopped:
                return -15, b"", b""
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self._running.add(process)
        try:
            out, err = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
        return process.returncode, out, err

    def stop(self) -> None:
        """End all, and let none begin."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.terminate()


class Command:
    """The command `subutai` of this machine."""

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def version(self) -> str:
        """As --version says it."""
        return self._ask("--version").stdout.strip()

    @cached_property
    def options(self) -> dict[str, Option]:
        """The options of predict by name."""
        found = {}
        for match in _OPTION.finditer(self._ask("predict", "--help").stdout):
            name, metavar, text = match.groups()
            found[name] = Option(name, metavar, " ".join((text or "").split()))
        return found

    def refusal(self, option: str, value: str, machine: str | None = None) -> str | None:
        """Why predict does not take this value, on this machine; None: it does. Predict reads all options before it
        misses traces.
        """
        words = [f"--machine={machine}"] if machine is not None else []
        said = self._ask("predict", *words, f"--{option}={value}").stderr.strip().split("\n")[-1]
        said = said.removeprefix("subutai: predict: ")
        return None if said.startswith("no trace given") else said

    def _ask(self, *words: str) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                [self.path, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
            )
        except OSError as error:
            raise SweepError(f"cannot run '{self.path}': {error.strerror}", refused=True) from error

    def simulate(self, run: Run, processes: Processes, places: dict[str, str] | None = None) -> Outcome:
        """One run. No exception comes out of it: what went wrong is the outcome."""
        try:
            status, out, err = processes.run([self.path, *run.arguments(places)])
            said = err.decode(errors="replace").strip().split("\n")
            if status != 0:
                return Outcome(run.key, error=_reason(status, said))
            return Outcome(run.key, rows_of(run, json.loads(out), "; ".join(s for s in said if s)))
        except OSError as error:
            return Outcome(run.key, error=f"cannot run '{self.path}': {error.strerror}")
        except (ValueError, KeyError, TypeError) as error:
            return Outcome(run.key, error=f"predict has printed something else than its JSON: {error}")


def find() -> Command:
    """The command: $PYSUBUTAI_COMMAND, or in PATH."""
    path = os.environ.get("PYSUBUTAI_COMMAND") or shutil.which("subutai")
    if not path:
        raise SweepError("no command subutai (legal: one in PATH, or its path in PYSUBUTAI_COMMAND)", refused=True)
    return Command(path)


def shell_line(run: Run) -> str:
    """The run for a person to repeat."""
    return shlex.join(["subutai", *(word for word in run.arguments() if word != "--json")])


def _reason(status: int, said: list[str]) -> str:
    text = "; ".join(s.removeprefix("subutai: predict: ") for s in said[:3] if s)
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return f"{how}: {text}" if text else how


def _flatten(row: Row, values: dict[str, Any], prefix: str = "") -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            _flatten(row, value, f"{prefix}{name}_")
        elif not isinstance(value, list):
            row[prefix + name.replace("-", "_")] = value


def rows_of(run: Run, report: dict[str, Any], warning: str) -> list[Row]:
    """A row for each combination of the report: the run's parameters, and its numbers. Lists (threads, calls, ...) are
    not numbers of the run and are left out, but for the applications, which are summed up.
    """
    rows = []
    for result in report["runs"]:
        row: Row = {"trace": run.workload}
        for name, value in run.parameters:
            row[name.replace("-", "_")] = value
        _flatten(row, report)
        _flatten(row, result)
        for name in ("n_threads", "n_cut"):
            row[name] = sum(a[name] for a in result["applications"])
        if len(report["runs"]) == 1:
            row.pop("speedup", None)  # to itself
        row["warning"] = warning.replace("subutai: predict: ", "") or None
        rows.append(row)
    return rows
