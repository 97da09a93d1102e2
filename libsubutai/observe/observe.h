/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the observing functions share. */
#ifndef SBT_OBSERVE_OBSERVE_H
#define SBT_OBSERVE_OBSERVE_H

#include <threads.h>

#include "observe/record.h"

/*
 * The head of an exported function. In the recording library it has the C library's name, whose headers declare it,
 * and ABI(name) is the function that is observed.
 */
#define OBSERVED(result, name, parameters) SBT_EXPORT result name parameters

/* The node's counter, counted up; 0 if there was no memory for a node. */
#define REC_COUNTED(node, counter) ((node) != NULL ? REC_COUNT((node)->counter) : 0)

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

/* What comes to the address next is another one, also if nothing initialises it. */
static inline void rec_destroyed(struct rec_call *c, int r) {
    if (r == 0 && c->node != NULL && c->node->number == c->event.object)
        __atomic_store_n(&c->node->type, SBT_TRACE_NO_OBJECT, __ATOMIC_RELEASE);
    rec_leave(c, r);
}

#define OBSERVE_DESTROY(type, object, call)                                                                            \
    struct rec_call c;                                                                                                 \
    bool on = rec_enter(&c, SBT_TRACE_DESTROY, type, object, REC_SITE_HERE);                                           \
    int r = call;                                                                                                      \
    if (on)                                                                                                            \
        rec_destroyed(&c, r);                                                                                          \
    return r

#endif
