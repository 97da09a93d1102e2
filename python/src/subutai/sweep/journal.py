# SPDX-License-Identifier: LGPL-2.1-or-later
"""What has been run so far: a line of JSON for each run, in DIR/journal.jsonl.

- A line is written with one call. What an end in the middle of that call leaves is no line, and is cut off at the next
  opening.
- A run is in it once: a second outcome of the same run is ignored.
- The lock on the file says that a sweep is at work. It ends with the process, whatever ends that.
"""

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from . import SweepError
from .predict import Outcome, Row

NAME = "journal.jsonl"
BEGINNING = b'{"key": "'  # of each line


def reason(error: OSError) -> str:
    """For a line."""
    return error.strerror or str(error)


def _are_rows(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


class Journal:
    """The open journal. `rows` has the rows of each run that succeeded, by key."""

    def __init__(self, folder: Path, *, resume: bool) -> None:
        self.path = folder / NAME
        self.rows: dict[str, list[Row]] = {}
        existed = self.path.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise SweepError(
                f"'{folder}': {reason(error)} (legal: a folder that can be written)", refused=True
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise SweepError(f"'{folder}': a sweep is at work there", refused=True) from error
        if existed and not resume and os.fstat(self._fd).st_size > 0:
            os.close(self._fd)
            raise SweepError(
                f"'{folder}' has a sweep already (legal: --resume, or another folder with -o)", refused=True
            )
        try:
            self._read()
        except SweepError:
            os.close(self._fd)
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def _read(self) -> None:
        good = 0
        with open(self._fd, "rb", closefd=False) as file:
            for line in file:
                try:
                    entry = json.loads(line)
                    key, rows = entry["key"], entry["rows"]
                except (ValueError, KeyError, TypeError):
                    key, rows = None, None
                cut_short = not line.endswith(b"\n")
                if cut_short or not isinstance(key, str) or not _are_rows(rows):
                    # Of the first line a sweep that was killed has written a beginning, perhaps a short one.
                    if good == 0 and not (cut_short and (line.startswith(BEGINNING) or BEGINNING.startswith(line))):
                        raise SweepError(
                            f"'{self.path}' is no journal of a sweep (legal: another folder with -o)", refused=True
                        )
                    break
                self.rows[key] = rows
                good += len(line)
        os.ftruncate(self._fd, good)
        os.lseek(self._fd, good, os.SEEK_SET)
        self._length = good

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Note down what succeeded and is new."""
        new = [o for o in outcomes if o.error is None and o.key not in self.rows]
        if not new:
            return
        text = "".join(json.dumps({"key": o.key, "rows": o.rows}) + "\n" for o in new).encode()
        try:
            rest = memoryview(text)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            os.ftruncate(self._fd, self._length)
            raise SweepError(f"'{self.path}': {reason(error)}; --resume goes on where it is mended") from error
        self._length += len(text)
        for outcome in new:
            self.rows[outcome.key] = outcome.rows
