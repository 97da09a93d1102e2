/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which mutexes `--delegate auto` delegates, and for how long: pure functions of what samples say, the time and the
 * program's progress.
 *
 * The measure is Remote Core Locking's (Lozi): the share of the threads' time that they spend in sections of the mutex
 * and in waiting for them. It says which mutex is worth a trial (hot), and which is not worth delegating any more
 * (cold; between the two nothing changes). Long sections are not worth it either: a hand-over is a small part of them,
 * and what sleeps in the kernel holds up a carrier.
 *
 * A hot mutex is tried out. The machine that does that is the one that finds out whether switching pays
 * (switch/pays.h): windows with and without, by turns, and the program's progress decides. So a mutex is delegated only
 * if more is got done and its sections were handed over meanwhile; there is a trial again now and then; and a trial in
 * vain leaves the mutex alone, for twice as long each time.
 */
#ifndef SBT_ENGINE_DIRECT_DELEGATE_SHARE_H
#define SBT_ENGINE_DIRECT_DELEGATE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "switch/pays.h"

/* Of the locks of a thread that find the mutex locked, one in so many is timed. A prime: not always the same mutex. */
#define DIRECT_SHARE_EVERY 13

/* Sections of at least this length are long. */
#define DIRECT_SHARE_LONG_NS 20000
#define DIRECT_SHARE_LONG_ANYWAY_NS 500000 /* for tests: those of a slow machine are not, those that sleep 1 ms are */

/* Samples of one mutex. */
struct direct_share_sums {
    uint64_t n, n_long; /* sections, and those of them that were long */
    uint64_t busy_ns;   /* in them, and in waiting for them */
};

enum direct_share {
    DIRECT_SHARE_UNKNOWN, /* the round goes on */
    DIRECT_SHARE_QUIET,   /* no sample: it is not in use, or other programs have the CPUs */
    DIRECT_SHARE_COLD,
    DIRECT_SHARE_BETWEEN,
    DIRECT_SHARE_HOT,
    DIRECT_SHARE_LONG
};

/* Of the last `ns`, in which the program had so many threads. */
enum direct_share direct_share_of(const struct direct_share_sums *sums, uint64_t ns, uint32_t n_threads);

enum direct_share_how {
    DIRECT_SHARE_TRIED,   /* a trial decides */
    DIRECT_SHARE_ANYWAY,  /* for tests: the share alone decides */
    DIRECT_SHARE_BY_TURNS /* for tests: change at each step */
};

static inline uint64_t direct_share_long_ns(enum direct_share_how how) {
    return how == DIRECT_SHARE_ANYWAY ? DIRECT_SHARE_LONG_ANYWAY_NS : DIRECT_SHARE_LONG_NS;
}

/* A mutex. All-zero is the beginning. `switches` of the trial's machine means: is it delegated? */
struct direct_share_state {
    struct sbt_pays pays;
    uint32_t cold; /* cold rounds in a row, in parts that a quiet one counts for */
};

/*
 * The next step, after each look of the monitor. `may_try`: no other mutex is being tried out. The result is whether
 * the mutex is delegated from now on. `n_switches` of `seen` counts the sections handed over;
 * what `seen` has of reasons is this function's.
 */
bool direct_share_step(struct direct_share_state *s, enum direct_share share, enum direct_share_how how, bool may_try,
                       struct sbt_pays_seen *seen);

#endif
