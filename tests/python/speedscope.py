# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a file must be for speedscope to open it: the rules of its file format specification, as it states them.

usage: speedscope.py FILE      exit status: 0, or 1 with a line for each rule that is broken
       speedscope.py --test    whether each rule finds what breaks it

The specification: jlfwong/speedscope, src/lib/file-format-spec.ts. Its schema is not copied here.
"""

import copy
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}
SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_index(value: Any, n: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < n


def of_frames(frames: Any) -> Iterator[str]:
    if not isinstance(frames, list):
        yield "shared.frames is a list"
        return
    for frame in frames:
        if not isinstance(frame, dict) or not isinstance(frame.get("name"), str) or frame["name"] == "":
            yield "each frame has a name"
        elif frame.keys() - {"name", "file", "line", "col"}:
            yield "a frame has a name, and perhaps file, line and column"
    if len({json.dumps(frame, sort_keys=True) for frame in frames}) != len(frames):
        yield "no frame is there twice"


def of_samples(profile: dict[str, Any], n_frames: int) -> Iterator[str]:
    samples, weights = profile.get("samples"), profile.get("weights")
    if not isinstance(samples, list) or not isinstance(weights, list):
        yield "samples and weights are lists"
        return
    if len(samples) != len(weights):
        yield "there are as many weights as samples"
    if not all(is_number(weight) and weight >= 0 for weight in weights):
        yield "a weight is a number that is not below 0"
    elif is_number(profile.get("startValue")) and profile["endValue"] - profile["startValue"] != sum(weights):
        yield "the weights fill the time from start to end"
    if not all(isinstance(stack, list) and stack and all(is_index(f, n_frames) for f in stack) for stack in samples):
        yield "each sample is a stack of frames' numbers"


def of_events(profile: dict[str, Any], n_frames: int) -> Iterator[str]:
    at, opened = profile.get("startValue", 0), []
    for event in profile.get("events", []):
        if not is_number(event.get("at")) or not at <= event["at"] <= profile.get("endValue", 0):
            yield "events are in order of time, from start to end"
            return
        at = event["at"]
        if not is_index(event.get("frame"), n_frames):
            yield "an event's frame is a frame's number"
        elif event.get("type") == "O":
            opened.append(event["frame"])
        elif event.get("type") != "C" or not opened or opened.pop() != event["frame"]:
            yield "a frame is closed that was opened last"
            return
    if opened:
        yield "each frame that is opened is closed"


def broken(file: Any) -> Iterator[str]:
    """The rules that the file breaks."""
    if not isinstance(file, dict) or file.get("$schema") != SCHEMA:
        yield "it names the schema"
        return
    if not all(isinstance(file.get(key, ""), str) for key in ("name", "exporter")):
        yield "name and exporter are texts"
    shared = file.get("shared")
    if not isinstance(shared, dict):
        yield "it has what its profiles share"
        return
    yield from of_frames(shared.get("frames"))
    n_frames = len(shared["frames"]) if isinstance(shared.get("frames"), list) else 0
    profiles = file.get("profiles")
    if not isinstance(profiles, list) or not profiles:
        yield "it has a profile"
        return
    if not is_index(file.get("activeProfileIndex", 0), len(profiles)):
        yield "the profile that is shown is there"
    for profile in profiles:
        if not isinstance(profile.get("name"), str) or profile.get("unit") not in UNITS:
            yield "a profile has a name and a unit"
        if not (is_number(profile.get("startValue")) and is_number(profile.get("endValue"))):
            yield "start and end are numbers"
        elif profile["startValue"] > profile["endValue"]:
            yield "it ends behind its start"
        elif profile.get("type") == "sampled":
            yield from of_samples(profile, n_frames)
        elif profile.get("type") == "evented":
            yield from of_events(profile, n_frames)
        else:
            yield "a profile is sampled or evented"


GOOD: dict[str, Any] = {
    "$schema": SCHEMA,
    "name": "n",
    "shared": {"frames": [{"name": "a"}, {"name": "b"}]},
    "profiles": [
        {"type": "sampled", "name": "s", "unit": "nanoseconds", "startValue": 0, "endValue": 3}
        | {"samples": [[0], [0, 1]], "weights": [1, 2]},
        {"type": "evented", "name": "e", "unit": "none", "startValue": 0, "endValue": 3}
        | {
            "events": [
                {"type": kind, "frame": frame, "at": at}
                for kind, frame, at in (("O", 0, 0), ("O", 1, 1), ("C", 1, 2), ("C", 0, 3))
            ]
        },
    ],
}


def mistakes() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Each with how the good file becomes one that has it."""
    yield "schema", lambda f: f.update({"$schema": "x"})
    yield "frame without a name", lambda f: f["shared"]["frames"][0].pop("name")
    yield "frame twice", lambda f: f["shared"]["frames"][0].update(name="b")
    yield "no profile", lambda f: f["profiles"].clear()
    yield "unit", lambda f: f["profiles"][0].update(unit="ns")
    yield "end", lambda f: f["profiles"][0].update(endValue=-1)
    yield "frame's number", lambda f: f["profiles"][0]["samples"].__setitem__(1, [0, 2])
    yield "empty stack", lambda f: f["profiles"][0]["samples"].__setitem__(1, [])
    yield "weights", lambda f: f["profiles"][0]["weights"].pop()
    yield "sum", lambda f: f["profiles"][0]["weights"].__setitem__(0, 2)
    yield "order", lambda f: f["profiles"][1]["events"][1].update(at=9)
    yield "closed twice", lambda f: f["profiles"][1]["events"][2].update(frame=0)
    yield "not closed", lambda f: f["profiles"][1]["events"].pop()


def main() -> int:
    if sys.argv[1] == "--test":
        found = [f"the good file: {rule}" for rule in broken(GOOD)]
        for what, spoil in mistakes():
            spoilt = copy.deepcopy(GOOD)
            spoil(spoilt)
            found += [] if list(broken(spoilt)) else [f"not found: {what}"]
    else:
        with open(sys.argv[1], encoding="utf-8") as file:
            found = list(broken(json.load(file)))
    print("\n".join(found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
