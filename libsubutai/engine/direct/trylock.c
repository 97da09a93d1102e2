/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes that programs wait for by calling trylock again and again: that keeps the owner, and whoever is to come
 * before, from running, if threads outnumber cores or contexts carriers. So failed trylocks give the core away, and so
 * do unlocks for a while after them.
 */
#include <errno.h>

#include "core/arch.h"
#include "core/thread.h"
#include "engine/direct/mutex.h"
#include "switch/switch.h"
#include "wait/adapt.h"
#include "wait/park.h"

#define TRYLOCK_PAUSES_MOST 4 /* 1, 2, 4, ... between looks */

/*
 * A context that gives way stands behind everybody else, who may all spin in turn until it gets on: not for a mutex
 * that another carrier's context has for a moment.
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
 * Whoever takes it by trylock may have spun before that without a call: then unlocks give way to contexts, which costs
 * nothing if none is ready. Only where trylocks fail as well do they give way to threads: that is a system call.
 */
#define SPUN_BY_ANYBODY 0x80
_Static_assert(SBT_SPUN_UNLOCKS < SPUN_BY_ANYBODY, "both are in spun_credit");

static void expect_spinning(struct sbt_mutex *mx, bool by_anybody) {
    uint8_t was = __atomic_load_n(&mx->spun_credit, __ATOMIC_RELAXED) & SPUN_BY_ANYBODY;
    if (by_anybody || was == 0)
        __atomic_store_n(&mx->spun_credit, by_anybody ? SPUN_BY_ANYBODY | SBT_SPUN_UNLOCKS : SBT_SPUN_UNLOCKS,
                         __ATOMIC_RELAXED);
    if ((__atomic_load_n(&mx->state, __ATOMIC_RELAXED) & DIRECT_SPUN) == 0)
        __atomic_fetch_or(&mx->state, DIRECT_SPUN, __ATOMIC_RELAXED);
}

/*
 * Who gives way with a mutex of which others spin on another keeps those waiting that spin on the first. So it does at
 * the unlock of the outer one of the two, or if that is long in coming.
 */
#define SPUN_INNER_MOST 16

static int got_by_trylock(const struct sbt_mutex *mx, uint32_t seen) {
    sbt_self.trylock_last = NULL;
    if (SBT_UNLIKELY((seen & DIRECT_SPUN) != 0) && sbt_self.spun_outer == NULL) {
        sbt_self.spun_outer = mx;
        sbt_self.spun_inner = 0;
    }
    return 0;
}

static bool is_inner(const struct sbt_mutex *mx) {
    if (sbt_self.spun_outer != NULL && sbt_self.spun_outer != mx && sbt_self.spun_inner++ < SPUN_INNER_MOST)
        return true;
    sbt_self.spun_outer = NULL;
    return false;
}

enum direct_spun direct_mutex_spun(struct sbt_mutex *mx) {
    bool inner = is_inner(mx);
    uint8_t credit = __atomic_load_n(&mx->spun_credit, __ATOMIC_RELAXED);
    bool more = (credit & ~SPUN_BY_ANYBODY) != 0;
    __atomic_store_n(&mx->spun_credit, more ? (uint8_t)(credit - 1) : 0, __ATOMIC_RELAXED);
    if (!more)
        __atomic_fetch_and(&mx->state, ~(uint32_t)DIRECT_SPUN, __ATOMIC_RELAXED);
    return inner ? DIRECT_SPUN_NOT : (credit & SPUN_BY_ANYBODY) != 0 ? DIRECT_SPUN_BY_ANYBODY : DIRECT_SPUN_BY_CONTEXTS;
}

/* On a carrier it is not the number of those that run that counts, but whether somebody waits for this one. */
bool direct_mutex_gives_way(enum direct_spun spun) {
    return sbt_switch_others_ready() || (spun == DIRECT_SPUN_BY_ANYBODY && !sbt_cores_to_spare());
}

/* In a forked child: it is kept for a thread that is not here. Acquire pairs with the release of who handed it over. */
static bool take_of_nobody(struct sbt_mutex *mx) {
    if (sbt_thread_process_generation() == 0 || sbt_lot_busy())
        return false;
    struct sbt_bucket *b = sbt_lot_lock(mx);
    uint32_t seen = __atomic_load_n(&mx->state, __ATOMIC_RELAXED), stale = DIRECT_HANDED | DIRECT_WOKEN | DIRECT_QUEUED;
    bool got = false;
    while (!got && (seen & DIRECT_HANDED) != 0 && sbt_bucket_first(b, mx) == NULL)
        got = __atomic_compare_exchange_n(&mx->state, &seen, seen & ~stale, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    sbt_lot_unlock(b);
    return got;
}

int direct_mutex_trylock(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t seen;
    /* A context that spins keeps others from its carrier, and to give way to those costs next to nothing. */
    if (SBT_UNLIKELY(sbt_self.context != NULL) && sbt_switch_roams())
        expect_spinning(mx, false);
    if (SBT_LIKELY(direct_mutex_take(&mx->state, &seen)))
        return got_by_trylock(mx, seen);
    if (SBT_UNLIKELY((seen & DIRECT_HANDED) != 0) && take_of_nobody(mx))
        return got_by_trylock(mx, 0);
    if (sbt_trylock_spins(m)) {
        expect_spinning(mx, true);
        if (sbt_switch_among_carriers() && take_soon(&mx->state))
            return got_by_trylock(mx, DIRECT_SPUN);
        /* The first time it expects to have it in a moment; after that, others are to do something first. */
        sbt_give_way(sbt_self.trylock_fails <= SBT_TRYLOCKS_BEFORE_YIELD);
    }
    return EBUSY;
}
