/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A lock that belongs to one kernel thread, as a run queue's does to its carrier: the owner enters without a locked
 * operation. Any other thread is a visitor. (Biased locks, as in Java's HotSpot; the fences are liburcu's.)
 *
 * `inside` is 1 while the owner is in a section, whichever way it has entered.
 *
 * | thread  | owned | way in                                                                               |
 * |---------|-------|--------------------------------------------------------------------------------------|
 * | owner   | 1     | sets `inside`, light fence, sees `owned`                                             |
 * | owner   | 0     | takes back `inside`, and sets it again under `lock`, which it drops                  |
 * | visitor | 1     | takes `lock` for its section, clears `owned`, heavy fence, waits until `inside` is 0 |
 * | visitor | 0     | takes `lock` for its section, waits until `inside` is 0                              |
 *
 *  - `owned` is set by the owner, and cleared by visitors, under `lock` only.
 *  - While it is 1: the owner sets `inside` and looks at `owned`, a visitor clears `owned` and looks at `inside`. The
 *    fences make one of them see the other.
 *  - The owner sets `owned` after so many entries under `lock`. Visits that soon follow each other make those more.
 *    And it does so only when the last visit is long ago, for each CPU: a heavy fence interrupts all CPUs on which the
 *    process runs, and each CPU has a run queue. So the process makes no more than a thousand in a second for this.
 *  - Heavy fences may be refused later on. Before a program filters system calls, sbt_own_lock_forbid, and a visit to
 *    each lock, make all locks shared for good. If the kernel refuses one unexpectedly, the visitor waits for a
 *    millisecond, in which the owner's write comes out of its processor. From then on no lock is owned either.
 *
 * All-zero is a free lock that is not owned. The program's signal handlers are deferred in sections, and the owner does
 * not nest them. A forked child has the lock wiped.
 */
#ifndef SBT_SWITCH_OWN_LOCK_H
#define SBT_SWITCH_OWN_LOCK_H

#include "os/lock.h"

struct sbt_own_lock {
    struct sbt_lock lock;
    uint32_t inside;    /* atomic, the owner's */
    uint32_t owned;     /* atomic; under the lock */
    uint16_t left;      /* entries of the owner under the lock before it owns it again; under the lock */
    uint16_t most;      /* what that begins with; under the lock */
    uint32_t owned_us;  /* since when it was owned, in microseconds: it wraps; under the lock */
    uint32_t shared_us; /* and since when it is not */
};

/* Heavy fences are about to be forbidden: no lock is owned any more once it has been visited. */
void sbt_own_lock_forbid(void);

void sbt_own_lock_enter_shared(struct sbt_own_lock *l);

/* By the owner alone. May block for as long as a visitor is in its section. */
static inline void sbt_own_lock_enter(struct sbt_own_lock *l) {
    __atomic_store_n(&l->inside, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* light: pairs with the heavy fence of a visitor */
    if (SBT_UNLIKELY(__atomic_load_n(&l->owned, __ATOMIC_RELAXED) == 0))
        sbt_own_lock_enter_shared(l);
}

/* Release: pairs with the look of a visitor. */
static inline void sbt_own_lock_leave(struct sbt_own_lock *l) {
    __atomic_store_n(&l->inside, 0, __ATOMIC_RELEASE);
}

/* By any thread that is not in a section of its own. May block for as long as others are in the section. */
void sbt_own_lock_visit(struct sbt_own_lock *l);

static inline void sbt_own_lock_depart(struct sbt_own_lock *l) {
    sbt_lock_drop(&l->lock);
}

#endif
