# SPDX-License-Identifier: LGPL-2.1-or-later
"""Waits, releases and timelines of subutai.load: against what stands in a made trace, and against every event of a
recorded one.

usage: waits.py MADE RECORDED EVEN IDLE ASLEEP        output: TAP. EVEN: a lock held from 1000 to 2000 ns of 10000. IDLE:
the same, and from 2000 on a wait for a condition without end. ASLEEP: a profile, the first thread sleeps for most of it.
"""

import sys
from collections import defaultdict

import numpy
import polars
from points import done, point, raises

import subutai
from subutai import lanes

MADE, RECORDED, EVEN, IDLE, ASLEEP = sys.argv[1:]

# ---- a made trace: waits.sh says what is in it ----
made = subutai.load(MADE)
waits = made.waits.filter(polars.col("op") != "thread_join")
known = {
    (w["thread"], w["op"], w["object"]): (
        w["at_ns"],
        w["took_ns"],
        w["from_thread"],
        w["release_ns"],
        w["delay_ns"],
    )
    for w in waits.iter_rows(named=True)
}
EXPECTED = {
    # The lock is held by thread 0 from 1020 to 51020; thread 1 asked at 2000 and has it at 62000.
    (1, "mutex_lock", 1): (2000, 60000, 0, 51020, 10980),
    # The writer 0 gives it to the two readers, the last of which gives it to the writer.
    (1, "rwlock_rdlock", 2): (62010, 100000, 0, 151050, 10960),
    (2, "rwlock_rdlock", 2): (3000, 150000, 0, 151050, 1950),
    (0, "rwlock_wrlock", 2): (151060, 300000, 2, 353000, 98060),
    # The last of three to arrive is thread 2, which is kept waiting by none.
    (0, "barrier_wait", 0): (451080, 2000000, 2, 1853000, 598080),
    (1, "barrier_wait", 0): (263010, 2000000, 2, 1853000, 410010),
    (2, "barrier_wait", 0): (1853000, 2000, None, None, None),
    (2, "cond_wait", 3): (1855010, 1000000, 0, 2451180, 403830),
    (1, "sem_wait", 4): (2263010, 9000000, 0, 7451280, 3811730),
    # By the clocks the unlock came later, so it is not said to have ended the wait.
    (2, "mutex_lock", 8): (2855010, 5000, None, None, None),
    # It timed out.
    (1, "cond_wait", 6): (11263020, 20000000, None, None, None),
}
point(
    known == EXPECTED,
    "each wait, when, how long, what ended it, and how long it took from there",
)
for key in sorted(known.keys() | EXPECTED.keys()):
    if known.get(key) != EXPECTED.get(key):
        print(f"# {key}: {known.get(key)}, expected {EXPECTED.get(key)}")
point(
    made.waits.filter(op="thread_join").select("thread", "from_thread", "release_ns").rows() == [(0, 1, 31264020)],
    "a join, which waits for the end of a thread, and one that does not wait",
)
releases = made.releases.filter(polars.col("object").is_not_null())
point(
    releases.select(
        "thread",
        "type",
        "object",
        "at_ns",
        "n_waits",
        "waited_ns",
        "first_delay_ns",
        "last_delay_ns",
    ).rows()
    == [
        (0, "mutex", 1, 51020, 1, 60000, 10980, 10980),
        (0, "rwlock", 2, 151050, 2, 250000, 1950, 10960),
        (2, "rwlock", 2, 353000, 1, 300000, 98060, 98060),
        (2, "barrier", 0, 1853000, 2, 4000000, 410010, 598080),
        (0, "cond", 3, 2451180, 1, 1000000, 403830, 403830),
        (0, "sem", 4, 7451280, 1, 9000000, 3811730, 3811730),
    ],
    "each release, how many waits it ended, their sum, and the delays of the first and the last",
)
for row in releases.iter_rows():
    print(f"# {row}")

# ---- selecting events ----
recorded = subutai.load(RECORDED)
few = recorded.read(["op", "took_ns"], ["mutex_lock", "mutex_unlock"], 1500)
all_ = recorded.events.filter(
    (polars.col("op") == "mutex_unlock") | ((polars.col("op") == "mutex_lock") & (polars.col("took_ns") >= 1500))
).select("op", "took_ns")
point(
    few.equals(all_) and 0 < few.height < recorded.n_events,
    "some operations, and of calls that may wait the long ones",
)
point(
    raises(
        ValueError,
        "unknown operation 'lock' (legal: thread_create,",
        lambda: recorded.read(None, ["lock"]),
    ),
    "an unknown operation",
)
point(
    recorded.tallies.height == 0 and recorded.stacks.height == 0,
    "no tallies and no stacks",
)

# ---- the timeline, cell by cell ----
WAITS = {
    "mutex_lock", "cond_wait", "barrier_wait", "rwlock_rdlock", "rwlock_wrlock", "sem_wait", "spin_lock", "futex_wait"
}  # fmt: skip
TAKES = {
    "mutex_lock", "mutex_trylock", "rwlock_rdlock", "rwlock_tryrdlock", "rwlock_wrlock", "rwlock_trywrlock",
    "spin_lock", "spin_trylock",
}  # fmt: skip
N_CELLS, N_LAYER_CELLS = 97, 31


def spans(trace: subutai.Trace, thread: int) -> tuple[list, list]:
    """What the thread did: (from, to, activity, object); and (from, to, object, bit) of what it held and waited for."""
    did, used, held = [], [], []
    now = None
    for e in trace.events.filter(thread=thread).iter_rows(named=True):
        begin = (0 if now is None else now[1]) + e["work_ns"] if trace.generated else e["at_ns"]
        end = begin + e["took_ns"]
        if now is None:
            now = (0, begin - min(e["work_ns"], begin))
        running = ("section", held[-1][0]) if held else ("running", None)
        gap = begin - now[1]
        off = not held and gap >= 10000 and e["work_ns"] < gap // 2
        did.append((now[1], begin, *(("off_cpu", None) if off else running)))
        gives = e["other"] if e["op"] == "cond_wait" else e["object"] if e["op"].endswith("unlock") else None
        for i in reversed(range(len(held))):
            if held[i][0] == gives:
                used.append((held[i][1], begin, gives, lanes.HELD))
                del held[i]
                break
        running = ("section", held[-1][0]) if held else ("running", None)
        if e["op"] == "thread_join" and e["took_ns"] >= 1000:
            did.append((begin, end, "join", e["other"]))
        elif e["op"] == "outside_wait" and e["took_ns"] >= 1000:
            did.append((begin, end, "outside", None))
        elif e["op"] in WAITS and e["took_ns"] >= 1000:
            did.append((begin, end, e["type"], e["object"]))
            used.append((begin, end, e["object"], lanes.WAITED))
        else:
            did.append((begin, end, *running))
        if e["op"] in TAKES and e["result"] == 0:
            held.append((e["object"], end))
        if e["op"] == "cond_wait":
            held.append((e["other"], end))
        now = (0, end)
    used += [(since, now[1], o, lanes.HELD) for o, since in held]
    return did, used


def check(trace: subutai.Trace, text: str) -> None:
    """The timeline of all threads against their spans."""
    threads = trace.threads["thread"].to_list()
    objects = trace.objects["object"].to_list()
    got = lanes.read(trace, threads, N_CELLS, objects, N_LAYER_CELLS)
    length = got.to_ns
    wrong = compared = wrong_bits = n_bits = 0
    for lane, thread in enumerate(threads):
        did, used = spans(trace, thread)
        sums: list[dict] = [defaultdict(int) for _ in range(N_CELLS)]
        for begin, end, activity, what in did:
            at = begin
            while at < min(end, length):
                cell = at * N_CELLS // length
                until = min(end, -(-(cell + 1) * length // N_CELLS), length)
                sums[cell][activity, what] += until - at
                at = until
        for cell in range(N_CELLS):
            activity = lanes.ACTIVITIES[got.activity[lane, cell]]
            what = got.object[lane, cell]
            mine = (activity, None if what == 0xFFFFFFFF else int(what))
            best = max(sums[cell].values(), default=0)
            compared += 1
            wrong += sums[cell].get(mine, 0) != best if sums[cell] else mine != ("absent", None)
        bits = numpy.zeros((len(objects), N_LAYER_CELLS), dtype=numpy.uint8)
        for begin, end, what, bit in used:
            if begin < length and end > 0:
                first, last = (
                    begin * N_LAYER_CELLS // length,
                    (max(end - 1, begin)) * N_LAYER_CELLS // length,
                )
                bits[objects.index(what), first : min(last, N_LAYER_CELLS - 1) + 1] |= bit
        wrong_bits += int((bits != got.layer[:, lane, :]).sum())
        n_bits += int((bits != 0).sum())
    point(
        wrong == 0 and compared > 200,
        f"{text}: each of {compared} cells has what took most of it, {wrong} have not",
    )
    point(
        wrong_bits == 0 and n_bits > 20,
        f"{text}: each of {n_bits} cells in which an object was used, {wrong_bits} not",
    )


check(made, "made")
check(recorded, "recorded")
even = subutai.load(EVEN)
exact = lanes.read(even, [0], 10, [0], 10)
point(
    exact.to_ns == 10000 and exact.layer[0, 0].tolist() == [0, lanes.HELD, 0, 0, 0, 0, 0, 0, 0, 0],
    f"what ends where a cell begins is not in it: {exact.layer[0, 0].tolist()}",
)
idle = lanes.read(subutai.load(IDLE), [0], 10, [0, 1], 10)
point(
    idle.layer[:, 0].tolist() == [[0, lanes.HELD] + [0] * 8, [0] * 2 + [lanes.WAITED] * 8]
    and (idle.activity[0, 2:] == lanes.ACTIVITIES.index("cond")).all(),
    f"a thread that still waits for a condition has not got the mutex: {idle.layer[:, 0].tolist()}",
)
asleep = lanes.read(subutai.load(ASLEEP), [0], 100)
off = int((asleep.activity[0] == lanes.ACTIVITIES.index("off_cpu")).sum())
point(off > 40, f"a thread that sleeps between its calls does not run: {off} of 100 cells")
one = lanes.read(recorded, [2], 10)
several = lanes.read(recorded, recorded.threads["thread"].to_list(), 10)
point(
    (one.activity[0] == several.activity[2]).all(),
    "a lane does not depend on the others",
)
point(raises(ValueError, "0 cells", lambda: lanes.read(recorded, [0], 0)), "no cells")
done()
