# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figs. 10 to 13 of the paper as we have them, and all that can be compared in one picture. SVG, the same every time."""
import os

import figure
from figure import BLUE, GREEN, GREY, RED, plt

from paper import compare, octaves

TICKS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)
SETS = ("bodytrack", "streamcluster", "x264", "mix")
PARTS = (("own work", BLUE), ("synchronization calls", RED), ("waiting for a core, and the rest", GREY))


def patch(colour):
    return plt.Rectangle((0, 0), 1, 1, color=colour)


def draw_thread(axis, at, values, base):
    """A bar of what a thread's time went to."""
    work, calls, total = (values[f"{base}.{k}_s"] for k in ("work", "sync", "total"))
    bottom = 0
    for height, (_, colour) in zip((work, calls, max(0, total - work - calls)), PARTS):
        axis.bar(at, height, bottom=bottom, color=colour, width=0.8)
        bottom += height


def figure_12(values):
    """Seconds of T0 and T7: work, synchronization, rest."""
    applications = [a for a in ("bodytrack", "streamcluster", "x264", "facesim") if f"fig12.{a}.32" in values]
    picture, axes = plt.subplots(1, len(applications), figsize=(max(4.6, 2.4 * len(applications)), 3.2), squeeze=False)
    for axis, application in zip(axes[0], applications):
        labels = []
        for cores in (32, 64):
            for thread in ("T0", "T7"):
                for sync, short in (("software", "software"), ("subutai", "Subutai")):
                    draw_thread(axis, len(labels), values, f"fig12.{application}.{cores}.{sync}.{thread}")
                    labels.append(f"{cores} cores, {thread}, {short}")
        axis.set_xticks(range(len(labels)), labels, rotation=90)
        axis.tick_params(axis="x", length=0, labelsize=7)
        axis.set_title(application)
        figure.room_beside_bars(axis, len(labels))
        figure.room_above_bars(axis)
    axes[0][0].set_ylabel("time of the thread, s")
    figure.legend_above(picture, [patch(colour) for _, colour in PARTS], [name for name, _ in PARTS])
    return picture, 0.92


def figure_10(values):
    picture, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True)
    for axis, policy in zip(axes, ("rr", "csa")):
        seen = set()
        for k, (size, colour) in enumerate(zip(("x1", "x4", "x8"), (GREY, BLUE, RED))):
            distribution = octaves(values, f"fig10.{policy}.{size}")
            seen.update(distribution)
            axis.bar([o + 0.28 * (k - 1) for o in distribution], list(distribution.values()), width=0.26, color=colour)
        if seen:
            axis.set_xlim(min(seen) - 1, max(seen) + 1)
        axis.set_title(f"Bodytrack, {policy.upper()}")
        axis.set_xlabel("length of a critical section, up to 2^x ns")
    for axis in axes:
        figure.room_above_bars(axis)
    axes[0].set_ylabel("share of all time in sections, %")
    figure.legend_above(picture, [patch(c) for c in (GREY, BLUE, RED)], ["1 application", "4 applications", "8 applications"])
    return picture, 0.92


def figure_11(values):
    picture, axis = plt.subplots(figsize=(4.6, 3.2))
    sizes = ("x1", "x4", "x8")
    for k, (policy, colour) in enumerate((("rr", BLUE), ("csa", GREEN))):
        axis.bar([i + 0.4 * (k - 0.5) for i in range(3)], [1000 * values[f"fig11.{policy}.{s}.sum_s"] for s in sizes],
                 width=0.36, color=colour)
    axis.set_xticks(range(3), [f"Bodytrack {s}" for s in sizes])
    axis.tick_params(axis="x", length=0)
    axis.set_ylabel("time in critical sections,\nms for each application")
    figure.room_beside_bars(axis, 3)
    figure.room_above_bars(axis)
    figure.legend_above(picture, [patch(BLUE), patch(GREEN)], ["RR", "CSA"])
    return picture, 0.92


def figure_13(values):
    sets = [s for s in SETS if f"fig13.{s}.a" in values]
    picture, axes = plt.subplots(1, len(sets), figsize=(max(4.6, 2.4 * len(sets)), 3.2), squeeze=False)
    kinds = (("software", "software", GREY), ("subutai", "Subutai", BLUE))
    for axis, name in zip(axes[0], sets):
        for k, (sync, _, colour) in enumerate(kinds):
            heights = [values.get(f"fig13.{name}.{sync}.{p}.exec_s") for p in ("oat", "rr", "csa")]
            axis.bar([i + 0.4 * (k - 0.5) for i in range(3)], [h or 0 for h in heights], width=0.36, color=colour)
            for i in range(3):
                if heights[i] is None:
                    axis.annotate("stuck", (i + 0.4 * (k - 0.5), 0), xytext=(0, 3), textcoords="offset points",
                                  rotation=90, ha="center", va="bottom", fontsize=7)
        axis.set_xticks(range(3), ("OAT", "RR", "CSA"))
        axis.tick_params(axis="x", length=0)
        axis.set_title(f"{name} x8" if name != "mix" else "mix")
        figure.room_beside_bars(axis, 3)
        figure.room_above_bars(axis)
    axes[0][0].set_ylabel("time until the last application ends, s")
    figure.legend_above(picture, [patch(colour) for _, _, colour in kinds], [name for _, name, _ in kinds])
    return picture, 0.92


def overview(paper, values):
    """Ours over the paper's; fitted ones hollow."""
    rows = [r for r in compare(paper, values) if r[4] and r[3] and r[2] != "model"]
    height = 0.17 * len(rows) + 1.2
    picture, axis = plt.subplots(figsize=(8, height))
    for k, (source, what, kind, theirs, ours, off, notable) in enumerate(rows):
        axis.plot(ours / theirs, -k, "o", color=RED if notable else BLUE,
                  fillstyle="none" if kind == "fitted" else "full", markersize=4)
    axis.axvspan(0.9, 1.1, color=GREY, alpha=0.5, linewidth=0, zorder=0)
    axis.axvline(1, color="black", linewidth=0.5)
    axis.set_xscale("log")
    axis.set_xticks([t for t in TICKS if axis.get_xlim()[0] <= t <= axis.get_xlim()[1]])
    axis.get_xaxis().set_major_formatter(lambda value, _: f"{value:g}")
    axis.get_xaxis().set_minor_locator(plt.NullLocator())
    axis.grid(axis="x")
    axis.grid(axis="y", visible=False)
    axis.set_ylim(-len(rows), 1)
    axis.set_yticks([-k for k in range(len(rows))], [f"{r[0]}: {r[1]}" for r in rows], fontsize=6)
    axis.set_xlabel("ours over the paper's value (log scale)")
    handles = [patch(GREY)] + [plt.Line2D([], [], color=c, marker="o", linestyle="none", markersize=4, fillstyle=f)
                               for c, f in ((BLUE, "full"), (RED, "full"), (BLUE, "none"))]
    figure.legend_above(picture, handles, ["within 10 %", "predicted, within 10 %", "off by more", "fitted"])
    return picture, 1 - 0.35 / height


def save(drawn, folder, name):
    picture, top = drawn
    return figure.save(picture, os.path.join(folder, name), top=top)


def draw(paper, values, folder):
    written = []
    if any(k.startswith("fig12.") for k in values):
        written.append(save(figure_12(values), folder, "fig12.svg"))
    if "fig11.rr.x1.sum_s" in values:
        written.append(save(figure_10(values), folder, "fig10.svg"))
        written.append(save(figure_11(values), folder, "fig11.svg"))
    if any(k.startswith("fig13.") for k in values):
        written.append(save(figure_13(values), folder, "fig13.svg"))
    written.append(save(overview(paper, values), folder, "overview.svg"))
    return written
