/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events of signal handlers. A handler interrupts its thread in one of three places:
 *  - In the program. Its calls are events as all others.
 *  - In a call that waits. Its calls are events before the one of that call; the work is told apart by rec_interrupts.
 *  - In the recorder. Its events wait in `pending` until the interrupted code is done (rec_leave_nested, rec_drain).
 *
 * All is relaxed: the handlers are this thread's own.
 */
#include "observe/number.h"

void rec_leave_nested(struct rec_call *c) {
    struct rec_thread *t = c->thread;
    uint32_t i = t->n_pending;
    c->event.took_ns = rec_now_ns() - c->begin_ns;
    do {
        if (i == REC_N_PENDING) {
            rec_lost(t, 1);
            return;
        }
    } while (!__atomic_compare_exchange_n(&t->n_pending, &i, i + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    t->pending[i] = c->event; /* the interrupted code reads it, and goes on after this handler */
    t->pending_object[i] = c->node != NULL ? c->node->address : 0;
    t->pending_site[i] = (uintptr_t)c->site;
}

/* More may come at any time. */
void rec_drain(struct rec_thread *t) {
    for (uint32_t i = 0;;) {
        uint32_t n = t->n_pending;
        for (; i < n; i++) {
            rec_define_pending(t, i);
            rec_put(t, &t->pending[i]);
            rec_encode(t);
        }
        if (__atomic_compare_exchange_n(&t->n_pending, &n, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
    }
    rec_no_work(t);
}

void rec_interrupts(struct rec_call *c) {
    struct rec_thread *t = c->thread;
    if (rec_is_left(t, t->call_at, rec_here())) {
        c->event.work_ns += t->call_work_ns;
        t->in_call = 0;
        return;
    }
    c->outer = t->in_call;
    c->outer_work_ns = t->call_work_ns;
    c->outer_at = t->call_at;
    c->outer_waits = t->call_waits;
}
