/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sem_*, observed, also in signal handlers. Posts are counted before they are made, waits after they have succeeded:
 * the n-th success beyond the initial value is said to consume the n-th post, which has been made by then.
 */
#include <errno.h>

#include "observe/observe.h"

/* So many waits say the value at first, enough for the first of each thread: whose block is written has its first. */
enum { SAY_VALUE = 1024 };

static void end_wait(struct rec_call *c, int r) {
    struct rec_node *node = c->node;
    if (r == 0 && node != NULL) {
        uint64_t n = REC_COUNT(node->acquired), posts = __atomic_load_n(&node->signals, __ATOMIC_RELAXED);
        /* More than that were made by another process, or before this trace. */
        c->event.order = n > node->initial && n - node->initial <= posts ? n - node->initial : 0;
        if (n <= SAY_VALUE) /* the init may be in a block that is never written */
            c->event.size = node->initial;
    }
    rec_leave(c, r == 0 ? 0 : errno);
}

static void cancelled(void *call) {
    rec_leave(call, ECANCELED);
}

#define OBSERVE_SEM_WAIT(op, call)                                                                                     \
    struct rec_call c;                                                                                                 \
    int r;                                                                                                             \
    if (!rec_enter(&c, op, SBT_TRACE_SEM, s, REC_SITE_HERE))                                                           \
        return call;                                                                                                   \
    pthread_cleanup_push(cancelled, &c);                                                                               \
    r = call;                                                                                                          \
    pthread_cleanup_pop(0);                                                                                            \
    end_wait(&c, r);                                                                                                   \
    return r

OBSERVED(int, sem_wait, (sem_t * s)) {
    OBSERVE_SEM_WAIT(SBT_TRACE_SEM_WAIT, ABI(sem_wait)(s));
}

OBSERVED(int, sem_timedwait, (sem_t * s, const struct timespec *at)) {
    OBSERVE_SEM_WAIT(SBT_TRACE_SEM_WAIT, ABI(sem_timedwait)(s, at));
}

OBSERVED(int, sem_clockwait, (sem_t * s, clockid_t clock, const struct timespec *at)) {
    OBSERVE_SEM_WAIT(SBT_TRACE_SEM_WAIT, ABI(sem_clockwait)(s, clock, at));
}

OBSERVED(int, sem_trywait, (sem_t * s)) {
    struct rec_call c;
    if (!rec_enter(&c, SBT_TRACE_SEM_TRYWAIT, SBT_TRACE_SEM, s, REC_SITE_HERE))
        return ABI(sem_trywait)(s);
    int r = ABI(sem_trywait)(s);
    end_wait(&c, r);
    return r;
}

OBSERVED(int, sem_post, (sem_t * s)) {
    struct rec_call c;
    if (!rec_enter(&c, SBT_TRACE_SEM_POST, SBT_TRACE_SEM, s, REC_SITE_HERE))
        return ABI(sem_post)(s);
    c.event.order = REC_COUNTED(c.node, signals);
    int r = ABI(sem_post)(s);
    rec_leave(&c, r == 0 ? 0 : errno);
    return r;
}

OBSERVED(int, sem_getvalue, (sem_t * s, int *value)) {
    return ABI(sem_getvalue)(s, value);
}

OBSERVED(int, sem_init, (sem_t * s, int shared, unsigned value)) {
    int r = ABI(sem_init)(s, shared, value);
    if (r == 0)
        rec_init(SBT_TRACE_SEM, s, value, REC_SITE_HERE);
    return r;
}

OBSERVED(int, sem_destroy, (sem_t * s)) {
    struct rec_call c;
    bool on = rec_enter(&c, SBT_TRACE_DESTROY, SBT_TRACE_SEM, s, REC_SITE_HERE);
    int r = ABI(sem_destroy)(s);
    if (on)
        rec_destroyed(&c, r == 0 ? 0 : errno);
    return r;
}
