# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tables of LBDR's section 4 (Chen and others, IEICE 2015), from runs: Markdown lines."""
import math
import os
import subprocess
import sys

from runs import (ITEMS, LBDR, LEAST, NATIVE, NEITHER, ONLY_SFS, ONLY_STS, PARROT, PARROT_NO_STS, ROUND_ROBIN, SIZES, WRONG, WRONG_ONE,
                  Point)

FIGURE_5 = [NATIVE, ROUND_ROBIN, PARROT, LBDR, LEAST]
FIGURE_6 = [NATIVE, NEITHER, ONLY_STS, ONLY_SFS, LBDR, PARROT, PARROT_NO_STS]
PIPELINES = ["ferret", "dedup"]
PAPER_SHARES = {"ferret": 98.3, "dedup": 23.9}


def cell(point, way, base=NATIVE):
    return "{:.2f} ({:.2f} to {:.2f})".format(*point.ratio(way, base))


def heading(*cells):
    return ["| " + " | ".join(cells) + " |", "|" + "---|" * len(cells)]


def mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


class Tables:
    def __init__(self, runner, threads, sizes, programs):
        self.runner, self.threads, self.sizes, self.programs = runner, threads, sizes, programs
        self.at = 4 if 4 in threads else threads[-1]
        self.size = "medium" if "medium" in sizes else sizes[0]

    def figure_5(self):
        yield f"Fig. 5: time over native's, {self.size} ({self.runner.n_runs} runs; median, min and max)"
        yield ""
        yield from heading("program", "threads", "native, ms", *(way.name for way in FIGURE_5[1:]))
        for program in self.programs:
            for n in self.threads:
                point = self.runner.point(program, n, self.size, FIGURE_5)
                yield f"| {program} | {n} | {point.median_ms(NATIVE):.0f} | " + " | ".join(
                    cell(point, way) for way in FIGURE_5[1:]) + " |"

    def figure_6(self):
        yield f"Fig. 6: LBDR's two parts, and PARROT without STS; time over native's, {self.at} threads, {self.size}"
        yield ""
        yield from heading("program", *(way.name if way is not LBDR else "both" for way in FIGURE_6[1:]))
        for program in self.programs:
            point = self.part(program)
            yield f"| {program} | " + " | ".join(cell(point, way) for way in FIGURE_6[1:]) + " |"

    def part(self, program):
        return self.runner.point(program, self.at, self.size, FIGURE_6, of="parts")

    def table_2(self):
        self.shares = {}
        yield f"Table 2: operations in single-threaded sections, {self.at} threads, {self.size}; the time that STS saves"
        yield ""
        yield from heading("program", "operations", "in STS", "paper", "saved, ms", "of the time without")
        for program in self.programs:
            info, share = self.runner.schedule(LBDR, program, self.at, self.items(program, self.size))
            self.shares[program] = share
            point = self.part(program)
            without, with_it = point.median_ms(ONLY_SFS), point.median_ms(LBDR)
            paper = f"{PAPER_SHARES[program]} %" if program in PAPER_SHARES else "-"
            yield (f"| {program} | {info['operations']} | {share:.1%} | {paper} | {without - with_it:.1f} | "
                   f"{(without - with_it) / without:.1%} |")

    @staticmethod
    def items(program, size):
        return ITEMS[program] * SIZES[size] if size in SIZES else int(size)

    def scaling(self):
        ways = [NATIVE, PARROT, LBDR]
        yield "Section 4.3: PARROT's and LBDR's time over native's"
        yield ""
        yield from heading("program", "size", *(f"{n} thread{'s' if n > 1 else ''}: PARROT, LBDR" for n in self.threads))
        for program in (p for p in self.programs if p in PIPELINES):
            for size in self.sizes:
                points = [self.runner.point(program, n, size, ways) for n in self.threads]
                yield f"| {program} | {size} | " + " | ".join(
                    ", ".join(f"{point.ratio(way)[0]:.2f}" for way in ways[1:]) for point in points) + " |"

    def with_wrong(self, program):
        return self.runner.point(program, self.at, self.size, [NATIVE, LBDR, WRONG_ONE, WRONG], of="wrong")

    def wrong(self):
        """give-up-turn where the section behind is neither free of synchronization nor long, beside the right hints."""
        yield f"A wrong hint beside LBDR's, {self.at} threads, {self.size} ({self.runner.n_runs} runs; median, min and max)"
        yield ""
        yield from heading("program", "LBDR, over native", "a wrong hint at one call, over LBDR", "at each call of the function, over LBDR")
        for program in (p for p in PIPELINES if p in self.programs):
            point = self.with_wrong(program)
            yield f"| {program} | {cell(point, LBDR)} | {cell(point, WRONG_ONE, LBDR)} | {cell(point, WRONG, LBDR)} |"

    def found(self, n_runs):
        """The bars: with the hints that `subutai hints` finds."""
        yield f"With the hints that `subutai hints` finds, {self.at} threads, {self.size}: time over native's"
        yield ""
        yield from heading("program", "without hints", "with", "bars", "hints")
        for program in self.programs:
            items = self.items(program, self.size)
            path = os.path.join(self.runner.folder, "found")
            command = [self.runner.subutai, "hints", "--wait", self.runner.wait, "--runs", str(n_runs), "-o", path, "--",
                       *self.runner.command(program, self.at, items)]
            said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if said.returncode != 0:
                sys.exit(f"reproduce: subutai hints: exit status {said.returncode}")
            point, expected = Point(), None
            for _ in range(self.runner.n_runs):
                for way, more in ((NATIVE, {}), (ROUND_ROBIN, {}), (LBDR, {"SUBUTAI_HINTS": path})):
                    as_way = ROUND_ROBIN if more else way
                    seconds, output = self.runner.run(as_way, program, self.at, items, **more)
                    expected = output if way is NATIVE else expected
                    self.runner.expect(output, expected, way, program, self.at, items)
                    point.add(way, seconds)
            with open(path, encoding="utf-8") as file:
                kinds = [line.split()[0] for line in file if line.startswith(("give-up-turn", "keep-turn", "soft-barrier"))]
            said = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))) or "none"
            yield f"| {program} | {cell(point, ROUND_ROBIN)} | {cell(point, LBDR)} | 2.5, 1.2 | {said} |"

    # ---- claims ----

    def gain(self, program, way, base):
        """By how much less time, over all numbers of threads but one: a pipeline of one thread each has no balance."""
        ratios = [self.runner.point(program, n, self.size, FIGURE_5).ratio(way, base)[0] for n in self.threads if n > 1 or
                  len(self.threads) == 1]
        return 1 - mean(ratios)

    def claims(self):
        yield "Claims of the text"
        yield ""
        yield from heading("claim", "paper", "here", "holds")

        def row(claim, paper, here, holds):
            return f"| {claim} | {paper} | {here} | {'yes' if holds else 'no'} |"

        for program, way, base, paper in (("ferret", LBDR, PARROT, 26.5), ("ferret", LBDR, ROUND_ROBIN, 48.1),
                                          ("dedup", LBDR, ROUND_ROBIN, 18.5)):
            if program in self.programs:
                gain, least = self.gain(program, way, base), self.gain(program, LEAST, base)
                yield row(f"{program}: LBDR takes less time than {base.name}", f"{paper} %",
                          f"{gain:.1%}; with least budgets {least:.1%}", gain > 0)
        if "ferret" in self.programs:
            gain = self.gain("ferret", PARROT, ROUND_ROBIN)
            yield row("ferret: PARROT takes less time than round robin", "35 % (4.6 to 3.0)", f"{gain:.1%}", gain > 0)
        for program in (p for p in PIPELINES if p in self.programs):
            point = self.part(program)
            sfs, sts = (1 - point.ratio(way, NEITHER)[0] for way in (ONLY_SFS, ONLY_STS))
            yield row(f"{program}: SFS alone saves", "much", f"{sfs:.1%}", sfs > 0.03)
            yield row(f"{program}: STS alone saves", "little" if program == "ferret" else "some", f"{sts:.1%}",
                      sts < 0.1 if program == "ferret" else sts > 0)
            one, each = (self.with_wrong(program).ratio(way, LBDR)[0] - 1 for way in (WRONG_ONE, WRONG))
            yield row(f"{program}: a wrong hint costs next to nothing", "negligible",
                      f"{one:+.1%}; at each call of the function {each:+.1%}", one < 0.03)
            share = self.shares[program]
            yield row(f"{program}: operations in STS", f"{PAPER_SHARES[program]} %", f"{share:.1%}",
                      abs(share - PAPER_SHARES[program] / 100) < 0.1)
            better = [(n, size) for size in self.sizes for n in self.threads
                      if self.runner.point(program, n, size, [NATIVE, PARROT, LBDR]).ratio(LBDR, PARROT)[0] <= 1]
            all_points = len(self.sizes) * len(self.threads)
            yield row(f"{program}: LBDR is no slower than PARROT, all sizes and numbers of threads", "all",
                      f"{len(better)} of {all_points}", len(better) == all_points)
