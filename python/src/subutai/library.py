# SPDX-License-Identifier: LGPL-2.1-or-later
"""The C library that reads traces, libsubutai-trace.so, and its functions as ctypes knows them.

The structs repeat those of trace/trace.h, trace/columns.h and trace/lanes.h. The library's version 1 stands for their
layout.
"""

import ctypes
import os
import shutil
from collections.abc import Iterator
from ctypes import POINTER, c_bool, c_char_p, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path

NAME = "libsubutai-trace.so.1"


class LibraryError(RuntimeError):
    """The C library is not there, or is not one that this package can use."""


class Error(ctypes.Structure):
    """struct sbt_trace_error"""

    _fields_ = (("offset", c_uint64), ("reason", ctypes.c_char * 160))


class Info(ctypes.Structure):
    """struct sbt_trace_info"""

    _fields_ = (
        ("version", c_uint32),
        ("n_threads", c_uint32),
        ("n_objects", c_uint32),
        ("n_sites", c_uint32),
        ("n_events", c_uint64),
        ("duration_ns", c_uint64),
        ("whole", c_bool),
        ("generated", c_bool),
        ("command", c_char_p),
        ("engine", c_char_p),
        ("process_id", c_uint64),
        ("n_lost", c_uint64),
        ("profile", c_bool),
        ("hold_one_in", c_uint32),
        ("stack_min_ns", c_uint64),
        ("n_tallies", c_uint64),
        ("counts_misses", c_bool),
        ("n_counted_holds", c_uint64),
        ("n_misses", c_uint64),
        ("completed", c_bool),
        ("end_is_known", c_bool),
        ("cpu_is_known", c_bool),
    )


# The columns of events in the order of struct sbt_trace_columns.
COLUMNS = {
    "thread": c_uint32,
    "op": c_uint8,
    "type": c_uint8,
    "result": c_uint16,
    "object": c_uint32,
    "other": c_uint32,
    "site": c_uint32,
    "size": c_uint32,
    "work_ns": c_uint64,
    "at_ns": c_uint64,
    "took_ns": c_uint64,
    "order": c_uint64,
    "relock": c_uint64,
    "stack": c_uint32,
}


class Columns(ctypes.Structure):
    """struct sbt_trace_columns: addresses of arrays, NULL for columns that are not wanted."""

    _fields_ = (*((name, c_void_p) for name in COLUMNS), ("zeroed", c_bool))


TALLY_COLUMNS = {
    "thread": c_uint32,
    "op": c_uint8,
    "type": c_uint8,
    "object": c_uint32,
    "site": c_uint32,
    "n_calls": c_uint64,
    "n_failed": c_uint64,
    "n_timed": c_uint64,
    "n_held": c_uint64,
    "held_ns": c_uint64,
    "held_max_ns": c_uint64,
}


class TallyColumns(ctypes.Structure):
    """struct sbt_trace_tally_columns"""

    _fields_ = tuple((name, c_void_p) for name in TALLY_COLUMNS)


class Lanes(ctypes.Structure):
    """struct sbt_trace_lanes"""

    _fields_ = (
        ("from_ns", c_uint64),
        ("to_ns", c_uint64),
        ("n_lanes", c_uint32),
        ("thread", c_void_p),
        ("n_cells", c_uint32),
        ("activity", c_void_p),
        ("object", c_void_p),
        ("n_layers", c_uint32),
        ("n_layer_cells", c_uint32),
        ("layer_object", c_void_p),
        ("layer", c_void_p),
    )


PROTOTYPES = {
    "sbt_trace_open": (c_void_p, [c_char_p, POINTER(Error)]),
    "sbt_trace_close": (None, [c_void_p]),
    "sbt_trace_info": (POINTER(Info), [c_void_p]),
    "sbt_trace_site_name": (c_char_p, [c_void_p, c_uint32]),
    "sbt_trace_op_name": (c_char_p, [ctypes.c_uint]),
    "sbt_trace_type_name": (c_char_p, [ctypes.c_uint]),
    "sbt_trace_reader_new": (c_void_p, []),
    "sbt_trace_reader_free": (None, [c_void_p]),
    "sbt_trace_read_columns": (c_int64, [c_void_p, c_void_p, POINTER(Columns), c_uint64, POINTER(Error)]),
    "sbt_trace_reader_select": (None, [c_void_p, c_uint64, c_uint64, c_uint64]),
    "sbt_trace_reader_limit": (None, [c_void_p, c_uint32, c_uint32]),
    "sbt_trace_read_counts": (None, [c_void_p, c_void_p, c_uint32]),
    "sbt_trace_read_tallies": (c_int64, [c_void_p, POINTER(TallyColumns), c_uint64, POINTER(Error)]),
    "sbt_trace_read_routines": (None, [c_void_p, c_void_p, c_uint32]),
    "sbt_trace_stack": (c_uint32, [c_void_p, c_uint32, POINTER(c_uint32), c_uint32]),
    "sbt_trace_end": (ctypes.c_int, [c_void_p, POINTER(c_uint64), POINTER(Error)]),
    "sbt_trace_read_lanes": (ctypes.c_int, [c_void_p, POINTER(Lanes), POINTER(Error)]),
    "sbt_trace_read_addresses": (None, [c_void_p, c_void_p, c_uint32]),
}


def places() -> Iterator[str]:
    """Where the library may be: what $PYSUBUTAI_LIBRARY says alone; else beside the command, and where the loader
    looks.
    """
    given = os.environ.get("PYSUBUTAI_LIBRARY")
    if given:
        yield given
        return
    command = os.environ.get("PYSUBUTAI_COMMAND") or shutil.which("subutai")
    if command:
        folder = Path(command).resolve().parent
        yield str(folder / "../../trace" / NAME)  # of a build tree
        for path in sorted(folder.glob(f"../lib*/{NAME}")) + sorted(folder.glob(f"../lib/*/{NAME}")):
            yield str(path)
    yield NAME


@cache
def library() -> ctypes.CDLL:
    """The loaded library. LibraryError says what to do if there is none."""
    reasons = []
    for place in places():
        try:
            loaded = ctypes.CDLL(place)
            for name, (result, arguments) in PROTOTYPES.items():
                function = getattr(loaded, name)
                function.restype, function.argtypes = result, arguments
            return loaded
        except (OSError, AttributeError) as error:
            reasons.append(str(error))
    raise LibraryError(f"{reasons[-1]} (legal: install Subutai, or name its {NAME} in PYSUBUTAI_LIBRARY)")
