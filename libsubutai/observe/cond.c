/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_cond_*, observed. Which signal ended a wait is not to be seen from outside, so one is assigned: each signal
 * ends at most one wait, a broadcast any number; it is one that was given after the wait began and before it ended, the
 * oldest that is left. What is assigned could have happened, and a replay that follows it cannot wait in a circle:
 * every wait is for something that was done before it ended.
 *
 * A signal is counted before it is given, so that no wait can end by one that has no number. Between the two a wait may
 * begin that it ends: signals in flight when a wait begins count as given after that.
 */
#include <errno.h>

#include "observe/observe.h"

enum { N_FLYING = 32 };

static void count_signal(struct rec_call *c, bool broadcast) {
    struct rec_node *node = c->node;
    if (node == NULL)
        return;
    rec_guard(node);
    c->event.order = ++node->signals;
    node->open = node->open << 1 | 1;
    node->broadcasts = node->broadcasts << 1 | broadcast;
    node->flying = node->flying << 1 | 1;
    rec_unguard(node);
}

/* A wait that it has ended may have destroyed the condition, and another one may be there by now. */
static void given(struct rec_call *c, int r) {
    struct rec_node *node = c->node;
    if (node != NULL) {
        rec_guard(node);
        if (node->number == c->event.object && node->signals - c->event.order < N_FLYING)
            node->flying &= ~(UINT32_C(1) << (node->signals - c->event.order));
        rec_unguard(node);
    }
    rec_leave(c, r);
}

static void begin_wait(struct rec_call *c) {
    struct rec_node *node = c->node;
    if (node == NULL)
        return;
    rec_guard(node);
    c->first_order = node->signals;
    c->flying = node->flying;
    rec_unguard(node);
}

/* The oldest signal that is left of those since the wait began and those that were on their way then. */
static uint64_t oldest_left(struct rec_call *c, struct rec_node *node) {
    uint64_t n = node->signals - c->first_order, since = n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
    since |= n >= 64 ? 0 : (uint64_t)c->flying << n;
    uint64_t left = (node->open | node->broadcasts) & since;
    if (left == 0)
        return 0;
    unsigned oldest = 63 - (unsigned)__builtin_clzll(left);
    node->open &= ~(UINT64_C(1) << oldest);
    return node->signals - oldest;
}

static bool was_flying(const struct rec_call *c, uint64_t order) {
    uint64_t before = c->first_order - order;
    return order != 0 && before < N_FLYING && (c->flying >> before & 1) != 0;
}

/*
 * The number of the signal that ended the wait, 0 if there is none that could have. A condition may be destroyed as
 * soon as all that wait have been woken, before they have returned: then it was the broadcast that woke them.
 */
static uint64_t assign(struct rec_call *c) {
    struct rec_node *node = c->node;
    uint64_t order = 0;
    if (node == NULL)
        return 0;
    rec_guard(node);
    if (node->number == c->event.object)
        order = oldest_left(c, node);
    else if (node->before == c->event.object &&
             (node->before_signals > c->first_order || was_flying(c, node->before_signals)))
        order = node->before_signals;
    rec_unguard(node);
    return order;
}

/* The mutex is held again, unless the call was refused. */
static void end_wait(struct rec_call *c, int r) {
    bool waited = r == 0 || r == ETIMEDOUT || r == ECANCELED || r == EOWNERDEAD;
    if (r == 0 || r == EOWNERDEAD)
        c->event.order = assign(c);
    if (waited)
        c->event.relock = rec_acquired(c->mutex);
    rec_leave(c, r);
}

static void cancelled(void *call) {
    end_wait(call, ECANCELED);
}

#define OBSERVE_WAIT(c, m, call, errno_of)                                                                             \
    struct rec_call observed;                                                                                          \
    int r;                                                                                                             \
    if (!rec_enter_wait(&observed, c, m, REC_SITE_HERE))                                                               \
        return call;                                                                                                   \
    begin_wait(&observed);                                                                                             \
    pthread_cleanup_push(cancelled, &observed);                                                                        \
    r = call;                                                                                                          \
    pthread_cleanup_pop(0);                                                                                            \
    end_wait(&observed, errno_of(r));                                                                                  \
    return r

#define AS_IT_IS(r) (r)

OBSERVED(int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m)) {
    OBSERVE_WAIT(c, m, ABI(pthread_cond_wait)(c, m), AS_IT_IS);
}

OBSERVED(int, pthread_cond_timedwait, (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *at)) {
    OBSERVE_WAIT(c, m, ABI(pthread_cond_timedwait)(c, m, at), AS_IT_IS);
}

OBSERVED(int, pthread_cond_clockwait,
         (pthread_cond_t * c, pthread_mutex_t *m, clockid_t clock, const struct timespec *at)) {
    OBSERVE_WAIT(c, m, ABI(pthread_cond_clockwait)(c, m, clock, at), AS_IT_IS);
}

OBSERVED(int, cnd_wait, (cnd_t * c, mtx_t *m)) {
    OBSERVE_WAIT(c, m, ABI(cnd_wait)(c, m), rec_errno_of_c11);
}

OBSERVED(int, cnd_timedwait, (cnd_t * c, mtx_t *m, const struct timespec *at)) {
    OBSERVE_WAIT(c, m, ABI(cnd_timedwait)(c, m, at), rec_errno_of_c11);
}

#define OBSERVE_SIGNAL(op, is_broadcast, call, errno_of)                                                               \
    struct rec_call observed;                                                                                          \
    if (!rec_enter(&observed, op, SBT_TRACE_COND, c, REC_SITE_HERE))                                                   \
        return call;                                                                                                   \
    count_signal(&observed, is_broadcast);                                                                             \
    int r = call;                                                                                                      \
    given(&observed, errno_of(r));                                                                                     \
    return r

OBSERVED(int, pthread_cond_signal, (pthread_cond_t * c)) {
    OBSERVE_SIGNAL(SBT_TRACE_COND_SIGNAL, false, ABI(pthread_cond_signal)(c), AS_IT_IS);
}

OBSERVED(int, pthread_cond_broadcast, (pthread_cond_t * c)) {
    OBSERVE_SIGNAL(SBT_TRACE_COND_BROADCAST, true, ABI(pthread_cond_broadcast)(c), AS_IT_IS);
}

OBSERVED(int, cnd_signal, (cnd_t * c)) {
    OBSERVE_SIGNAL(SBT_TRACE_COND_SIGNAL, false, ABI(cnd_signal)(c), rec_errno_of_c11);
}

OBSERVED(int, cnd_broadcast, (cnd_t * c)) {
    OBSERVE_SIGNAL(SBT_TRACE_COND_BROADCAST, true, ABI(cnd_broadcast)(c), rec_errno_of_c11);
}

OBSERVED(int, pthread_cond_init, (pthread_cond_t * c, const pthread_condattr_t *attr)) {
    int r = ABI(pthread_cond_init)(c, attr);
    if (r == 0)
        rec_init(SBT_TRACE_COND, c, 0, REC_SITE_HERE);
    return r;
}

OBSERVED(int, cnd_init, (cnd_t * c)) {
    int r = ABI(cnd_init)(c);
    if (r == thrd_success)
        rec_init(SBT_TRACE_COND, c, 0, REC_SITE_HERE);
    return r;
}

OBSERVED(int, pthread_cond_destroy, (pthread_cond_t * cond)) {
    OBSERVE_DESTROY(SBT_TRACE_COND, cond, ABI(pthread_cond_destroy)(cond));
}

OBSERVED(void, cnd_destroy, (cnd_t * cond)) {
    struct rec_call c;
    bool on = rec_enter(&c, SBT_TRACE_DESTROY, SBT_TRACE_COND, cond, REC_SITE_HERE);
    ABI(cnd_destroy)(cond);
    if (on)
        rec_destroyed(&c, 0);
}
