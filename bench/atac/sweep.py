# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which claims of chapter 6 depend on what the thesis leaves open. Each setting is varied alone, and the main ones in all combinations."""
import itertools
import os
import subprocess

import chapter6

LOOPS = 60

# Name: values, ours first. A value may set several settings, divided by blanks; looks and tasks are options of `steal`.
BARRIER_SETTINGS = {
    "software": ("300", "0", "30", "100", "1000"),
    "dram": ("100", "0", "14", "300"),
    "directory": ("10", "0", "50"),
    "invalidate": ("3", "1"),
    "server": ("100", "20", "500"),
    "system": ("100", "20", "500"),
    "spin": ("0", "1"),
}
BARRIER_GRID = ("software", "dram", "server", "spin")
STEAL_SETTINGS = {
    "few/many": ("0/2", "0/1", "0/4", "0/10", "1/2", "2/4", "4/10"),
    "looks": ("9", "0", "3", "30"),
    "spin": ("0", "1"),
    "software": ("300", "0", "100", "1000"),
    "dram": ("100", "0", "14", "300"),
    "patience": ("4000", "1000", "16000", "64000"),
    "server": ("100", "20", "500"),
    "tasks": ("640", "320", "1280", "3200"),
}
STEAL_GRID = {
    "few/many": ("0/2", "0/10", "2/4"),
    "looks": ("9", "0", "30"),
    "spin": ("0", "1"),
    "software": ("300", "0", "1000"),
    "dram": ("100", "0"),
}


def arguments(settings):
    for name, value in settings.items():
        if name in ("looks", "tasks"):
            yield from (f"--{name}", value)
        else:
            for one_name, one_value in zip(name.split("/"), value.split("/")):
                yield from ("--set", f"{one_name}={one_value}")


class Runs:
    """Each choice of settings is run once: {claim: (what came out, does it hold?)}; None: the network is flooded."""

    def __init__(self, programs, name, options, claims):
        self.command = [os.path.join(programs, name), *options]
        self.claims = claims
        self.known = {}

    def __call__(self, settings):
        command = tuple(self.command + list(arguments(settings)))
        if command not in self.known:
            self.known[command] = self.run(command)
        return self.known[command]


    def run(self, command):
        ended = subprocess.run(command, capture_output=True, text=True)
        if ended.returncode != 0 and "send faster than others receive" in ended.stderr:
            return None
        ended.check_returncode()
        return {claim: (here, holds) for claim, here, holds in self.claims(ended.stdout)}


def combinations(grid):
    return [dict(zip(grid, values)) for values in itertools.product(*grid.values())]


def rows(title, runs, settings, grid):
    base = runs({})
    alone = [(name, value, runs({name: value})) for name, values in settings.items() for value in values[1:]]
    together = [runs(choice) for choice in combinations(grid)]
    yield f"| claim of section {title} | as chosen | other with | in {len(together)} combinations |"
    yield "|---|---|---|---|"
    for claim, (_, holds) in base.items():
        others = {}
        for name, value, result in alone:
            if result is None:
                others.setdefault(name, []).append(f"{value} (flooded)")
            elif result[claim][1] != holds:
                others.setdefault(name, []).append(value)
        other = "; ".join(f"{name} {', '.join(values)}" for name, values in others.items())
        n = sum(result is not None and result[claim][1] for result in together)
        verdict = {len(together): "always", 0: "never"}.get(n, f"in {n}")
        yield f"| {claim} | {'yes' if holds else 'no'} | {other or '-'} | {verdict} |"


def ranges(settings, grid):
    alone = "; ".join(f"{name} {', '.join(values)}" for name, values in settings.items())
    together = "; ".join(f"{name} {', '.join(values)}" for name, values in grid.items())
    yield f"Alone (ours first): {alone}. In all combinations: {together}."


def tables(programs):
    barrier = Runs(programs, "barrier", ["--loops", str(LOOPS)], lambda text: chapter6.claims(chapter6.Numbers(text, LOOPS)))
    steal = Runs(programs, "steal", [], lambda text: chapter6.stealing_claims(chapter6.stealing_times(text)))
    barrier_grid = {name: BARRIER_SETTINGS[name] for name in BARRIER_GRID}
    yield from ranges(BARRIER_SETTINGS, barrier_grid)
    yield ""
    yield from rows("6.1", barrier, BARRIER_SETTINGS, barrier_grid)
    yield ""
    yield from ranges(STEAL_SETTINGS, STEAL_GRID)
    yield ""
    yield from rows("6.2", steal, STEAL_SETTINGS, STEAL_GRID)
