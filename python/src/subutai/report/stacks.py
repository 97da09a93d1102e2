# SPDX-License-Identifier: LGPL-2.1-or-later
"""Call stacks of waits: the folded lines of `subutai report --folded`, as a tree and as speedscope's file."""

import json
from pathlib import Path
from typing import Any

from . import ReportError, analysis

SMALLEST = 0.0005  # of all: smaller nodes are put together, they would be less than a pixel
SCHEMA = "https://www.speedscope.app/file-format-schema.json"  # source: jlfwong/speedscope, src/lib/file-format-spec.ts


def read(path: str) -> list[tuple[list[str], int]]:
    """Stacks from the outermost frame inwards, each with the nanoseconds that were waited there."""
    stacks = []
    for line in analysis.run("--folded=-", "--", path).splitlines():
        frames, _, weight = line.rpartition(" ")
        if not frames or not weight.isdecimal():
            raise ReportError(f"'subutai report --folded' printed '{line[:80]}'")
        stacks.append((frames.split(";"), int(weight)))
    return stacks


def tree(stacks: list[tuple[list[str], int]]) -> dict[str, list[Any]]:
    """Nodes as plotly takes them: ids, labels, parents ("" of the root) and values, which have the children's."""
    total = sum(weight for _, weight in stacks)
    values: dict[tuple[str, ...], int] = {(): total}
    for frames, weight in stacks:
        for depth in range(1, len(frames) + 1):
            path = tuple(frames[:depth])
            values[path] = values.get(path, 0) + weight
    least = total * SMALLEST
    kept = [path for path, value in values.items() if value >= least and value > 0]
    number = {path: str(i) for i, path in enumerate(kept)}
    return {
        "ids": [number[path] for path in kept],
        "labels": [path[-1] if path else "all waits" for path in kept],
        "parents": [number[path[:-1]] if path else "" for path in kept],
        "values": [values[path] for path in kept],
    }


def speedscope(name: str, stacks: list[tuple[list[str], int]]) -> bytes:
    """The stacks as a profile; a sample weighs what was waited."""
    numbers: dict[str, int] = {}
    samples = [[numbers.setdefault(frame, len(numbers)) for frame in frames] for frames, _ in stacks]
    weights = [weight for _, weight in stacks]
    return json.dumps(
        {
            "$schema": SCHEMA,
            "exporter": "subutai",
            "name": name,
            "shared": {"frames": [{"name": frame} for frame in numbers]},
            "profiles": [
                {
                    "type": "sampled",
                    "name": f"waits of {Path(name).name}",
                    "unit": "nanoseconds",
                    "startValue": 0,
                    "endValue": sum(weights),
                    "samples": samples,
                    "weights": weights,
                }
            ],
        }
    ).encode()
