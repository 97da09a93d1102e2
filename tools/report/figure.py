# SPDX-License-Identifier: LGPL-2.1-or-later
"""What all figures share: legible on light and dark pages, the same file every time, no bar at the frame."""
import os

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({
    "svg.hashsalt": "subutai",  # else names inside the file differ from run to run
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.facecolor": "white",  # a page may be dark: the figure brings its own background
    "savefig.facecolor": "white",
})

import matplotlib.pyplot as plt  # noqa: E402  after the backend is chosen

# Told apart with any colour vision, and in grey (Paul Tol's bright scheme).
BLUE, RED, GREEN, GREY = "#4477aa", "#cc6677", "#228833", "#bbbbbb"


def room_beside_bars(axis, n_groups):
    """Groups of bars stand at 0, 1, ...: leave as much room at the frame as is between two of them."""
    axis.set_xlim(-0.7, n_groups - 0.3)


def room_above_bars(axis, share=0.12):
    """Leave a share of a linear axis free above the highest bar."""
    axis.set_ylim(0, axis.get_ylim()[1] * (1 + share))


def legend_above(figure, handles, labels):
    """One legend for all panels, in a row above them. Call it before save()."""
    figure.legend(handles, labels, loc="upper center", ncol=len(labels), handlelength=1.2)


def save(figure, path, bottom=0.0, top=1.0):
    """Write the SVG. The panels lie between those shares of the height; the rest is for a note and a legend."""
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    figure.tight_layout(rect=(0, bottom, 1, top))
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return path
