#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Medians, ratios and tables of the bench scripts. Each subcommand reads what a run has written and prints what the
script shows; all that knows the form of `subutai compare --json` is here. Python's standard library only.
"""
import argparse
import json
import re
import statistics
import sys


# ---- numbers ----

def number(text):
    """The number in a text, None if it has none ("-", "null")."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def middle(samples):
    """(median, min, max)"""
    return statistics.median(samples), min(samples), max(samples)


def two_decimals(value):
    return "-" if value is None else f"{value:.2f}"


def nanoseconds(ns):
    """For people: "1.23 us"; "-" for None."""
    if ns is None:
        return "-"
    for least, decimals, unit in ((1e9, 2, "s"), (1e6, 1, "ms"), (1e3, 2, "us")):
        if ns >= least:
            return f"{ns / least:.{decimals}f} {unit}"
    return f"{ns:.1f} ns"


def is_within(bounds, median):
    """Whether a median is within "LOW", "<=HIGH" or "LOW..HIGH"; None without bounds or a median."""
    value = number(median)
    if value is None or bounds == "-":
        return None
    if bounds.startswith("<="):
        return value <= float(bounds[2:])
    low, _, high = bounds.partition("..")
    return float(low) <= value and (not high or value <= float(high))


# ---- output ----

def table(rows, underline=True):
    """Rows of cells as aligned columns; the first row is the heading."""
    n_columns = max(len(row) for row in rows)
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(n_columns)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    if underline:
        lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def tabbed(cells):
    return "\t".join(str(cell) for cell in cells)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# ---- results of `subutai compare --json`, of one point ----

def outcome(point, compared):
    """What to say about a comparison. If a program's output depends on timing, only its status is compared."""
    engines = point["engines"]
    if any(e["timeouts"] > 0 for e in engines):
        return "TIMEOUT"
    if not all(e["same_status"] for e in engines):
        return "EXIT STATUS DIFFERS"
    if any(e["status"] != "exit 0" for e in engines):
        return f"FAILED ({engines[0]['status']})"
    if not compared:
        return "not compared"
    if point["missing_output"]:
        return "OUTPUT MISSING"
    return "identical" if all(e["same_output"] for e in engines) else "DIFFERENT"


SHOWN = ("engine", "wall_ns", "cpu_ns", "ratio", "cpu_ratio", "peak_kib", "status")


def engine_objects(point, labels, said):
    """An object for each engine: the labels first, what was measured, the outcome last."""
    return [{**labels, **{key: e[key] for key in SHOWN}, "outcome": said} for e in point["engines"]]


# ---- subcommands ----

def do_table(options):
    rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
    print(table(rows))


def do_markdown(options):
    """The file of rows with a column `engine`: a line for each bench and number of threads, a column for each engine."""
    heading, *rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
    cells, engines = {}, []
    for row in (dict(zip(heading, line)) for line in rows):
        if row["engine"] not in engines:
            engines.append(row["engine"])
        spread = "" if row["min"] == "-" else f" ({row['min']} to {row['max']})"
        cells.setdefault((row["bench"], row["threads"]), {})[row["engine"]] = row["median"] + spread
    lines = [["bench", "threads"] + [f"`{engine}`" for engine in engines], ["---"] * (2 + len(engines))]
    lines += [[*key] + [measured.get(engine, "-") for engine in engines] for key, measured in cells.items()]
    print("\n".join(f"| {' | '.join(line)} |" for line in lines))


def do_middle(options):
    """Lines of one number, or of two, which count as their quotient."""
    samples = []
    for line in sys.stdin:
        numbers = [float(word) for word in line.split()]
        samples.append(numbers[0] / numbers[1] if len(numbers) > 1 else numbers[0])
    print(tabbed(two_decimals(value) for value in middle(samples)))


def do_field(options):
    """Members of a JSON object on stdin, on one line."""
    values = json.load(sys.stdin)
    print(*(values[name] for name in options.names))


def do_row(options):
    """Appends a line to the file of rows, and prints it as JSON or, on stderr, as a sentence."""
    n = len(options.columns.split(","))
    columns, cells = options.columns.split(","), options.cells[:n]
    bounds, median, least, most = options.cells[n:]
    within = is_within(bounds, median)
    word = {True: "yes", False: "no", None: "-"}[within]
    with open("rows", "a", encoding="utf-8") as file:
        file.write(tabbed(cells + [bounds, median, least, most, word]) + "\n")
    if options.json:
        named = {c: number(v) if c == "threads" else v for c, v in zip(columns, cells)}
        if isinstance(named.get("threads"), float):
            named["threads"] = int(named["threads"])
        print(compact({**named, "bounds": bounds, "median": number(median), "min": number(least), "max": number(most),
                       "within": within}), flush=True)
        return
    what = ", ".join(f"{v} threads" if c == "threads" else v for c, v in zip(columns, cells))
    print(f"{what}: measured {median} (min {least}, max {most}); bounds {bounds}, within: {word}", file=sys.stderr)


def do_bench(options):
    """From `subutai bench --json`: the ratio of one engine, its median, min and max."""
    with open(options.file, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row["engine"] == options.engine:
                print(tabbed(two_decimals(row[options.ratio + end]) for end in ("", "_min", "_max")))


def do_outcome(options):
    point = load(options.file)["points"][0]
    print(outcome(point, options.compared == "yes"))


def do_ratio(options):
    """Of the engine of that place in a comparison. With --inverse: how many times slower it is."""
    ratio = load(options.file)["points"][0]["engines"][options.engine][options.ratio]
    values = [ratio[key] for key in ("median", "min", "max")]
    if options.inverse:
        values = [1 / values[0], 1 / values[2], 1 / values[1]]
    print(tabbed(two_decimals(value) for value in values))


def do_throughput(options):
    """Lines of throughputs of neighbouring runs, the base's first: the ratio of that column to the base."""
    lines = [[float(word) for word in line.split()] for line in sys.stdin]
    base, own = ([line[i] for line in lines] for i in (0, options.column))
    pairs = [o / b for o, b in zip(own, base)]
    print(tabbed(two_decimals(v) for v in (statistics.median(own) / statistics.median(base), min(pairs), max(pairs))))


def do_memory(options):
    """Lines of KiB: few and many threads without the library, then with it. Two lines: a thread's, and what is fixed."""
    each, fixed = [], []
    for line in sys.stdin:
        plain_few, plain_many, few, many = (float(word) for word in line.split())
        each.append(((many - few) - (plain_many - plain_few)) / (options.many - options.few))
        fixed.append(few - plain_few - each[-1] * options.few)
    for samples in (each, fixed):
        print(tabbed(two_decimals(value) for value in middle(samples)))


def do_trace(options):
    """From `subutai trace info --json`: bytes for each event, and events; fails without a whole trace."""
    info = load(options.file)
    if not info["whole"] or info["events"] == 0:
        return 1
    print(tabbed((round(info["bytes"] / info["events"], 2), info["events"])))


def do_delay(options):
    """The model's median of a lock of a free mutex, and what the clock says over it; fails if its home is elsewhere."""
    rows = [row for row in load(options.stats)["latencies"] if row["operation"] == "lock, empty"]
    expected = {"local": lambda row: row["local"] == row["count"], "remote": lambda row: row["local"] == 0}
    if not rows or not expected[options.home](rows[0]):
        return 1
    model = rows[0]["median_ns"]
    print(model, load(options.clock)["median_ns"] / (options.scale * model))


def do_comparison(options):
    """A comparison as bench/parsec/run and demo show it: JSON, a row for each engine, or one for all."""
    point = load(options.file)["points"][0]
    labels = {"program": options.program}
    if options.size:
        labels["size"] = options.size
    labels["threads"] = options.threads
    engines = point["engines"]
    if options.form == "json":
        for row in engine_objects(point, labels, options.outcome):
            print(compact(row))
    elif options.form == "engines":
        for e in engines:
            wall = e["wall_ns"]
            print(tabbed([options.program, options.threads, e["engine"]]
                         + [nanoseconds(wall[key]) for key in ("median", "min", "max")]
                         + [two_decimals(e["ratio"]["median"]), options.outcome]))
    elif options.form == "line":
        print(", ".join(f"{e['engine']} {e['wall_ns']['median'] / 1e6:.0f} ms" for e in engines))
    else:
        print(tabbed([options.program, options.threads] + [nanoseconds(e["wall_ns"]["median"]) for e in engines]
                     + [" ".join(two_decimals(e["ratio"]["median"]) for e in engines[1:]), options.outcome]))


def do_missing(options):
    print(compact({"program": options.program, "missing": options.reason}))


def do_prediction(options):
    """From `subutai predict --json` of both machines: times and their ratio, the paper's value beside it."""
    software, hardware = load(options.file)["runs"]
    figure = f"fig12.{options.program}.{options.threads}"
    paper = next((row["paper"] for row in load(options.paper)["compare"] if row["id"] == figure), None)
    times = software["makespan_ns"], hardware["makespan_ns"]
    if options.json:
        print(compact({"program": options.program, "size": options.size, "threads": options.threads,
                       "calls": software["n_calls"], "software_ns": times[0], "subutai_ns": times[1],
                       "speedup": times[0] / times[1], "paper": paper}))
        return
    print(tabbed([options.program, options.threads, software["n_calls"], nanoseconds(times[0]), nanoseconds(times[1]),
                  two_decimals(times[0] / times[1]), "-" if paper is None else paper]))


def positive(text):
    if not re.fullmatch(r"[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no positive number")
    return int(text)


def parser():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    commands = p.add_subparsers(required=True)

    def command(function, *arguments):
        name = function.__name__[3:]
        sub = commands.add_parser(name, help=(function.__doc__ or "").split("\n", maxsplit=1)[0])
        for names, settings in arguments:
            sub.add_argument(*names.split(), **settings)
        sub.set_defaults(run=function)

    flag, whole, text = {"action": "store_true"}, {"type": positive, "required": True}, {"required": True}
    command(do_table)
    command(do_markdown)
    command(do_middle)
    command(do_field, ("names", {"nargs": "+"}))
    command(do_row, ("--columns", text), ("--json", flag), ("cells", {"nargs": "+"}))
    command(do_bench, ("file", {}), ("engine", {}), ("ratio", {"choices": ("ratio", "cpu_ratio")}))
    command(do_outcome, ("file", {}), ("compared", {"choices": ("yes", "no")}))
    command(do_ratio, ("file", {}), ("engine", {"type": int}), ("ratio", {"choices": ("ratio", "cpu_ratio")}),
            ("--inverse", flag))
    command(do_throughput, ("column", {"type": positive}))
    command(do_memory, ("few", {"type": positive}), ("many", {"type": positive}))
    command(do_trace, ("file", {}))
    command(do_delay, ("stats", {}), ("clock", {}), ("home", {"choices": ("local", "remote")}),
            ("scale", {"type": positive}))
    command(do_comparison, ("file", {}), ("form", {"choices": ("json", "engines", "line", "all")}),
            ("--program", text), ("--threads", whole), ("--size", {}), ("--outcome", {}))
    command(do_missing, ("program", {}), ("reason", {}))
    command(do_prediction, ("file", {}), ("--paper", text), ("--program", text), ("--threads", whole), ("--size", {}),
            ("--json", flag))
    return p


def main(arguments=None):
    options = parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except (OSError, ValueError, KeyError, IndexError, ZeroDivisionError, statistics.StatisticsError) as error:
        print(f"stats.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
