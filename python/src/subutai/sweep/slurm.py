# SPDX-License-Identifier: LGPL-2.1-or-later
"""The engine on a Slurm cluster: a job array, with a chunk of runs for each of its tasks. The folder of the sweep, the
traces, Python and the command must be on a file system that the nodes share.

DIR/slurm/ is the job array that is under way: `job` has its number, chunk-N.json the runs of task N, and
outcome-N.json what came of them. A sweep that ended early leaves it. The next one with --resume reads the outcomes, and
waits for the job if that still runs. So no run is computed twice.
"""

import json
import math
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from . import SweepError
from .journal import reason
from .predict import Command, Outcome, Run
from .task import write

MOST_TASKS = 1000  # Slurm's default limit is 1001
TASK_S = 5  # that Slurm's own second for each task is worth it
EVENT_BYTES, EVENTS_A_S, RUN_S = 6, 5e6, 0.003  # of a trace; of the simulator; of a run that has none
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0
SILENT_S = 300  # Slurm does not answer: for so long it is asked again


def _ask(words: list[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    except FileNotFoundError as error:
        raise SweepError(
            f"--slurm: no command {words[0]} in PATH (legal: a machine that submits to Slurm)", refused=True
        ) from error
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", f"{words[0]} did not answer within 60 s")


def chunk_size(runs: list[Run]) -> int:
    """So many runs that a task has TASK_S to do, by the size of the traces; and that the tasks are not too many."""
    sizes = {path: Path(path).stat().st_size for run in runs for path, _, _ in run.traces}
    n_bytes = sum(sizes[path] * copies for run in runs for path, _, copies in run.traces)
    seconds = RUN_S * len(runs) + n_bytes / EVENT_BYTES / EVENTS_A_S
    return max(1, math.ceil(len(runs) / MOST_TASKS), min(len(runs), round(TASK_S * len(runs) / seconds)))


class Slurm:
    """The job arrays of a sweep in `folder`. `chunk`: runs of a task; None: chunk_size."""

    def __init__(self, folder: Path, command: Command, options: list[str], chunk: int | None) -> None:
        for name in ("sbatch", "squeue"):
            if shutil.which(name) is None:
                raise SweepError(
                    f"--slurm: no command {name} in PATH (legal: a machine that submits to Slurm)", refused=True
                )
        self._folder = (folder / "slurm").absolute()
        self._command = command
        self._options = options
        self._chunk = chunk
        self.job: str | None = None

    def left_over(self, done: Callable[[list[Outcome]], None]) -> None:
        """The job array of a sweep that ended early: wait for its end, and take its outcomes."""
        if not self._folder.exists():
            return
        if (self._folder / "job").exists():
            self.job = (self._folder / "job").read_text(encoding="utf-8").strip()
            self._wait(done, set())
            self.job = None
        self._clear()

    def run(self, runs: list[Run], done: Callable[[list[Outcome]], None]) -> None:
        """Run all, and call `done` as outcomes come."""
        size = self._chunk or chunk_size(runs)
        chunks = [runs[at : at + size] for at in range(0, len(runs), size)]
        try:
            self._folder.mkdir()
            for number, chunk in enumerate(chunks):
                write(self._folder / f"chunk-{number}.json", chunk)
            (self._folder / "job.sh").write_text(self._script(), encoding="utf-8")
        except OSError as error:
            raise SweepError(f"'{self._folder}': {reason(error)}; --resume goes on where it is mended") from error
        submitted = _ask(
            [
                "sbatch",
                "--parsable",
                "--job-name=subutai-sweep",
                f"--array=0-{len(chunks) - 1}",
                f"--output={self._folder}/log-%a.txt",
                *self._options,
                str(self._folder / "job.sh"),
            ]
        )
        if submitted.returncode != 0:
            self._clear()
            raise SweepError(f"--slurm: {_line(submitted.stderr) or 'sbatch failed'}")
        self.job = submitted.stdout.strip().split(";")[0]
        self._note_job()
        came = self._wait(done, set())
        done(
            [
                Outcome(
                    run.key, error=f"task {number} of Slurm job {self.job} ended without a result{self._said(number)}"
                )
                for number, chunk in enumerate(chunks)
                if number not in came
                for run in chunk
            ]
        )
        self._clear()
        self.job = None

    def _note_job(self) -> None:
        """A job that no file names would run on beside the next one, and write into the same files."""
        new = self._folder / ".job.new"
        try:
            new.write_text(self.job or "", encoding="utf-8")
            new.replace(self._folder / "job")
        except OSError as error:
            _ask(["scancel", self.job or ""])
            self._clear()
            self.job = None
            raise SweepError(f"'{self._folder}/job': {reason(error)}; --resume goes on where it is mended") from error

    def _script(self) -> str:
        return (
            "#!/bin/sh\n"
            f"export PYSUBUTAI_COMMAND={shlex.quote(str(Path(self._command.path).absolute()))} PYTHONSAFEPATH=1\n"
            f"export PYTHONPATH={shlex.quote(str(Path(__file__).resolve().parents[2]))}${{PYTHONPATH:+:$PYTHONPATH}}\n"
            f"exec {shlex.quote(sys.executable)} -m subutai.sweep.task {shlex.quote(str(self._folder))} "
            '"$SLURM_ARRAY_TASK_ID"\n'
        )

    def _said(self, number: int) -> str:
        try:
            text = (self._folder / f"log-{number}.txt").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return f": {_line(text)}" if text.strip() else ""

    def _wait(self, done: Callable[[list[Outcome]], None], came: set[int]) -> set[int]:
        """Until the job has ended. The result has the tasks with outcomes."""
        pause, silent_since = FIRST_PAUSE_S, None
        while True:
            ended, answer = self._ended()
            news = self._collect(came, done)
            if ended:
                return came
            if answer is None:
                silent_since = None
            else:
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since > SILENT_S:
                    raise SweepError(f"--slurm: {answer}; --resume goes on with job {self.job}")
            pause = FIRST_PAUSE_S if news else min(LONGEST_PAUSE_S, pause * 1.5)
            time.sleep(pause)

    def _ended(self) -> tuple[bool, str | None]:
        """Has the job no task left? And what Slurm said if it did not answer."""
        asked = _ask(["squeue", "--noheader", "--jobs", self.job or "", "--format=%T"])
        if asked.returncode == 0:
            return not asked.stdout.strip(), None
        if "Invalid job id" in asked.stderr:  # forgotten: it ended long ago
            return True, None
        return False, _line(asked.stderr) or "squeue failed"

    def _collect(self, came: set[int], done: Callable[[list[Outcome]], None]) -> bool:
        news = False
        for path in sorted(self._folder.glob("outcome-*.json")):
            number = int(path.stem.removeprefix("outcome-"))
            if number in came:
                continue
            came.add(number)
            news = True
            done([Outcome(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))])
        return news

    def _clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _line(text: str) -> str:
    lines = [line for line in text.strip().split("\n") if line]
    return lines[-1] if lines else ""
