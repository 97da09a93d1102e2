/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_cond_*, observed. From outside it cannot be seen which signal ended a wait, so the recorder assigns a signal.
 * A signal ends at most one wait, a broadcast any number. A wait gets the oldest unassigned signal that was given after
 * the wait began and before it ended. That could have happened. And a replay that follows it cannot wait in a circle:
 * every wait is for something that was done before the wait ended.
 *
 * A signal is counted before it is given, so that each wait is ended by a signal that has a number. A wait may begin
 * between the two and be ended by this signal: so the signals that are in flight when a wait begins count as given
 * after that.
 */
#include <errno.h>

#include "observe/observe.h"

enum { N_FLYING = 32 };

static void count_signal(struct rec_call *c, bool broadcast) {
    struct rec_node *node = c->node;
    if (node == NULL)
        return;
    rec_node_lock(node);
    c->event.order = ++node->signals;
    node->open = node->open << 1 | 1;
    node->broadcasts = node->broadcasts << 1 | broadcast;
    node->flying = node->flying << 1 | 1;
    rec_node_unlock(node);
}

/*
 * A waiter that the signal has woken may have destroyed the condition, and another condition may have taken its place.
 */
static int given(struct rec_call *c, int r, int (*errno_of)(int)) {
    struct rec_node *node = c->node;
    if (node != NULL) {
        rec_node_lock(node);
        if (node->number == c->event.object && node->signals - c->event.order < N_FLYING)
            node->flying &= ~(UINT32_C(1) << (node->signals - c->event.order));
        rec_node_unlock(node);
    }
    rec_leave(c, errno_of(r));
    return r;
}

static void begin_wait(struct rec_call *c) {
    struct rec_node *node = c->node;
    if (node == NULL)
        return;
    rec_node_lock(node);
    c->first_order = node->signals;
    c->flying = node->flying;
    rec_node_unlock(node);
}

/* The oldest unassigned signal, of those since the wait began and those that were in flight then. */
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
 * The number of the signal that ended the wait; 0: no signal can have ended it. A condition may be destroyed as soon as
 * all its waiters have been woken, before they have returned: then the broadcast that woke them was the signal.
 */
static uint64_t assign(struct rec_call *c) {
    struct rec_node *node = c->node;
    uint64_t order = 0;
    if (node == NULL)
        return 0;
    rec_node_lock(node);
    if (node->number == c->event.object)
        order = oldest_left(c, node);
    else if (node->before == c->event.object &&
             (node->before_signals > c->first_order || was_flying(c, node->before_signals)))
        order = node->before_signals;
    rec_node_unlock(node);
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

/* A call that waits. `at`: NULL waits for ever. */
struct wait {
    pthread_cond_t *cond;
    pthread_mutex_t *mutex;
    clockid_t clock;
    const struct timespec *at;
};

static int wait_observed(int (*call)(const struct wait *), const struct wait *w, int (*errno_of)(int),
                         const void *site) {
    struct rec_call c;
    int r;
    rec_enter_wait(&c, w->cond, w->mutex, site);
    begin_wait(&c);
    pthread_cleanup_push(cancelled, &c);
    r = call(w);
    pthread_cleanup_pop(0);
    end_wait(&c, errno_of(r));
    return r;
}

static int wait(const struct wait *w) {
    return sbt_pthread_cond_wait(w->cond, w->mutex);
}

static int wait_timed(const struct wait *w) {
    return sbt_pthread_cond_timedwait(w->cond, w->mutex, w->at);
}

static int wait_clock(const struct wait *w) {
    return sbt_pthread_cond_clockwait(w->cond, w->mutex, w->clock, w->at);
}

static int wait_c11(const struct wait *w) {
    return sbt_cnd_wait((cnd_t *)w->cond, (mtx_t *)w->mutex);
}

static int wait_timed_c11(const struct wait *w) {
    return sbt_cnd_timedwait((cnd_t *)w->cond, (mtx_t *)w->mutex, w->at);
}

SBT_EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) {
    return wait_observed(wait, &(struct wait){.cond = c, .mutex = m}, rec_result, REC_SITE_HERE);
}

SBT_EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at) {
    return wait_observed(wait_timed, &(struct wait){.cond = c, .mutex = m, .at = at}, rec_result, REC_SITE_HERE);
}

SBT_EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                                      const struct timespec *at) {
    return wait_observed(wait_clock, &(struct wait){c, m, clock, at}, rec_result, REC_SITE_HERE);
}

SBT_EXPORT int cnd_wait(cnd_t *c, mtx_t *m) {
    struct wait w = {.cond = (pthread_cond_t *)c, .mutex = (pthread_mutex_t *)m};
    return wait_observed(wait_c11, &w, rec_errno_of_c11, REC_SITE_HERE);
}

SBT_EXPORT int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *at) {
    struct wait w = {.cond = (pthread_cond_t *)c, .mutex = (pthread_mutex_t *)m, .at = at};
    return wait_observed(wait_timed_c11, &w, rec_errno_of_c11, REC_SITE_HERE);
}

SBT_EXPORT int pthread_cond_signal(pthread_cond_t *c) {
    struct rec_call call;
    rec_enter(&call, SBT_TRACE_COND_SIGNAL, SBT_TRACE_COND, c, REC_SITE_HERE);
    count_signal(&call, false);
    return given(&call, sbt_pthread_cond_signal(c), rec_result);
}

SBT_EXPORT int pthread_cond_broadcast(pthread_cond_t *c) {
    struct rec_call call;
    rec_enter(&call, SBT_TRACE_COND_BROADCAST, SBT_TRACE_COND, c, REC_SITE_HERE);
    count_signal(&call, true);
    return given(&call, sbt_pthread_cond_broadcast(c), rec_result);
}

SBT_EXPORT int cnd_signal(cnd_t *c) {
    struct rec_call call;
    rec_enter(&call, SBT_TRACE_COND_SIGNAL, SBT_TRACE_COND, c, REC_SITE_HERE);
    count_signal(&call, false);
    return given(&call, sbt_cnd_signal(c), rec_errno_of_c11);
}

SBT_EXPORT int cnd_broadcast(cnd_t *c) {
    struct rec_call call;
    rec_enter(&call, SBT_TRACE_COND_BROADCAST, SBT_TRACE_COND, c, REC_SITE_HERE);
    count_signal(&call, true);
    return given(&call, sbt_cnd_broadcast(c), rec_errno_of_c11);
}

SBT_EXPORT int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attr) {
    int r = sbt_pthread_cond_init(c, attr);
    if (r == 0)
        rec_init(SBT_TRACE_COND, c, 0, REC_SITE_HERE);
    return r;
}

SBT_EXPORT int cnd_init(cnd_t *c) {
    int r = sbt_cnd_init(c);
    if (r == thrd_success)
        rec_init(SBT_TRACE_COND, c, 0, REC_SITE_HERE);
    return r;
}

SBT_EXPORT int pthread_cond_destroy(pthread_cond_t *cond) {
    struct rec_call call;
    rec_enter(&call, SBT_TRACE_DESTROY, SBT_TRACE_COND, cond, REC_SITE_HERE);
    return rec_destroyed(&call, sbt_pthread_cond_destroy(cond));
}

SBT_EXPORT void cnd_destroy(cnd_t *cond) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_DESTROY, SBT_TRACE_COND, cond, REC_SITE_HERE);
    sbt_cnd_destroy(cond);
    rec_destroyed(&c, 0);
}

SBT_OLD_COND_VERSIONS;
