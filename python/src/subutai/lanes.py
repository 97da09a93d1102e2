# SPDX-License-Identifier: LGPL-2.1-or-later
"""A trace as a timeline of a fixed size, a lane for each thread; the C library adds up (trace/lanes.h)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import numpy.typing

from .library import Lanes
from .trace import NONE, Trace

# enum sbt_trace_activity; the waits for objects follow in the order of enum sbt_trace_type.
ACTIVITIES = (
    "absent",
    "running",
    "section",
    "join",
    "mutex",
    "cond",
    "barrier",
    "rwlock",
    "sem",
    "spin",
    "futex",
    "outside",
    "off_cpu",
)
HELD, WAITED = 1, 2  # bits of layers
GROUP = 16  # lanes of one call of the library's: between two calls there is time for a progress bar, and for Ctrl-C

Array = numpy.typing.NDArray[Any]


@dataclass
class Timeline:
    """activity and object: [lane, cell]; NONE: no object. layer: [layer, lane, cell], bits HELD and WAITED."""

    from_ns: int
    to_ns: int
    threads: Array
    activity: Array
    object: Array
    layer_objects: Array
    layer: Array


def read(
    trace: Trace,
    threads: Sequence[int],
    n_cells: int,
    objects: Sequence[int] = (),
    n_layer_cells: int = 0,
    progress: Callable[[int], object] = lambda done: None,
) -> Timeline:
    """The timeline of these threads, in their order.

    `activity` and `object` have what took most of each cell's time; `layer` has, for each of `objects`, each cell in
    which it was held or waited for, if only for a moment. `progress` gets how many lanes came to those that are done.
    """
    if n_cells < 1:
        raise ValueError(f"{n_cells} cells (legal: 1 or more)")
    lane_threads = numpy.array(threads, dtype=numpy.uint32)
    layer_objects = numpy.array(sorted(set(objects)), dtype=numpy.uint32)
    activity = numpy.zeros((len(threads), n_cells), dtype=numpy.uint8)
    of = numpy.full((len(threads), n_cells), NONE, dtype=numpy.uint32)
    layer = numpy.zeros((len(layer_objects), len(threads), n_layer_cells), dtype=numpy.uint8)
    end_ns = max(trace.end_ns(), 1)
    for first in range(0, len(threads), GROUP):
        last = min(first + GROUP, len(threads))
        part = numpy.zeros((len(layer_objects), last - first, n_layer_cells), dtype=numpy.uint8)
        trace.read_lanes(
            Lanes(
                from_ns=0,
                to_ns=end_ns,
                n_lanes=last - first,
                thread=lane_threads[first:last].ctypes.data,
                n_cells=n_cells,
                activity=activity[first:last].ctypes.data,
                object=of[first:last].ctypes.data,
                n_layers=len(layer_objects),
                n_layer_cells=n_layer_cells,
                layer_object=layer_objects.ctypes.data,
                layer=part.ctypes.data,
            )
        )
        layer[:, first:last] = part
        progress(last - first)
    return Timeline(0, end_ns, lane_threads, activity, of, layer_objects, layer)
