/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stalls: a thread keeps the turn without an operation, and others wait. It computes, or it loops on a variable that
 * another thread must write; that loop would never end.
 *
 * Letting it go on outside takes the turn away from a thread that may use it at that moment:
 *  1. The thread that expels writes `holder`, makes a heavy fence, and reads the other's in_op.
 *  2. The other thread writes in_op, and then reads `holder`.
 * Either the first sees in_op and gives the turn back, or the second sees that it has not got the turn.
 */
#include "core/log.h"
#include "decimal.h"
#include "engine/det/det.h"
#include "os/fence.h"

static bool has_told;

static void tell(uint32_t holder, bool releases) {
    char number[DECIMAL_SIZE];
    if (!__atomic_exchange_n(&has_told, true, __ATOMIC_RELAXED))
        sbt_log(1, "thread ", decimal_of(number, holder), " keeps the turn and makes no operation: ",
                releases ? "it goes on outside the order" : "the others wait (--stall release lets them go on)", NULL);
}

static void expel(uint32_t holder) {
    struct det_round *r = det_round;
    uint32_t next = TURN_NO_THREAD;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    if (r->turn.holder == holder && r->turn.thread[holder].state == TURN_RUNNABLE) {
        __atomic_store_n(&r->turn.holder, TURN_NO_THREAD, __ATOMIC_SEQ_CST);
        const uint32_t *in_op = r->thread[holder].in_op;
        if (!sbt_fence_heavy() || in_op == NULL || __atomic_load_n(in_op, __ATOMIC_SEQ_CST) != 0) {
            __atomic_store_n(&r->turn.holder, holder, __ATOMIC_SEQ_CST);
            next = holder;
        } else {
            turn_expel(&r->turn, holder);
            next = turn_choose(&r->turn);
        }
    }
    sbt_lock_drop(&r->lock);
    det_give(next);
    sbt_handlers_release();
}

static uint64_t patience_ns(uint32_t holder) {
    bool is_asleep = __atomic_load_n(&det_round->thread[holder].waits, __ATOMIC_RELAXED) != 0;
    return is_asleep                                                 ? DET_STALL_ASLEEP_NS
           : sbt_options.value[SBT_OPT_STALL].u == SBT_STALL_RELEASE ? DET_STALL_RELEASE_NS
                                                                     : DET_STALL_NS;
}

uint64_t det_look_every_ns(void) {
    uint64_t every = sbt_options.value[SBT_OPT_STALL].u == SBT_STALL_RELEASE ? DET_STALL_RELEASE_NS : DET_STALL_NS;
    return every / 2 + every * __atomic_load_n(&det_round->turn.n_runnable, __ATOMIC_RELAXED) / DET_LOOKERS;
}

/* With the lock. */
static bool is_stalled(struct det_round *r) {
    uint64_t now = sbt_now_ns();
    if (r->turn.holder == TURN_NO_THREAD)
        return false;
    if (r->look.holder != r->turn.holder || r->look.logical != r->turn.now || r->look.since_ns == 0)
        r->look = (struct det_look){r->turn.holder, r->turn.now, now};
    return now - r->look.since_ns >= patience_ns(r->turn.holder);
}

void det_look_for_stall(void) {
    struct det_round *r = det_round;
    bool releases = sbt_options.value[SBT_OPT_STALL].u == SBT_STALL_RELEASE;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    bool stalls = is_stalled(r);
    uint32_t holder = r->turn.holder;
    sbt_lock_drop(&r->lock);
    if (stalls && __atomic_load_n(&r->is_logged, __ATOMIC_RELAXED))
        det_schedule_stall(holder, releases);
    sbt_handlers_release();
    if (!stalls)
        return;
    tell(holder, releases);
    if (releases)
        expel(holder);
}
