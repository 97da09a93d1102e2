# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figs. 10 to 13 of the paper as we have them, and all that can be compared in one picture. SVG, the same every time."""
import os

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "subutai"
matplotlib.rcParams["svg.fonttype"] = "none"
matplotlib.rcParams["font.size"] = 8

import matplotlib.pyplot as plt  # noqa: E402  after the backend is chosen

from paper import compare, octaves  # noqa: E402

WORK, SYNC, REST = "#4477aa", "#cc6677", "#dddddd"
SETS = ("bodytrack", "streamcluster", "x264", "mix")


def save(figure, folder, name):
    path = os.path.join(folder, name)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return path


def figure_12(values):
    """Seconds of T0 and T7: work, synchronization, rest."""
    applications = [a for a in ("bodytrack", "streamcluster", "x264", "facesim") if f"fig12.{a}.32" in values]
    figure, axes = plt.subplots(1, len(applications), figsize=(2.4 * len(applications), 2.8), squeeze=False)
    for axis, application in zip(axes[0], applications):
        labels = []
        for cores in (32, 64):
            for thread in ("T0", "T7"):
                for sync in ("software", "subutai"):
                    base = f"fig12.{application}.{cores}.{sync}.{thread}"
                    work, calls, total = (values[f"{base}.{k}_s"] for k in ("work", "sync", "total"))
                    at = len(labels)
                    axis.bar(at, work, color=WORK, width=0.8)
                    axis.bar(at, calls, bottom=work, color=SYNC, width=0.8)
                    axis.bar(at, max(0, total - work - calls), bottom=work + calls, color=REST, width=0.8)
                    labels.append(f"{cores} {thread} {'SW' if sync == 'software' else 'Sub'}")
        axis.set_xticks(range(len(labels)))
        axis.set_xticklabels(labels, rotation=90)
        axis.set_title(application)
    axes[0][0].set_ylabel("s (blue: work, red: synchronization)")
    return figure


def figure_10(values):
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True)
    for axis, policy in zip(axes, ("rr", "csa")):
        for k, size in enumerate(("x1", "x4", "x8")):
            distribution = octaves(values, f"fig10.{policy}.{size}")
            axis.bar([o + 0.28 * (k - 1) for o in distribution], list(distribution.values()), width=0.28, label=size)
        axis.set_title(f"Bodytrack, {policy.upper()}")
        axis.set_xlabel("section, up to 2^ ns")
        axis.legend()
    axes[0].set_ylabel("% of all time in sections")
    return figure


def figure_11(values):
    figure, axis = plt.subplots(figsize=(4, 2.8))
    sizes = ("x1", "x4", "x8")
    for k, policy in enumerate(("rr", "csa")):
        axis.bar([i + 0.4 * (k - 0.5) for i in range(3)], [1000 * values[f"fig11.{policy}.{s}.sum_s"] for s in sizes],
                 width=0.4, label=policy.upper())
    axis.set_xticks(range(3))
    axis.set_xticklabels([f"Bodytrack {s}" for s in sizes])
    axis.set_ylabel("ms in sections, an application")
    axis.legend()
    return figure


def figure_13(values):
    sets = [s for s in SETS if f"fig13.{s}.a" in values]
    figure, axes = plt.subplots(1, len(sets), figsize=(2.4 * len(sets), 2.8), squeeze=False)
    for axis, name in zip(axes[0], sets):
        for k, sync in enumerate(("software", "subutai")):
            heights = [values.get(f"fig13.{name}.{sync}.{p}.exec_s") for p in ("oat", "rr", "csa")]
            axis.bar([i + 0.4 * (k - 0.5) for i in range(3)], [h or 0 for h in heights], width=0.4, label=sync)
            for i in range(3):
                if heights[i] is None:
                    axis.text(i + 0.4 * (k - 0.5), 0, "stuck", rotation=90, ha="center", va="bottom", fontsize=7)
        axis.set_xticks(range(3))
        axis.set_xticklabels(("OAT", "RR", "CSA"))
        axis.set_title(f"{name} x8" if name != "mix" else "mix")
    axes[0][0].set_ylabel("s")
    axes[0][0].legend()
    return figure


def overview(paper, values):
    """Ours over the paper's; fitted ones hollow."""
    rows = [r for r in compare(paper, values) if r[4] and r[3] and r[2] != "model"]
    figure, axis = plt.subplots(figsize=(7, 0.16 * len(rows) + 1))
    for k, (source, what, kind, theirs, ours, off, notable) in enumerate(rows):
        axis.plot(ours / theirs, -k, "o", color=SYNC if notable else WORK,
                  fillstyle="none" if kind == "fitted" else "full", markersize=4)
    axis.axvspan(0.9, 1.1, color=REST, zorder=0)
    axis.axvline(1, color="black", linewidth=0.5)
    axis.set_xscale("log")
    axis.set_yticks([-k for k in range(len(rows))])
    axis.set_yticklabels([f"{r[0]}: {r[1]}" for r in rows], fontsize=6)
    axis.set_xlabel("ours / paper; grey: within 10 %; hollow: fitted")
    return figure


def draw(paper, values, folder):
    os.makedirs(folder, exist_ok=True)
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
