# SPDX-License-Identifier: LGPL-2.1-or-later
"""The timeline of the page: cells of lanes.Timeline, in as many as the page may hold, packed for its script."""

import base64
import zlib
from collections.abc import Callable
from typing import Any

import numpy

from .. import lanes
from ..trace import NONE, Trace
from .analysis import Analysis

MAX_LANES = 1000  # a lane is a pixel then
MAX_CELLS = 1_000_000  # of all lanes; a picture has no more pixels
MAX_CELLS_A_LANE = 4000  # some more than a screen has, for a closer look
MAX_LAYER_CELLS = 16_000_000  # of all objects; most are empty, and cost nothing when packed
MAX_LAYERS = 60
NO_OBJECT = 0xFFFF  # in the page, objects have 16 bits

WAITS = ("mutex", "rwlock", "spin", "relock", "cond", "sem", "futex", "barrier", "join")


def shown_threads(analysis: Analysis) -> list[int]:
    """The threads with a lane: all, or those that waited longest, in their order."""
    threads = analysis["threads"]
    if len(threads) > MAX_LANES:
        waited = sorted(threads, key=lambda t: -sum(t["waiting"][kind]["ns"] for kind in WAITS))
        threads = waited[:MAX_LANES]
    return sorted(t["id"] for t in threads)


def packed(array: Any) -> str:
    """The array's bytes, compressed (zlib), in base64."""
    return base64.b64encode(zlib.compress(numpy.ascontiguousarray(array).tobytes(), 6)).decode()


def read(trace: Trace, analysis: Analysis, share: float, progress: Callable[[int], object]) -> dict[str, Any]:
    """The timeline as the page's script takes it. `share`: of the page, what this trace may have."""
    threads = shown_threads(analysis)
    names = {t["id"]: t["name"] or f"thread {t['id']}" for t in analysis["threads"]}
    layered = [o["id"] for o in analysis["objects"][: max(1, int(MAX_LAYERS * share))]]
    n_lanes = max(len(threads), 1)
    n_cells = max(50, min(MAX_CELLS_A_LANE, int(MAX_CELLS * share) // n_lanes))
    n_layer_cells = max(20, min(n_cells, int(MAX_LAYER_CELLS * share) // (n_lanes * max(len(layered), 1))))
    timeline = lanes.read(trace, threads, n_cells, layered, n_layer_cells, progress)
    # The objects of cells, most frequent first, so that numbers fit into 16 bits whatever the trace has.
    joining = timeline.activity == lanes.ACTIVITIES.index("join")
    numbers, counts = numpy.unique(timeline.object[(timeline.object != NONE) & ~joining], return_counts=True)
    kept = numpy.sort(numbers[numpy.argsort(-counts)[: NO_OBJECT - 1]])
    index = numpy.full(timeline.object.shape, NO_OBJECT, dtype=numpy.uint16)
    if len(kept):
        at = numpy.searchsorted(kept, timeline.object).clip(0, len(kept) - 1)
        index = numpy.where((kept[at] == timeline.object) & ~joining, at, NO_OBJECT).astype(numpy.uint16)
    return {
        "from": timeline.from_ns,
        "to": timeline.to_ns,
        "lanes": [names.get(t, f"thread {t}") for t in threads],
        "threads": threads,
        "cells": n_cells,
        "layerCells": n_layer_cells,
        "layers": timeline.layer_objects.tolist(),
        "objects": kept.tolist(),
        "activity": packed(timeline.activity),
        "object": packed(index),
        "layer": packed(timeline.layer),
    }
