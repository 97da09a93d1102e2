# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of the report, as the command `subutai report --json` prints them (docs/report.md)."""

import json
import os
import shutil
import subprocess
from typing import Any

from . import ReportError

Analysis = dict[str, Any]  # one document
VERSION = 1


def command() -> str:
    """The command: $PYSUBUTAI_COMMAND, or in PATH."""
    path = os.environ.get("PYSUBUTAI_COMMAND") or shutil.which("subutai")
    if not path:
        raise ReportError("no command subutai (legal: one in PATH, or its path in PYSUBUTAI_COMMAND)")
    return path


def run(*words: str) -> str:
    """What `subutai report` with these words prints. What it refuses is refused in its own words."""
    name = command()
    try:
        ended = subprocess.run([name, "report", *words], capture_output=True, check=False)
    except OSError as error:
        raise ReportError(f"cannot run '{name}': {error.strerror}") from error
    said = ended.stderr.decode(errors="replace").strip()
    if ended.returncode != 0:
        reason = said.splitlines()[-1] if said else f"'{name} report' ended with status {ended.returncode}"
        raise ReportError(reason.removeprefix("subutai: report: "))
    return ended.stdout.decode(errors="replace")


def read(path: str, top: int, *options: str) -> Analysis:
    """The figures of one trace, with at most so many objects; `options`: of the command."""
    text = run("--json", f"--top={top}", *options, "--", path)
    try:
        document: Analysis = json.loads(text)
    except ValueError as error:
        raise ReportError(f"'{command()} report --json' printed something else than JSON: {error}") from error
    if document.get("format") != "subutai-report" or document.get("version") != VERSION:
        raise ReportError(f"'{command()} report --json' is of another version than this package; install both anew")
    return document
