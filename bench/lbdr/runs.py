# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs of bench/lbdr's programs: natively, by round robin, with PARROT's and with LBDR's hints."""
import json
import os
import statistics
import subprocess
import sys
import time

# What is done: threads of each parallel stage, and items so that a native run lasts some 50, 150 and 450 ms on two cores.
SIZES = {"small": 1, "medium": 3, "large": 9}
ITEMS = {"ferret": 90, "dedup": 36, "parts": 60, "tasks": 450}

# Fig. 1 and Table 1 of LBDR say where its hints are; PARROT has one soft barrier in ferret and none in dedup. The weights are
# what follows, in units of 100 ns. Wrong hints are before sections that are neither free of synchronization nor long: one call
# between others (`one`), and each call in the function. A soft barrier waits for many turns: ferret's reader takes 400 for each picture. %d: the
# threads of a stage.
HINTS = {
    "ferret": {"parrot": ["soft-barrier leave_take_to_rank (ferret) %d 20000"],
               "lbdr": ["give-up-turn leave_take (ferret) 650", "give-up-turn leave_take_to_rank (ferret) 7500"],
               "one": ["give-up-turn tell_filled (ferret)"], "wrong": ["give-up-turn queue_put (ferret)", "give-up-turn tell_filled (ferret)"]},
    "dedup": {"parrot": [],
              "lbdr": ["give-up-turn leave_put (dedup) 300", "give-up-turn before_compress (dedup) 2000"],
              "one": ["give-up-turn tell_filled (dedup)"], "wrong": ["give-up-turn queue_take (dedup)"]},
    "parts": {"parrot": ["soft-barrier begin_round (parts) %d 20000"], "lbdr": ["give-up-turn begin_round (parts) 4000"],
              "wrong": ["give-up-turn meet (parts)"]},
    "tasks": {"parrot": ["soft-barrier leave_take (tasks) %d 20000"], "lbdr": ["give-up-turn leave_take (tasks) 1000"],
              "wrong": ["give-up-turn finish_task (tasks)"]},
}


class Way:
    """How a program is run. `hints`, and `wrong` for more of them: keys of HINTS; None: no file. `least`: budgets are no less than the weights."""

    def __init__(self, name, hints=None, least=False, wrong=None, sfs=True, sts=True):
        self.name, self.hints, self.least, self.wrong, self.sfs, self.sts = name, hints, least, wrong, sfs, sts

    def lines(self, program, threads):
        if self.hints is None:
            return []
        lines = [line % threads if "%d" in line else line for line in HINTS[program][self.hints]]
        if self.hints == "parrot" and threads < 2: # nothing to wait for
            lines = []
        if self.least:
            lines = [f"{line} {line.rsplit(' ', 1)[1]}" for line in lines]
        return lines + (HINTS[program][self.wrong] if self.wrong is not None else [])


NATIVE = Way("native")
ROUND_ROBIN, PARROT, LBDR = Way("round robin"), Way("PARROT", "parrot"), Way("LBDR", "lbdr")
LEAST = Way("LBDR, least budgets", "lbdr", least=True)
WRONG_ONE = Way("LBDR, a wrong hint more", "lbdr", wrong="one")
WRONG = Way("LBDR, wrong hints at each call", "lbdr", wrong="wrong")
NEITHER, ONLY_STS = Way("neither", "lbdr", sfs=False, sts=False), Way("STS alone", "lbdr", sfs=False)
ONLY_SFS = Way("SFS alone", "lbdr", sts=False)
PARROT_NO_STS = Way("PARROT without STS", "parrot", sts=False)


class Point:
    """What is measured at a time: medians, min and max of each way's ratio to native, run beside it."""

    def __init__(self):
        self.seconds = {}

    def add(self, way, seconds):
        self.seconds.setdefault(way.name, []).append(seconds)

    def ratios(self, way, base=NATIVE):
        return [own / other for own, other in zip(self.seconds[way.name], self.seconds[base.name])]

    def ratio(self, way, base=NATIVE):
        """(median of the times over the base's median, least and most of the pairs)"""
        own, other = self.seconds[way.name], self.seconds[base.name]
        pairs = self.ratios(way, base)
        return statistics.median(own) / statistics.median(other), min(pairs), max(pairs)

    def median_ms(self, way):
        return statistics.median(self.seconds[way.name]) * 1e3


class Runner:
    def __init__(self, build, folder, wait, n_runs):
        self.programs = os.path.join(build, "bench/lbdr")
        self.library = os.path.join(build, "libsubutai/libsubutai.so")
        self.subutai = os.path.join(build, "tools/preload/subutai")
        self.folder, self.wait, self.n_runs = folder, wait, n_runs
        self.points = {}

    def command(self, program, threads, items):
        return [os.path.join(self.programs, program), str(threads), str(items)]

    def hint_file(self, lines):
        path = os.path.join(self.folder, "hints")
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join(["subutai-hints 1", *lines]) + "\n")
        return path

    def environment(self, way, program, threads, **more):
        """As `subutai run` makes it; without that command's own time, which a native run has not."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SUBUTAI_")}
        if way is NATIVE:
            return environment
        lines = way.lines(program, threads)
        environment.update(LD_PRELOAD=self.library, SUBUTAI_ENGINE="det", SUBUTAI_WAIT=self.wait,
                           SUBUTAI_SFS=str(int(way.sfs)), SUBUTAI_STS=str(int(way.sts)), **more)
        if lines:
            environment["SUBUTAI_HINTS"] = self.hint_file(lines)
        return environment

    def run(self, way, program, threads, items, **more):
        """(seconds, output)"""
        environment = self.environment(way, program, threads, **more)
        begin = time.monotonic()
        ended = subprocess.run(self.command(program, threads, items), env=environment, stdout=subprocess.PIPE, text=True,
                               check=False)
        seconds = time.monotonic() - begin
        if ended.returncode != 0:
            sys.exit(f"reproduce: {program} {threads} {items}, {way.name}: exit status {ended.returncode}")
        return seconds, ended.stdout

    def expect(self, output, expected, way, program, threads, items):
        if output != expected:
            sys.exit(f"reproduce: {program} {threads} {items}: {way.name} prints another digest than native")

    def point(self, program, threads, size, ways, of=""):
        """Interleaved runs; each way's output must be the native one. `of`: what has runs of its own for the same point."""
        key = program, threads, size, of
        known = self.points.setdefault(key, Point())
        missing = [way for way in ways if way.name not in known.seconds]
        if not missing:
            return known
        items = ITEMS[program] * SIZES[size] if size in SIZES else int(size)
        if NATIVE not in missing: # all ratios of a point are to neighbouring runs
            missing = list(ways)
            known = self.points[key] = Point()
        expected = None
        for _ in range(self.n_runs):
            for way in missing:
                seconds, output = self.run(way, program, threads, items)
                expected = expected or output
                self.expect(output, expected, way, program, threads, items)
                known.add(way, seconds)
        return known

    def schedule(self, way, program, threads, items):
        """What `subutai schedule info` says of a run, and the share of operations with the turn from itself."""
        log = os.path.join(self.folder, "log")
        if os.path.exists(log):
            os.unlink(log)
        output = self.run(way, program, threads, items, SUBUTAI_SCHEDULE=log)[1]
        self.expect(output, self.run(NATIVE, program, threads, items)[1], way, program, threads, items)
        info = json.loads(subprocess.run([self.subutai, "schedule", "info", "--json", log], check=True,
                                         stdout=subprocess.PIPE, text=True).stdout)
        dump = subprocess.Popen([self.subutai, "schedule", "dump", "--json", log], stdout=subprocess.PIPE, text=True)
        n, n_alone, last = 0, 0, None
        for line in dump.stdout:
            event = json.loads(line)
            if event["kind"] == "operation":
                n += 1
                n_alone += event["thread"] == last
            last = event["thread"]
        dump.wait()
        return info, n_alone / n
