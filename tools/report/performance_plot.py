# SPDX-License-Identifier: LGPL-2.1-or-later
"""The README's picture: how many times faster programs that do nothing but synchronize are than with plain glibc."""
import figure
from figure import BLUE, GREEN, plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

KINDS = ("barrier", "broadcast", "turn-ring", "bounded-queue", "contended")
THREADS = (2, 16, 64)
ENGINES = (("direct", "direct", BLUE), ("direct:wait=switch", "direct, --wait switch", GREEN))
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
WIDTH = 0.4
LEAST = 0.05  # what is below, a run that the machine stopped, is cut off


def arrange(rows):
    """{(kind, threads, engine): row}; ValueError if a bar has no number."""
    found = {(row["kind"], row["threads"], row["engine"]): row for row in rows}
    missing = [f"{k}, {n} threads, {e}" for k in KINDS for n in THREADS for e, _, _ in ENGINES
               if not (found.get((k, n, e)) or {}).get("ratio")]
    if missing:
        raise ValueError("no ratio of " + "; ".join(missing))
    return found


def label(ratio):
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}" if ratio >= 0.095 else f"{ratio:.2f}"


def draw_kind(axis, kind, found):
    """Bars from 1, as fast as glibc, up or down; a line from the least to the most of the runs; the median in figures."""
    for e, (engine, _, colour) in enumerate(ENGINES):
        for i, threads in enumerate(THREADS):
            row = found[kind, threads, engine]
            at, ratio = i + WIDTH * (e - 0.5), row["ratio"]
            axis.bar(at, ratio - 1, bottom=1, width=0.9 * WIDTH, color=colour)
            axis.plot([at, at], [row["ratio_min"], row["ratio_max"]], color="#333333", linewidth=0.8)
            axis.annotate(label(ratio), (at, max(ratio, row["ratio_max"], 1)), xytext=(0, 2), ha="center", va="bottom",
                          textcoords="offset points", fontsize=7.5)
    axis.axhline(1, color="#333333", linewidth=0.8)
    axis.set_xticks(range(len(THREADS)), [str(n) for n in THREADS])
    axis.tick_params(axis="x", length=0)
    axis.set_xlabel("threads")
    axis.set_title(kind)
    figure.room_beside_bars(axis, len(THREADS))


def limits(found):
    """Of the axis: room below and above all that is drawn, labels too."""
    drawn = [found[k, n, e] for k in KINDS for n in THREADS for e, _, _ in ENGINES]
    medians, least, most = ([row[key] for row in drawn] for key in ("ratio", "ratio_min", "ratio_max"))
    return min(0.7, min(medians) / 1.5, max(LEAST, min(least) / 1.4)), 2 * max(1, *medians, *most)


def draw(rows, path, note=""):
    """Write the picture from rows as `subutai bench --json` prints them, ratios to plain glibc."""
    found = arrange(rows)
    picture, axes = plt.subplots(1, len(KINDS), figsize=(9.6, 3.7), sharey=True)
    for axis, kind in zip(axes, KINDS):
        draw_kind(axis, kind, found)
    axes[0].set_yscale("log")
    low, high = limits(found)
    axes[0].set_ylim(low, high)
    axes[0].yaxis.set_major_locator(FixedLocator([t for t in TICKS if low <= t <= high]))
    axes[0].yaxis.set_minor_locator(NullLocator())
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}\u00d7"))
    axes[0].set_ylabel("times as fast as plain glibc\n(log scale, more is better)")
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for _, _, colour in ENGINES]
    figure.legend_above(picture, handles, [name for _, name, _ in ENGINES])
    if note:
        picture.text(0.995, 0.012, note, ha="right", va="bottom", fontsize=7, color="#555555")
    return figure.save(picture, path, bottom=0.04, top=0.92)
