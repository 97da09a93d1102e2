# SPDX-License-Identifier: LGPL-2.1-or-later
"""What chapter 6 of the ATAC thesis claims, on the numbers of build/bench/atac/barrier and steal: tables, and claims that hold or not."""
import collections
import csv

BARRIERS = ("pthread", "sense-reversing", "vc")


class Numbers:
    """(figure, series) -> {x: (cycles, median exit latency)}"""

    def __init__(self, text, loops):
        self.loops = loops
        self.series = collections.defaultdict(dict)
        for row in csv.DictReader(text.splitlines()):
            self.series[row["figure"], row["series"]][int(row["x"])] = int(row["cycles"]), int(row["median_exit"])

    def cycles(self, figure, series, x):
        return self.series[figure, series][x][0]

    def exit(self, series, x, figure="6-1"):
        return self.series[figure, series][x][1]


EPISODES = 375  # of streamcluster: bench/atac/clustering.h


def by_cores(numbers, figure):
    if figure == "6-1":
        yield f"Figs. 6-1 and 6-2: {numbers.loops} barriers in a loop; end to end in ms, median exit latency in us"
    else:
        yield f"Figs. 6-3 and 6-4: streamcluster, {EPISODES} barriers; end to end in ms, median exit latency in us"
    yield ""
    yield "| cores | " + " | ".join(f"{b}, loop | exit" for b in BARRIERS) + " |"
    yield "|---|" + "---|---|" * len(BARRIERS)
    for n in sorted(numbers.series[figure, "vc"]):
        cells = (f"{numbers.cycles(figure, b, n) / 1e6:.2f} | {numbers.exit(b, n, figure) / 1e3:.2f}" for b in BARRIERS)
        yield f"| {n} | " + " | ".join(cells) + " |"


def beyond(numbers):
    yield f"Beyond the thesis: {numbers.loops} barriers in a loop; us a barrier, median exit latency in us"
    yield ""
    yield "| cores | " + " | ".join(f"{b}, loop | exit" for b in BARRIERS) + " |"
    yield "|---|" + "---|---|" * len(BARRIERS)
    for n in (n for n in sorted(numbers.series["6-1", "vc"]) if n >= 64):
        cells = (f"{numbers.cycles('6-1', b, n) / 1e3 / numbers.loops:.1f} | {numbers.exit(b, n) / 1e3:.1f}" for b in BARRIERS)
        yield f"| {n} | " + " | ".join(cells) + " |"
    yield ""


COSTS = {"transport": 5, "controller": 10, "check": 3}  # Table 4.1's


def by_cost(numbers, figure):
    what = f"{numbers.loops} barriers" if figure == "6-5" else "streamcluster"
    yield f"Fig. {figure}: the VC barrier on 64 cores, one cost changed; {what} in ms"
    yield ""
    for name in COSTS:
        row = sorted(numbers.series[figure, name])
        yield f"- {name}: " + ", ".join(f"{x} cycles {numbers.cycles(figure, name, x) / 1e6:.1f}" for x in row)


def ratio(numbers, name, x, base, figure="6-5"):
    return numbers.cycles(figure, name, x) / numbers.cycles(figure, name, base)


def ahead_of_both(numbers, figure):
    """The numbers of cores, from 4 on, at which VC takes less time than both; and whether these are all."""
    ahead = [n for n in sorted(numbers.series[figure, "vc"])
             if n >= 4 and numbers.cycles(figure, "vc", n) < min(numbers.cycles(figure, b, n) for b in BARRIERS[:2])]
    return ahead, {n for n in numbers.series[figure, "vc"] if n >= 4} == set(ahead)


def clustering_claims(numbers):
    """Sections 6.1.2 and 6.1.3: streamcluster."""
    ahead, all_ahead = ahead_of_both(numbers, "6-3")
    yield "VC is ahead of both from 4 cores on", "at " + ", ".join(map(str, ahead)) + " cores", all_ahead
    order = all(sorted(BARRIERS, key=lambda b: numbers.exit(b, n, "6-3")) == sorted(BARRIERS, key=lambda b: numbers.cycles("6-3", b, n))
                for n in numbers.series["6-3", "vc"] if n >= 4)
    yield "exit latencies are in the order of the end-to-end times", "from 4 cores on", order
    transport = ratio(numbers, "transport", 20000, 5, "6-6")
    yield "a high transport delay does not increase the run time", f"20000 cycles: {transport:.2f} times", transport < 1.1
    near = ratio(numbers, "transport", 200, 5, "6-6")
    yield "a transport delay of 200 cycles does not", f"{near:.3f} times", near < 1.03
    controller = ratio(numbers, "controller", 200, 10, "6-6")
    yield "controller of 200 cycles is comparable", f"{controller:.3f} times", controller < 1.15
    raised = (numbers.cycles("6-6", "check", 200) - numbers.cycles("6-6", "check", 3)) / EPISODES / 63 / 197
    yield ("the check's cost raises the run time directly", f"by {raised:.2f} cycles for each cycle of 63 looks",
           0.9 < raised < 1.1)
    check = ratio(numbers, "check", 200, 3, "6-6")
    yield "and is not the biggest factor", f"200 cycles: {check:.2f} times", check < 2


def claims(numbers):
    """(claim, what came out, does it hold?)"""
    ahead, all_ahead = ahead_of_both(numbers, "6-1")
    growth = {b: numbers.exit(b, 64) / numbers.exit(b, 8) for b in BARRIERS}
    grown = ", ".join(f"{b} {growth[b]:.1f}" for b in BARRIERS)
    apart = max(abs(numbers.exit(b, n) / (numbers.cycles("6-1", b, n) / numbers.loops) - 1)
                for b in BARRIERS for n in (4, 8, 16, 32, 64))
    many = numbers.cycles("6-1", "pthread", 64) / numbers.cycles("6-1", "sense-reversing", 64)
    slow, controller = ratio(numbers, "transport", 20000, 5), ratio(numbers, "controller", 200, 10)
    raised = (numbers.cycles("6-5", "check", 200) - numbers.cycles("6-5", "check", 3)) / numbers.loops / 63 / 197
    yield "VC is ahead of both from 4 cores on", "at " + ", ".join(map(str, ahead)) + " cores", all_ahead
    yield ("sense-reversing grows fastest", f"exit latency, 64 cores by 8: {grown}",
           growth["sense-reversing"] == max(growth.values()))
    yield ("pthread is ahead of sense-reversing with many cores", f"{many:.1f} times its time at 64", many < 1)
    yield ("exit latency has the trend of the end-to-end time",
           f"4 to 64 cores: within {100 * apart:.0f} % of a barrier's share of the loop", apart < 0.5)
    yield ("transport of 200 cycles changes nothing", f"{ratio(numbers, 'transport', 200, 5):.3f} times",
           ratio(numbers, "transport", 200, 5) < 1.03)
    yield ("transport of 20000 cycles about doubles the loop", f"{slow:.2f} times", 1.8 < slow < 2.2)
    yield ("controller of 200 cycles is comparable", f"{controller:.3f} times", controller < 1.15)
    yield ("the check's cost raises the run time directly", f"by {raised:.2f} cycles for each cycle of 63 looks",
           0.9 < raised < 1.1)


SYSTEMS = ("vc-deque", "vc-cas", "global-queue", "cilk")
SKEWED, LEVEL = ("total skew", "half", "quarter"), ("even", "random")


def stealing_times(text):
    """(system, distribution) -> cycles"""
    return {(row["system"], row["distribution"]): int(row["cycles"]) for row in csv.DictReader(text.splitlines())}


def stealing_table(times):
    yield "Fig. 6-8: 640 tasks of 0.12 ms on 64 cores, end to end in ms; 1.2 ms if no core ever waited"
    yield ""
    yield "| distribution | " + " | ".join(SYSTEMS) + " |"
    yield "|---|" + "---|" * len(SYSTEMS)
    for d in ("total skew", "half", "even", "quarter", "random"):
        yield f"| {d} | " + " | ".join(f"{times[s, d] / 1e6:.3f}" for s in SYSTEMS) + " |"
    yield ""
    yield from claims_table("claim of section 6.2", stealing_claims(times))


def stealing_claims(times):
    best = {d: min(SYSTEMS, key=lambda s: times[s, d]) for d in SKEWED + LEVEL}
    for d in SKEWED:
        yield f"VC-CAS is best at {d}", f"best: {best[d]}", best[d] == "vc-cas"
    for d in LEVEL:
        yield f"Cilk style is slightly best at {d}", f"best: {best[d]}", best[d] == "cilk"
    behind = max(times["vc-deque", d] / times["vc-cas", d] for d in SKEWED + LEVEL)
    yield "VC-deque is a little behind VC-CAS", f"at most {behind:.3f} times its time", 1 < behind < 1.3
    last = [d for d in SKEWED + LEVEL if times["global-queue", d] == max(times[s, d] for s in SYSTEMS)]
    yield ("the global queue is behind but at total skew", "last at " + (", ".join(last) or "none"),
           set(last) == {"half", "quarter", "even", "random"})
    own = min(SKEWED + LEVEL, key=lambda d: times["global-queue", d])
    yield "the global queue does best at total skew", f"its best: {own}", own == "total skew"


def claims_table(heading, rows):
    yield f"| {heading} | here | holds |"
    yield "|---|---|---|"
    for claim, here, holds in rows:
        yield f"| {claim} | {here} | {'yes' if holds else 'no'} |"


def tables(numbers):
    for lines in (by_cores(numbers, "6-1"), by_cost(numbers, "6-5"), claims_table("claim of section 6.1", claims(numbers)),
                  by_cores(numbers, "6-3"), by_cost(numbers, "6-6"),
                  claims_table("claim of section 6.1.2 and 6.1.3, on streamcluster", clustering_claims(numbers))):
        yield from lines
        yield ""
