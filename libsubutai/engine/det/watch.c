/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the log and the hints are told of operations: the slow part of det_take and of the end of a wait. */
#include "engine/det/hints.h"
#include "engine/det/site.h"

static struct det_site_ways ways;
static struct sbt_lock ways_lock;

/* The caller may not have the turn. */
static uintptr_t find_site(const uintptr_t *frame) {
    sbt_lock_take(&ways_lock);
    uintptr_t site = det_site(&ways, frame);
    sbt_lock_drop(&ways_lock);
    return site;
}

/* The library's call, and not the program's. */
static bool is_own_call(enum det_op op) {
    return op == DET_BEGIN || op == DET_END;
}

SBT_NOINLINE void det_watch_op(enum det_op op) {
    const struct det_round *r = det_round;
    bool is_logged = __atomic_load_n(&r->is_logged, __ATOMIC_RELAXED);
    uintptr_t site = 0;
    if ((is_logged || det_hints_need_sites()) && !is_own_call(op))
        site = find_site(__builtin_frame_address(0));
    if (is_logged)
        det_schedule_op((enum schedule_op)op, det_self.number, site);
    if (r->is_hinted)
        det_hints_op(site);
}

SBT_NOINLINE uintptr_t det_watch_offer(void) {
    bool is_logged = __atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED);
    return is_logged || det_hints_need_sites() ? find_site(__builtin_frame_address(0)) : 0;
}

bool det_watch_needs_turn(uintptr_t site) {
    return det_round->is_hinted && det_hints_need_turn(site);
}

void det_watch_served(enum det_op op, uint32_t number, uintptr_t site) {
    if (__atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED))
        det_schedule_op((enum schedule_op)op, number, site);
    if (det_round->is_hinted)
        det_hints_served(number, site);
}

SBT_NOINLINE void det_watch_resume(enum turn_reason reason) {
    if (__atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED))
        det_schedule_resume(det_self.number, (enum schedule_reason)reason);
    if (det_round->is_hinted)
        det_hints_resume();
}
