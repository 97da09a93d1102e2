/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the log and the hints are told of operations: the slow part of det_take and of the end of a wait. */
#include <string.h>

#include "engine/det/hints.h"
#include "engine/det/site.h"

_Static_assert((int)HINTS_CALLERS == (int)SCHEDULE_MAX_CALLERS, "one chain for both");

static struct det_site_ways ways;  /* the holder's */
static struct det_callers callers; /* the holder's */
/*
 * The ways of operations that are offered, by threads without the turn. No thread waits for that lock: to unwind, its
 * owner may wait for the dynamic linker's lock, and so for a thread that waits for the turn.
 */
static struct det_site_ways ways_to_offers;
static struct sbt_lock offers_lock;

/* The library's call, and not the program's. */
static bool is_own_call(enum det_op op) {
    return op == DET_BEGIN || op == DET_END;
}

SBT_NOINLINE void det_watch_op(enum det_op op) {
    const struct det_round *r = det_round;
    bool is_logged = __atomic_load_n(&r->is_logged, __ATOMIC_RELAXED);
    struct det_call call = {0};
    uintptr_t chain[HINTS_CALLERS];
    if ((is_logged || det_hints_need_sites()) && !is_own_call(op))
        call = det_site(&ways, __builtin_frame_address(0));
    __atomic_store_n(&det_round->thread[det_self.number].site, call.site, __ATOMIC_RELAXED); /* for stall.c */
    unsigned for_log = is_logged ? det_schedule_callers() : 0, n = det_hints_need_callers(call.site);
    n = for_log > n ? for_log : n;
    if (n != 0)
        det_chain(&callers, &call, n, chain);
    if (is_logged)
        det_schedule_op((enum schedule_op)op, det_self.number, call.site, n != 0 ? chain : NULL);
    if (r->is_hinted)
        det_hints_op(call.site, n != 0 ? chain : NULL);
}

/* A cancellation that acts here leaves no trace of the operation. */
SBT_NOINLINE void det_take_watched(enum det_op op) {
    struct det_round *r = det_round;
    if (SBT_UNLIKELY(r->n_cancelled != 0) && det_self.n_inner == 0) {
        r->n_ops--;
        det_look_at_cancellation();
        r->n_ops++;
    }
    r->hash = schedule_hash_op(r->hash, det_self.number, (enum schedule_op)op);
    if (__atomic_load_n(&r->is_logged, __ATOMIC_RELAXED) || r->is_hinted)
        det_watch_op(op);
}

SBT_NOINLINE void det_take_object_slow(enum det_op op, uint32_t *number) {
    det_take_watched(op);
    det_object(number);
}

SBT_NOINLINE bool det_watch_offer(uintptr_t *site) {
    *site = 0;
    if (!__atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED) && !det_hints_need_sites())
        return true;
    if (det_schedule_callers() != 0 || !sbt_lock_try(&offers_lock))
        return false;
    *site = det_site(&ways_to_offers, __builtin_frame_address(0)).site;
    sbt_lock_drop(&offers_lock);
    return true;
}

void det_watch_forked(void) {
    offers_lock = (struct sbt_lock){0};
    memset(&ways_to_offers, 0, sizeof ways_to_offers);
    det_mutex_forked();
}

bool det_watch_needs_turn(uintptr_t site) {
    return det_round->is_hinted && det_hints_need_turn(site);
}

void det_watch_served(enum det_op op, uint32_t number, uintptr_t site) {
    if (__atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED))
        det_schedule_op((enum schedule_op)op, number, site, NULL);
    if (det_round->is_hinted)
        det_hints_served(number, site);
}

SBT_NOINLINE void det_watch_resume(enum turn_reason reason) {
    if (__atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED))
        det_schedule_resume(det_self.number, (enum schedule_reason)reason);
    if (det_round->is_hinted)
        det_hints_resume();
}
