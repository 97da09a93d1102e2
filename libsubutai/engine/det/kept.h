/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The whole of an operation that does not wait or wake, of a thread that has the turn and keeps it: what det_take and
 * det_pass do, in one stretch. A function of these alone makes no call, but for deferred handlers, and saves no
 * registers. With them an operation takes a fifth less.
 */
#ifndef SBT_ENGINE_DET_KEPT_H
#define SBT_ENGINE_DET_KEPT_H

#include "engine/det/det.h"

/*
 * det_begin_kept: false, nothing has been done, and the operation is made by det_take and det_pass. Otherwise the
 * caller looks at the object. It changes it and calls det_end_kept; or it has to wait, or to wake, and det_leave_kept
 * takes everything back. `held` is the caller's handlers_held before, which is written back, and not read again: each
 * way through memory is one in the chain of all operations.
 */
static inline void det_leave_kept(uint32_t held) {
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.handlers_held = held; /* a deferred handler runs when the operation is made */
}
static inline bool det_begin_kept(const uint32_t *number, uint32_t *held) {
    const struct det_round *r = det_round;
    if (SBT_UNLIKELY(det_self.in_op != 0))
        return false;
    *held = sbt_self.handlers_held;
    sbt_self.handlers_held = *held + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&det_self.in_op, 1, __ATOMIC_RELAXED);
    sbt_fence_light(); /* as in det_get */
    if (SBT_LIKELY(det_self.generation == sbt_fork_page.known &&
                   __atomic_load_n(&r->turn.holder, __ATOMIC_ACQUIRE) == det_self.number && !r->is_watched &&
                   !det_self.is_guest && det_self.hint == NULL && *number != 0 && det_is_alone()))
        return true;
    det_leave_kept(*held);
    return false;
}
static inline void det_end_kept(enum det_op op, uint32_t number, uint32_t held) {
    struct det_round *r = det_round;
    r->n_ops++;
    r->hash = schedule_hash_object(schedule_hash_op(r->hash, det_self.number, (enum schedule_op)op), number);
    det_self.last_ns = r->turn.now;
    __atomic_store_n(&r->turn.now, det_after_kept(&r->turn), __ATOMIC_RELAXED);
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.handlers_held = held;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY(sbt_self.handlers_deferred != 0))
        sbt_handlers_deliver();
}

#endif
