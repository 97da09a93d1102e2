/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes that programs wait for by calling trylock again and again: that keeps the owner, and
 * waiters that come before, from running, if threads outnumber cores or fibers carriers. So failed trylocks give the
 * core away, and so do unlocks for a while after them.
 */
#include <errno.h>

#include "core/thread.h"
#include "engine/direct/mutex.h"
#include "engine/direct/trylock.h"
#include "os/arch.h"
#include "switch/switch.h"
#include "wait/adapt.h"
#include "wait/park.h"

#define TRYLOCK_PAUSES_MOST 4 /* 1, 2, 4, ... between looks */

/*
 * A fiber that yields stands behind all others, which may all spin in turn until it goes on. So it looks again first,
 * for a mutex that another carrier's fiber has for a moment.
 */
static bool take_soon(uint32_t *word) {
    uint32_t seen;
    for (int pauses = 1; pauses <= TRYLOCK_PAUSES_MOST; pauses *= 2) {
        for (int i = 0; i < pauses; i++)
            sbt_cpu_relax();
        if (direct_mutex_take(word, &seen))
            return true;
    }
    return false;
}

/*
 * A thread that takes it by trylock may have spun before that without a call. So unlocks yield to fibers, which costs
 * nothing if none is ready. Only where trylocks fail as well do they yield to threads: that is a system call.
 */
#define SPUN_BY_ANY 0x80
_Static_assert(DIRECT_SPUN_UNLOCKS < SPUN_BY_ANY, "both are in spun_credit");

static void expect_spinning(struct sbt_mutex *mx, bool by_any) {
    uint8_t was = __atomic_load_n(&mx->spun_credit, __ATOMIC_RELAXED) & SPUN_BY_ANY;
    if (by_any || was == 0)
        __atomic_store_n(&mx->spun_credit, by_any ? SPUN_BY_ANY | DIRECT_SPUN_UNLOCKS : DIRECT_SPUN_UNLOCKS,
                         __ATOMIC_RELAXED);
    if ((__atomic_load_n(&mx->state, __ATOMIC_RELAXED) & DIRECT_SPUN) == 0)
        __atomic_fetch_or(&mx->state, DIRECT_SPUN, __ATOMIC_RELAXED);
}

/*
 * A thread may hold two mutexes that others spin for. If it yielded at the unlock of the inner one, the threads that
 * spin for the outer one would go on spinning. So it yields at the unlock of the outer one, or if that is long in
 * coming.
 */
#define SPUN_INNER_MOST 16

static int got_by_trylock(const struct sbt_mutex *mx, uint32_t seen) {
    direct_self.trylock_last = NULL;
    if (SBT_UNLIKELY((seen & DIRECT_SPUN) != 0) && direct_self.spun_outer == NULL) {
        direct_self.spun_outer = mx;
        direct_self.spun_inner = 0;
    }
    return 0;
}

static bool is_inner(const struct sbt_mutex *mx) {
    if (direct_self.spun_outer != NULL && direct_self.spun_outer != mx && direct_self.spun_inner++ < SPUN_INNER_MOST)
        return true;
    direct_self.spun_outer = NULL;
    return false;
}

enum direct_spun direct_mutex_spun(struct sbt_mutex *mx) {
    bool inner = is_inner(mx);
    uint8_t credit = __atomic_load_n(&mx->spun_credit, __ATOMIC_RELAXED);
    bool more = (credit & ~SPUN_BY_ANY) != 0;
    __atomic_store_n(&mx->spun_credit, more ? (uint8_t)(credit - 1) : 0, __ATOMIC_RELAXED);
    if (!more)
        __atomic_fetch_and(&mx->state, ~(uint32_t)DIRECT_SPUN, __ATOMIC_RELAXED);
    return inner ? DIRECT_SPUN_NOT : (credit & SPUN_BY_ANY) != 0 ? DIRECT_SPUN_BY_ANY : DIRECT_SPUN_BY_FIBERS;
}

/*
 * No fiber, and no more threads than cores but for one, which may be asleep in the kernel and counts as runnable: the
 * main thread often is. Whether it is, yields tell. A quota takes no core from one of these threads alone: the kernel
 * stops them all when it is used up.
 */
static bool may_have_cores(void) {
    uint32_t n = __atomic_load_n(&sbt_n_runnable, __ATOMIC_RELAXED) - 1;
    return (int32_t)n <= (int32_t)__atomic_load_n(&sbt_n_cpus_at_once, __ATOMIC_RELAXED) && !sbt_switch_roams();
}

/* A fiber's unlock yields if another fiber is runnable on its carrier: how many threads run does not matter there. */
bool direct_mutex_unlock_yields(enum direct_spun spun) {
    return sbt_switch_others_runnable() || (spun == DIRECT_SPUN_BY_ANY && !sbt_cores_to_spare());
}

/* In a forked child: it is kept for a thread that is not here. Acquire pairs with the release of the hand-over. */
static bool take_kept(const struct sbt_lot_queue *q) {
    struct sbt_mutex *mx = (struct sbt_mutex *)(uintptr_t)q->key;
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED), stale = DIRECT_HANDED | DIRECT_WOKEN | DIRECT_QUEUED;
    while (sbt_lot_first(q) == NULL && (seen & DIRECT_HANDED) != 0)
        if (__atomic_compare_exchange_n(&mx->state, &seen, seen & ~stale, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    return false;
}

int direct_mutex_trylock(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t seen;
    /* A fiber that spins keeps others from its carrier, and to yield to those costs next to nothing. */
    if (SBT_UNLIKELY(sbt_self.fiber != NULL) && sbt_switch_roams())
        expect_spinning(mx, false);
    if (SBT_LIKELY(direct_mutex_take(&mx->state, &seen)))
        return got_by_trylock(mx, seen);
    if (SBT_UNLIKELY((seen & DIRECT_HANDED) != 0) && sbt_fork_generation() != 0 && sbt_lot_ask(mx, take_kept))
        return got_by_trylock(mx, 0);
    if (!direct_trylock_spins(m))
        return EBUSY;
    if (may_have_cores()) {
        if (sbt_spared_yield(&direct_self.spared))
            expect_spinning(mx, true);
        return EBUSY;
    }
    expect_spinning(mx, true);
    if (sbt_switch_among_carriers() && take_soon(&mx->state))
        return got_by_trylock(mx, DIRECT_SPUN);
    /* The first time it expects to have it in a moment; after that, others are to do something first. */
    sbt_wait_yield(direct_self.trylock_fails <= DIRECT_TRYLOCKS_BEFORE_YIELD);
    return EBUSY;
}
