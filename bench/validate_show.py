# SPDX-License-Identifier: LGPL-2.1-or-later
"""What bench/validate shows of its rows: the table, the summary with its bars, the figure."""
import math
import statistics

# (name, time under glibc; ratio of an engine or of one CPU to it: median at most; nine in ten within; none beyond)
BARS = {"glibc": (0.10, 0.25, 1.0), "direct": (0.20, None, None), "switch": (0.20, None, None), "one CPU": (0.15, None, None)}


def error(predicted, real):
    """How far off, as a factor above 1 less 1: half and twice are both 1."""
    return math.exp(abs(math.log(predicted / real))) - 1


def ratio_errors(rows, way):
    """Errors of the times under glibc, or of the ratios of another way to them."""
    base = {(row["program"], row["threads"]): row for row in rows if row["way"] == "glibc"}
    errors = []
    for row in rows:
        glibc = base.get((row["program"], row["threads"]))
        if row["way"] != way or row["predicted_s"] is None or glibc is None or glibc["predicted_s"] is None:
            continue
        if way == "glibc":
            errors.append(error(row["predicted_s"], row["real_s"]))
        else:
            errors.append(error(row["predicted_s"] / glibc["predicted_s"], row["real_s"] / glibc["real_s"]))
    return errors


def summary(rows):
    """Rows of cells: what, median error, within 25 %, beyond twice, the bar, whether it is met."""
    lines = [["what", "median error", "within 25 %", "beyond twice", "bar", "met"]]
    for way, (median, tenths, most) in BARS.items():
        errors = ratio_errors(rows, way)
        if not errors:
            continue
        n_within, n_beyond = sum(e <= 0.25 for e in errors), sum(e > 1 for e in errors)
        met = statistics.median(errors) <= median and (tenths is None or n_within >= 0.9 * len(errors))
        met = met and (most is None or n_beyond == 0)
        bar = f"{100 * median:.0f} %" + ("" if tenths is None else "; 9 in 10; none")
        what = "time under glibc" if way == "glibc" else f"{way} over glibc"
        lines.append([what, f"{100 * statistics.median(errors):.0f} %", f"{n_within} of {len(errors)}",
                      f"{n_beyond} of {len(errors)}", bar, "yes" if met else "no"])
    return lines


def spread(rows):
    """Of how many rows do the real times under glibc differ so much that no prediction is within 25 % of each? A line, or none."""
    known = [row for row in rows if row["way"] == "glibc" and row["predicted_s"] is not None and "real_min_s" in row]
    wide = [row for row in known if row["real_max_s"] > 1.25 * row["real_min_s"]]
    if not known:
        return ""
    within = sum(is_between(row) for row in wide)
    return f"In {len(wide)} of {len(known)} rows the real times under glibc differ by more than 25 %; {within} of these are predicted between them."


def is_between(row):
    """Is the prediction a time that a real run may take: not below the shortest, and not above the longest? None: those are not kept."""
    if row["predicted_s"] is None or "real_min_s" not in row:
        return None
    return row["real_min_s"] <= row["predicted_s"] <= row["real_max_s"]


def between(rows):
    """Of how many predictions is that so, in each way? A line, or none."""
    parts = []
    for way in BARS:
        known = [is_between(row) for row in rows if row["way"] == way and is_between(row) is not None]
        if known:
            parts.append(f"{sum(known)} of {len(known)} {'under ' if way != 'one CPU' else 'on '}{way}")
    return f"Marked with *: predictions between the shortest and the longest real run. They are {', '.join(parts)}." if parts else ""


def cells(rows):
    """A line for each program and number of threads: for each way "real, predicted: ratio", in milliseconds, and the mark of is_between."""
    lines = [["program", "threads", *BARS, "others"]]
    for key in dict.fromkeys((row["program"], row["threads"]) for row in rows):
        own = {row["way"]: row for row in rows if (row["program"], row["threads"]) == key}
        line = [key[0], str(key[1])]
        for way in BARS:
            row = own.get(way)
            if row is None:
                line.append("-")
            elif row["predicted_s"] is None:
                line.append(f"{row['real_s'] * 1e3:.0f}, -")
            else:
                line.append(f"{row['real_s'] * 1e3:.0f}, {row['predicted_s'] * 1e3:.0f}: {row['predicted_s'] / row['real_s']:.2f}" + (" *" if is_between(row) else ""))
        lines.append(line + [f"{100 * max(row['others'] for row in own.values()):.0f} %"])
    return lines


def markdown(lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]])


def figure(rows):
    """Predicted over real times, both logarithmic: the line in the midst is right, the outer ones are off by two."""
    rows = [row for row in rows if row["predicted_s"] is not None]
    colours = {"glibc": "#1f5fa8", "direct": "#c2541b", "switch": "#2f8a4c", "one CPU": "#777777"}
    times = [row[key] for row in rows for key in ("real_s", "predicted_s")]
    low, high, size, edge = math.log10(min(times)) - 0.1, math.log10(max(times)) + 0.1, 480, 56

    def x(value):
        return edge + size * (math.log10(value) - low) / (high - low)

    def y(value):
        return edge + size - size * (math.log10(value) - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{size + 2 * edge}" height="{size + 2 * edge}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>',
           f'<clipPath id="inside"><rect x="{edge}" y="{edge}" width="{size}" height="{size}"/></clipPath>',
           f'<rect x="{edge}" y="{edge}" width="{size}" height="{size}" fill="none" stroke="#444"/>']
    for power in range(math.ceil(low), math.floor(high) + 1):
        text = f"{1000 * 10.0 ** power:g} ms"
        out.append(f'<text x="{x(10.0 ** power):.1f}" y="{edge + size + 18}" text-anchor="middle">{text}</text>')
        out.append(f'<text x="{edge - 6}" y="{y(10.0 ** power):.1f}" text-anchor="end">{text}</text>')
    for factor, dash in ((0.5, "4 4"), (1, "none"), (2, "4 4")):
        out.append(f'<line x1="{x(10 ** low):.1f}" y1="{y(factor * 10 ** low):.1f}" x2="{x(10 ** high):.1f}" '
                   f'y2="{y(factor * 10 ** high):.1f}" stroke="#999" stroke-dasharray="{dash}" clip-path="url(#inside)"/>')
    for row in rows:
        title = f'{row["program"]}, {row["threads"]} threads, {row["way"]}'
        out.append(f'<circle cx="{x(row["real_s"]):.1f}" cy="{y(row["predicted_s"]):.1f}" r="3.5" fill="{colours[row["way"]]}" '
                   f'fill-opacity="0.7"><title>{title}</title></circle>')
    for i, (way, colour) in enumerate(colours.items()):
        out.append(f'<circle cx="{edge + 14}" cy="{edge + 16 + 18 * i}" r="4" fill="{colour}"/>'
                   f'<text x="{edge + 24}" y="{edge + 20 + 18 * i}">{way}</text>')
    out.append(f'<text x="{edge + size / 2}" y="{edge + size + 40}" text-anchor="middle">real time</text>'
               f'<text x="16" y="{edge + size / 2}" text-anchor="middle" transform="rotate(-90 16 {edge + size / 2})">predicted time</text>')
    return "\n".join(out) + "\n</svg>\n"
