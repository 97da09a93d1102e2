# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files for the user: complete, or as they were before."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from . import ReportError


@contextmanager
def whole(option: str, path: Path, inputs: list[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` if the block succeeds.

    Opened before the work: a place that cannot be written is refused at once. A device or pipe is written directly.
    """
    try:  # to look at it may not be allowed
        there = path.exists()
        is_input = there and any(Path(given).exists() and path.samefile(given) for given in inputs)
    except OSError as error:
        raise _refusal(option, path, error) from error
    if is_input:
        raise ReportError(f"{option}: '{path}' is the trace itself")
    if there and not path.is_file() and not path.is_dir():
        try:
            with path.open("wb") as file:
                yield file
        except OSError as error:
            raise _refusal(option, path, error) from error
        return
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _refusal(option, path, error) from error
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        new.chmod(0o666 & ~umask)
        new.replace(path)
    except OSError as error:
        raise _refusal(option, path, error) from error
    finally:
        new.unlink(missing_ok=True)


def folder(option: str, path: Path) -> Path:
    """The folder, made if it is not there."""
    try:
        path.mkdir(exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise _refusal(option, path, error, "a folder that can be written") from error
    return path


def write(option: str, path: Path, writer: Callable[[IO[bytes]], object]) -> None:
    """The same for a file that is written in one go."""
    with whole(option, path, []) as file:
        writer(file)


def _refusal(option: str, path: Path, error: OSError, legal: str = "a file that can be written") -> ReportError:
    return ReportError(f"{option}: '{path}': {error.strerror or error} (legal: {legal})")
