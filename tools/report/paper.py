#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The paper's evaluation beside ours: paper | ours | difference, statements that hold or do not, plots.

    paper.py --paper bench/paper/paper.json --results evaluate.json [--area area.json] [--variant NAME=FILE]...
             [--svg DIR] [--update FILE]

--results is the output of bench/paper/evaluate, --area of `area --json`; a --variant is that of evaluate with another
assumption, and gets a column in a table of predicted speed-ups. --svg draws the figures into DIR; --update
replaces what is between the lines `<!-- results -->` and `<!-- /results -->` of a Markdown file by the tables.
"""
import argparse
import json
import math
import re
import sys

BEGIN, END = "<!-- results -->", "<!-- /results -->"
NOTABLE = 10.0 + 1e-9  # percent; docs/paper.md explains what differs by more


def octaves(values, prefix):
    """{upper log2 bound: percent} of a Fig. 10 distribution."""
    found = {}
    for key, value in values.items():
        if key.startswith(prefix + ".2^"):
            found[int(key.rsplit("^", 1)[1])] = value
    return found


def peak(distribution, least=0):
    inside = {k: v for k, v in distribution.items() if k >= least}
    return max(inside, key=inside.get) if inside else None


def derive(values, area=None):
    """What the comparison needs and the simulator does not print: means, shares, peaks, areas."""
    values = dict(values)
    three = [values.get(f"fig12.{a}.{n}") for a in ("bodytrack", "streamcluster", "x264") for n in (32, 64)]
    if None not in three:
        values["fig12.mean"] = sum(three) / len(three)
    for size in ("x4", "x8"):
        outside, csa, rr = (values.get(f"table7.{size}.{c}") for c in ("not_cs", "csa", "rr"))
        if outside is not None:
            values[f"table7.{size}.cs_percent"] = 100 * (csa + rr) / (outside + csa + rr)
            if csa + rr > 0:
                values[f"table7.{size}.rr_percent"] = 100 * rr / (csa + rr)
    for size in ("x1", "x4", "x8"):
        distribution = octaves(values, f"fig10.rr.{size}")
        if distribution:
            values[f"fig10.{size}.peak_ns"] = 2 ** peak(distribution)
            second = peak(distribution, least=16)
            if second is not None:
                values[f"fig10.{size}.second_peak_ns"] = 2**second
    if area:
        values["area.total_um2"] = area["total_um2"]
        for name in ("fsm", "spm", "added"):
            values[f"area.{name}_percent"] = area[f"{name}_percent"]
        for other in area["others"]:
            values[f"area.chip.{other['name']}"] = other["chip_percent"]
        values["area.chip.Subutai"] = area["chip_added_percent"]
        values["area.chip.total"] = area["chip_total_percent"]
    return values


def difference(paper, ours):
    """Percent of the paper's; None where the paper has nothing to be a percentage of."""
    return None if paper == 0 else 100 * (ours - paper) / paper


def show(value):
    if value is None:
        return "-"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 100):
        return f"{value:.0f}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) < 0.1 else f"{value:.2f}"


def named(entry):
    return entry["what"] + (f" ({entry['unit']})" if entry["unit"] not in ("", "x") else "")


def compare(paper, values):
    """Rows (source, what, kind, paper, ours, difference, is notable) in the data's order."""
    rows = []
    for entry in paper["compare"]:
        ours = values.get(entry["id"])
        off = None if ours is None else difference(entry["paper"], ours)
        rows.append((entry["source"], named(entry), entry["kind"], entry["paper"], ours, off,
                     off is not None and abs(off) > NOTABLE))
    return rows


NAME = re.compile(r"\b[a-z][a-z0-9]*\.[A-Za-z0-9_.]+")


def holds(expression, values):
    """True, False, or None if a value is missing. Numbers, names of values, comparisons, + - *, and, or: no more."""
    missing = [n for n in NAME.findall(expression) if n not in values]
    if missing:
        return None
    text = NAME.sub(lambda m: repr(float(values[m.group(0)])), expression)
    if not re.fullmatch(r"(?:[\d.e+\-*<>=() ]|and|or|inf)+", text):
        raise ValueError(f"not a condition: {expression}")
    return bool(eval(text, {"__builtins__": {}}))  # only what the pattern lets through


def statements(paper, values):
    """Rows (source, text, True, False, None or "assumed"); the last for what the models were given."""
    rows = []
    for claim in paper["claims"]:
        verdict = holds(claim["holds"], values)
        rows.append((claim["source"], claim["text"], "assumed" if verdict and claim.get("assumed") else verdict))
    return rows


def table(rows, header):
    """Plain text, columns aligned; numbers to the right."""
    rows = [header] + rows
    widths = [max(len(r[i]) for r in rows) for i in range(len(header))]
    right = [header[i] not in ("source", "what", "") for i in range(len(header))]
    lines = []
    for row in rows:
        cells = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def texts(rows):
    out = []
    for source, what, kind, theirs, ours, off, notable in rows:
        sign = "-" if off is None else f"{off:+.1f} %" + ("!" if notable else " ")
        out.append((source, what, kind, show(theirs), show(ours), sign))
    return out


def spread(paper, values, variants):
    """Predicted ratios under other assumptions: header and rows of texts."""
    header = ["source", "what", "paper", "as above"] + [name for name, _ in variants]
    rows = []
    for entry in paper["compare"]:
        if entry["kind"] in ("predicted", "half fitted") and (entry["unit"] == "x" or entry.get("varied")):
            found = [values.get(entry["id"])] + [v.get(entry["id"]) for _, v in variants]
            rows.append([entry["source"], named(entry), show(entry["paper"])] + [show(v) for v in found])
    return header, rows


VERDICT = {True: "holds", False: "does not hold", None: "not run", "assumed": "assumed"}


def plain(rows, claims, other=None):
    head = ("source", "what", "", "paper", "ours", "difference")
    lines = [table(texts(rows), head), ""]
    lines += [f"{VERDICT[v]:14} {source}: {text}" for source, text, v in claims]
    if other:
        lines += ["", table(other[1], other[0])]
    return "\n".join(lines)


def markdown(rows, claims, results, other=None):
    setting = (f"Spread {results.get('spread_permille', 0) / 10:g} %, seed {results.get('seed')}, "
               f"parallel phases {results.get('scaling')}.")
    lines = [setting, "", "| source | what | | paper | ours | difference |", "|---|---|---|---:|---:|---:|"]
    for row in texts(rows):
        cells = list(row)
        cells[5] = f"**{cells[5][:-1]}**" if cells[5].endswith("!") else cells[5].strip()
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| what the text says | source | here |", "|---|---|---|"]
    lines += [f"| {text} | {source} | {VERDICT[v]} |" for source, text, v in claims]
    values = results["values"]
    phases = [k.split(".")[1] for k in values if k.startswith("fit.") and k.endswith(".phase_ns")]
    if phases:
        lines += ["", "| application | fitted phase | what the paper's 64-core speed-up would take |", "|---|---:|---:|"]
        lines += [f"| {n} | {values[f'fit.{n}.phase_ns'] / 1000:.1f} us | {values[f'fit.{n}.needed_64']:.2f} times that |"
                  for n in phases]
    if other:
        lines += ["", "| " + " | ".join(other[0]) + " |", "|---|---|" + "---:|" * (len(other[0]) - 2)]
        lines += ["| " + " | ".join(row) + " |" for row in other[1]]
    return "\n".join(lines)


def update(path, text):
    with open(path, encoding="utf-8") as file:
        old = file.read()
    begin, end = old.find(BEGIN), old.find(END)
    if begin < 0 or end < begin:
        raise ValueError(f"{path}: no lines {BEGIN} and {END}")
    new = old[:begin] + BEGIN + "\n" + text + "\n" + old[end:]
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)


def load(path):
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    for value in data.get("values", {}).values():
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ValueError(f"{path}: a value is not a finite number")
    return data


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--paper", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--area")
    parser.add_argument("--variant", metavar="NAME=FILE", action="append", default=[])
    parser.add_argument("--svg", metavar="DIR")
    parser.add_argument("--update", metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        paper, results = load(options.paper), load(options.results)
        values = derive(results["values"], load(options.area) if options.area else None)
        rows, claims = compare(paper, values), statements(paper, values)
        variants = [v.partition("=")[::2] for v in options.variant]
        other = spread(paper, values, [(n, derive(load(f)["values"])) for n, f in variants]) if variants else None
        print(plain(rows, claims, other))
        if options.update:
            update(options.update, markdown(rows, claims, results, other))
    except (OSError, ValueError, KeyError) as error:
        print(f"paper.py: {error}", file=sys.stderr)
        return 2
    if options.svg:
        try:
            import paper_plots
        except ImportError as error:
            print(f"paper.py: no plots: {error} (Debian: python3-matplotlib)", file=sys.stderr)
            return 0
        try:
            for name in paper_plots.draw(paper, values, options.svg):
                print(f"paper.py: {name}", file=sys.stderr)
        except OSError as error:
            print(f"paper.py: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
