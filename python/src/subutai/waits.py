# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which call ended which wait: from a trace's order numbers to pairs of threads.

The numbers are those of trace/trace.h. The acquisition n of an object comes after the end of the acquisition n - 1, so
the unlock of that one ended the wait. An unlock has no number of its own: it has the one of the last acquisition of the
same object by the same thread. Of a barrier the last arrival ended the other waits.
"""

import polars as pl

WAIT_NS = 1000  # SBT_TRACE_WAIT_NS: a call that took less was not kept waiting
LOCKS = ("mutex_lock", "rwlock_wrlock", "rwlock_rdlock", "spin_lock")
TRYLOCKS = ("mutex_trylock", "rwlock_trywrlock", "rwlock_tryrdlock", "spin_trylock")
SHARED = ("rwlock_rdlock", "rwlock_tryrdlock")
UNLOCKS = ("mutex_unlock", "rwlock_unlock", "spin_unlock")
SIGNALS = ("cond_signal", "cond_broadcast", "sem_post", "futex_wake")
EVENT_WAITS = ("cond_wait", "sem_wait", "futex_wait")
WAITING = (*LOCKS, *EVENT_WAITS, "barrier_wait", "thread_join")

COLUMNS = (
    "thread",
    "op",
    "type",
    "result",
    "object",
    "other",
    "site",
    "work_ns",
    "at_ns",
    "took_ns",
    "order",
    "relock",
)
OPS = (*WAITING, *TRYLOCKS, *UNLOCKS, *SIGNALS, "thread_end")

_END = pl.col("at_ns") + pl.col("took_ns")


def _is(names: tuple[str, ...]) -> pl.Expr:
    return pl.col("op").is_in(list(names))


def _released(events: pl.LazyFrame) -> pl.LazyFrame:
    """The ends of holds: object, order (of the acquisition), shared, from_thread, from_site, release_ns.

    Sorted by thread, object and row, the acquisition that an end belongs to stands before it. A wait on a condition is
    both, an end and an acquisition, in this order.
    """
    names = ["thread", "object", "row", "taken", "order", "shared", "site", "at_ns"]
    waits = events.filter(pl.col("op") == "cond_wait").with_columns(object="other", shared=pl.lit(value=False))
    taken = events.filter(_is(LOCKS + TRYLOCKS), pl.col("result") == 0).with_columns(shared=_is(SHARED))
    given = events.filter(_is(UNLOCKS)).with_columns(shared=pl.lit(value=False))
    no_order = pl.lit(None, pl.UInt64)
    return (
        pl.concat(
            [
                taken.with_columns(taken=pl.lit(value=True)).select(names),
                waits.with_columns(taken=pl.lit(value=True), order="relock").select(names),
                given.with_columns(taken=pl.lit(value=False), order=no_order).select(names),
                waits.with_columns(taken=pl.lit(value=False), order=no_order).select(names),
            ]
        )
        .sort("thread", "object", "row", "taken")
        .with_columns(
            order=pl.col("order").shift(1),
            shared=pl.col("shared").shift(1),
            follows=pl.col("taken").shift(1)
            & (pl.col("thread") == pl.col("thread").shift(1))
            & (pl.col("object") == pl.col("object").shift(1)),
        )
        .filter(~pl.col("taken"), pl.col("follows"))
        .select("object", "order", "shared", from_thread="thread", from_site="site", release_ns="at_ns")
    )


def _lock_enders(events: pl.LazyFrame, *, profile: bool) -> pl.LazyFrame:
    """For waits for locks: object, order (of the waiting acquisition), shared (likewise), and what ended the wait."""
    if profile:  # there the numbers of unlocks are in the trace, and a wait has the number of the one that ended it
        ended = events.filter(_is(UNLOCKS), pl.col("order") > 0).select(
            "object", "order", from_thread="thread", from_site="site", release_ns="at_ns"
        )
        return pl.concat([ended.with_columns(shared=pl.lit(value=shared)) for shared in (False, True)]).select(
            "object", "order", "shared", "from_thread", "from_site", "release_ns"
        )
    released = _released(events).sort("release_ns")
    last = released.group_by("object", "order").last()  # of the readers between two writers, the last one lets in
    for_writers = last.with_columns(order=pl.col("order") + 1, shared=pl.lit(value=False))
    for_readers = released.filter(~pl.col("shared")).with_columns(shared=pl.lit(value=True))
    names = ["object", "order", "shared", "from_thread", "from_site", "release_ns"]
    return pl.concat([for_writers.select(names), for_readers.select(names)])


def _enders(events: pl.LazyFrame, *, profile: bool) -> pl.LazyFrame:
    """What ended waits, by object, order and shared."""
    names = ["object", "order", "shared", "from_thread", "from_site", "release_ns"]
    signals = events.filter(_is(SIGNALS), pl.col("order") > 0).select(
        "object", "order", shared=pl.lit(value=False), from_thread="thread", from_site="site", release_ns="at_ns"
    )
    barriers = (
        events.filter(pl.col("op") == "barrier_wait")
        .sort("at_ns")
        .group_by("object", "order")
        .last()
        .select(
            "object", "order", shared=pl.lit(value=False), from_thread="thread", from_site="site", release_ns="at_ns"
        )
    )
    return pl.concat([_lock_enders(events, profile=profile).select(names), signals, barriers]).unique(
        ["object", "order", "shared"], keep="last"
    )


def waits(events: pl.DataFrame, *, profile: bool = False, least_ns: int = WAIT_NS) -> pl.DataFrame:
    """Of events with COLUMNS: the calls that waited, and what ended each."""
    every = events.lazy().with_row_index("row")
    # Of most programs few objects are waited for: the events of the others end no wait.
    waited = (
        events.lazy().filter(_is(WAITING), pl.col("took_ns") >= least_ns).select("object").unique().collect()["object"]
    )
    lazy = every.filter(
        pl.col("object").is_in(waited.implode())
        | pl.col("op").is_in(["thread_join", "thread_end"])
        | ((pl.col("op") == "cond_wait") & pl.col("other").is_in(waited.implode()))
    )
    waiting = lazy.filter(_is(WAITING), pl.col("took_ns") >= least_ns).with_columns(
        shared=_is(SHARED), number=pl.when(pl.col("order") > 0).then("order")
    )
    ends = every.group_by("thread").agg(release_ns=_END.max(), from_site=pl.col("site").last())
    joins = waiting.filter(pl.col("op") == "thread_join").join(
        ends.with_columns(from_thread="thread"), left_on="other", right_on="thread", how="left"
    )
    others = waiting.filter(pl.col("op") != "thread_join").join(
        _enders(lazy, profile=profile),
        left_on=["object", "number", "shared"],
        right_on=["object", "order", "shared"],
        how="left",
    )
    names = ["row", "thread", "op", "type", "object", "site", "at_ns", "took_ns", "result", "order"]
    enders = ["from_thread", "from_site", "release_ns"]
    known = (
        pl.col("release_ns").is_not_null()
        & (pl.col("release_ns") <= _END)
        & (pl.col("from_thread") != pl.col("thread"))
        & (pl.col("result") == 0)
    )
    if profile:
        # A lock's number is that of the release that let it in. The cost of recording is taken off the end of a wait,
        # so it can be a little before that release.
        clipped = pl.min_horizontal(pl.col("release_ns"), pl.max_horizontal(_END, "at_ns"))
        others = others.with_columns(release_ns=pl.when(_is(LOCKS)).then(clipped).otherwise("release_ns"))
    return (
        pl.concat([joins.select(names + enders), others.select(names + enders)])
        .with_columns(pl.when(known).then(pl.col(name)).alias(name) for name in enders)
        .with_columns(delay_ns=_END - pl.max_horizontal("release_ns", "at_ns"))
        .with_columns(delay_ns=pl.when(pl.col("release_ns").is_not_null()).then("delay_ns"))
        .sort("row")
        .drop("row")
        .collect()
    )


def releases(waited: pl.DataFrame) -> pl.DataFrame:
    """Of waits: the calls that ended some."""
    return (
        waited.lazy()
        .filter(pl.col("from_thread").is_not_null())
        .group_by(thread="from_thread", type="type", object="object", at_ns="release_ns")
        .agg(
            site=pl.col("from_site").first(),
            n_waits=pl.len(),
            waited_ns=pl.col("took_ns").sum(),
            first_delay_ns=pl.col("delay_ns").min(),
            last_delay_ns=pl.col("delay_ns").max(),
        )
        .sort("at_ns", "thread", "object")
        .collect()
    )
