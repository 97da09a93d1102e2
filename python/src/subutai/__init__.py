# SPDX-License-Identifier: LGPL-2.1-or-later
"""Traces of a program's synchronization as data frames.

    import subutai
    trace = subutai.load("app.sbt")
    trace.events.filter(op="mutex_lock").group_by("object").agg(pl.col("took_ns").sum())

`subutai record` writes traces. The C library of the same project decodes them; this package has no decoder of its own.
The module subutai.sweep is behind the command `subutai sweep`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .library import LibraryError
    from .trace import Trace, TraceError, load

__all__ = ["LibraryError", "Trace", "TraceError", "load"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """The names above, at their first use: a sweep needs no data frames until its end, and its refusals none at all."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import library, trace

    return getattr(library if name == "LibraryError" else trace, name)
