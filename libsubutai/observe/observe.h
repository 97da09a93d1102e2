/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the observing functions share. */
#ifndef SBT_OBSERVE_OBSERVE_H
#define SBT_OBSERVE_OBSERVE_H

#include <threads.h>

#include "observe/profile.h"

/* In the recording library the recorder's functions have the C library's names. */
#define SBT_ALIAS(alias_name, name) SBT_ALIAS_AS("", alias_name, name)

/* Count the node's counter up. 0: there was no memory for a node. */
#define REC_COUNTED(node, counter) ((node) != NULL ? REC_COUNT((node)->counter) : 0)

/*
 * signals.c: around a signal, with its number in c->event.order from rec_signal_count on; and around a wait.
 * `n_woken`: how many waiters the signal is known to have woken; LONG_MAX: it is not known. rec_signal_assign: the
 * number of the signal that ended the wait; 0: none can have. rec_signal_last: the number of the last signal until now.
 */
void rec_signal_count(struct rec_call *c, bool broadcast);
void rec_signal_given(struct rec_call *c, long n_woken);
void rec_signal_begin_wait(struct rec_call *c);
uint64_t rec_signal_assign(struct rec_call *c);
uint64_t rec_signal_last(struct rec_call *c);

static inline int rec_errno_of_c11(int r) {
    switch (r) {
    case thrd_success:
        return 0;
    case thrd_nomem:
        return ENOMEM;
    case thrd_timedout:
        return ETIMEDOUT;
    case thrd_busy:
        return EBUSY;
    default:
        return EINVAL;
    }
}

/* If `r` is 0 the object is gone. The next use of its address is another object, even if nothing initialises it. */
static inline int rec_destroyed(struct rec_call *c, int r) {
    if (r == 0 && c->node != NULL && rec_life_of(c->node) == c->event.object)
        __atomic_store_n(&c->node->type, SBT_TRACE_NO_OBJECT, __ATOMIC_RELEASE);
    rec_leave(c, r);
    return r;
}

/* The same in a profile, where the destroy is no event. */
static inline int rec_profile_destroyed(uint8_t type, const void *object, const void *site, int r) {
    struct rec_key key = {(uintptr_t)object, (uintptr_t)site, SBT_TRACE_DESTROY, type, false, 0};
    if (r == 0)
        rec_profile_life(&key, false, 0);
    return r;
}

/* For a result that is an errno value already. */
static inline int rec_result(int r) {
    return r;
}

#endif
