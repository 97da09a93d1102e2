/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Taking a fiber from a run queue, as inline functions: each switch does it (leave.c). */
#ifndef SBT_SWITCH_RUNQ_POP_H
#define SBT_SWITCH_RUNQ_POP_H

#include "switch/state.h"

/* Which queue is next, where fibers that yielded wait. The caller holds the lock. */
enum sbt_runq_of sbt_runq_prefer(struct sbt_carrier *x);

/* With the lock held. NULL: there is none. */
static inline struct sbt_fiber *sbt_runq_take_first(struct sbt_carrier *x) {
    struct sbt_runq *q = &x->queue[SBT_WOKEN];
    if (SBT_UNLIKELY(x->queue[SBT_YIELDED].head != NULL || x->queue[SBT_FRESH].head != NULL))
        q = &x->queue[sbt_runq_prefer(x)];
    struct sbt_fiber *f = q->head;
    if (f == NULL)
        return NULL;
    q->head = f->next;
    if (q->head == NULL)
        q->tail = NULL;
    __atomic_store_n(&x->n, x->n - 1, __ATOMIC_RELAXED);
    return f;
}

/*
 * Take the carrier's own next fiber, which is its current one then; NULL: none. Called by that carrier alone. A handler
 * that has been deferred runs at the end, and finds the fiber (sbt_leave_undo).
 */
static inline struct sbt_fiber *sbt_runq_pop(struct sbt_carrier *x) {
    if (__atomic_load_n(&x->n, __ATOMIC_RELAXED) == 0)
        return NULL;
    sbt_handlers_hold();
    sbt_own_lock_enter(&x->lock);
    struct sbt_fiber *f = sbt_runq_take_first(x);
    if (SBT_LIKELY(f != NULL)) {
        __atomic_store_n(&x->pops, x->pops + 1, __ATOMIC_RELAXED);
        __atomic_store_n(&x->current, f, __ATOMIC_RELAXED); /* as sbt_carrier_set_current */
    }
    sbt_own_lock_leave(&x->lock);
    sbt_handlers_release();
    return f;
}

#endif
