/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pthread_cond_*, observed. signals.c says which signal ended a wait. */
#include <errno.h>
#include <limits.h>

#include "observe/observe.h"

/* A signal is about to be given; the result says whether it is an event: in a profile, if a thread waits. */
static bool enter_signal(struct rec_call *c, unsigned op, const void *cond, const void *site) {
    bool entered = rec_enter(c, op, SBT_TRACE_COND, cond, site);
    rec_signal_count(c, op == SBT_TRACE_COND_BROADCAST);
    return !entered || !rec.profile || rec_ends_wait(c, cond);
}

/*
 * In a profile, a signal for which no thread waits, or only such as have been given one: it is counted, and costs no
 * event's time. A thread that begins to
 * wait at this moment may be ended by it, and its wait has no known end then; in a program in which that can happen,
 * the thread might have come a little later and waited in vain. Counted before the call: the condition may be gone
 * after it. Signals do not fail.
 */
static bool is_for_none(unsigned op, const void *cond, const void *site) {
    struct rec_key key = {(uintptr_t)cond, (uintptr_t)site, (uint8_t)op, SBT_TRACE_COND, false, 0};
    if (!rec_profiles() || (rec_is_waited_for(cond) && rec_profile_gives_signal(cond, op == SBT_TRACE_COND_BROADCAST)))
        return false;
    rec_profile_count(&key);
    return true;
}

static int given(struct rec_call *c, bool is_event, const void *cond, const void *site, int r, int (*errno_of)(int)) {
    rec_signal_given(c, LONG_MAX);
    if (is_event)
        rec_leave(c, errno_of(r));
    else
        rec_profile_leave(c, cond, site, r != 0);
    return r;
}

/* A call that waits. `at`: NULL waits for ever. */
struct wait {
    pthread_cond_t *cond;
    pthread_mutex_t *mutex;
    clockid_t clock;
    const struct timespec *at;
};

/* A wait under way. */
struct waiting {
    struct rec_call c;
    const struct wait *w;
    const void *site;
};

static void begin_wait(struct waiting *o, const struct wait *w, const void *site) {
    o->w = w;
    o->site = site;
    if (rec_profiles())
        rec_profile_give_up(w->mutex, site);
    rec_enter_wait(&o->c, w->cond, w->mutex, site);
    rec_signal_begin_wait(&o->c);
    if (!rec.profile)
        return;
    rec_profile_begin_signals(w->cond, w->mutex);
    rec_profile_begin_wait(w->cond, o->c.thread != NULL ? o->c.begin_ns : 0);
}

/* The mutex is held again, unless the call was refused. */
static void end_wait(struct waiting *o, int r) {
    struct rec_call *c = &o->c;
    bool waited = r == 0 || r == ETIMEDOUT || r == ECANCELED || r == EOWNERDEAD;
    if (rec.profile) {
        rec_profile_end_wait(o->w->cond);
        rec_profile_end_signals(o->w->cond, r == 0 || r == EOWNERDEAD);
    }
    if (r == 0 || r == EOWNERDEAD)
        c->event.order = rec_signal_assign(c);
    if (waited && rec.profile)
        c->event.relock = rec_profile_regained(c->mutex, o->w->mutex, o->site);
    else if (waited)
        c->event.relock = rec_acquired(c->mutex);
    rec_leave(c, r);
}

static void cancelled(void *waiting) {
    end_wait(waiting, ECANCELED);
}

static int wait_observed(int (*call)(const struct wait *), const struct wait *w, int (*errno_of)(int),
                         const void *site) {
    struct waiting o;
    int r;
    begin_wait(&o, w, site);
    pthread_cleanup_push(cancelled, &o);
    r = call(w);
    pthread_cleanup_pop(0);
    end_wait(&o, errno_of(r));
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
    if (is_for_none(SBT_TRACE_COND_SIGNAL, c, REC_SITE_HERE))
        return sbt_pthread_cond_signal(c);
    bool is_event = enter_signal(&call, SBT_TRACE_COND_SIGNAL, c, REC_SITE_HERE);
    return given(&call, is_event, c, REC_SITE_HERE, sbt_pthread_cond_signal(c), rec_result);
}

SBT_EXPORT int pthread_cond_broadcast(pthread_cond_t *c) {
    struct rec_call call;
    if (is_for_none(SBT_TRACE_COND_BROADCAST, c, REC_SITE_HERE))
        return sbt_pthread_cond_broadcast(c);
    bool is_event = enter_signal(&call, SBT_TRACE_COND_BROADCAST, c, REC_SITE_HERE);
    return given(&call, is_event, c, REC_SITE_HERE, sbt_pthread_cond_broadcast(c), rec_result);
}

SBT_EXPORT int cnd_signal(cnd_t *c) {
    struct rec_call call;
    if (is_for_none(SBT_TRACE_COND_SIGNAL, c, REC_SITE_HERE))
        return sbt_cnd_signal(c);
    bool is_event = enter_signal(&call, SBT_TRACE_COND_SIGNAL, c, REC_SITE_HERE);
    return given(&call, is_event, c, REC_SITE_HERE, sbt_cnd_signal(c), rec_errno_of_c11);
}

SBT_EXPORT int cnd_broadcast(cnd_t *c) {
    struct rec_call call;
    if (is_for_none(SBT_TRACE_COND_BROADCAST, c, REC_SITE_HERE))
        return sbt_cnd_broadcast(c);
    bool is_event = enter_signal(&call, SBT_TRACE_COND_BROADCAST, c, REC_SITE_HERE);
    return given(&call, is_event, c, REC_SITE_HERE, sbt_cnd_broadcast(c), rec_errno_of_c11);
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
    if (rec_profiles())
        return rec_profile_destroyed(SBT_TRACE_COND, cond, REC_SITE_HERE, sbt_pthread_cond_destroy(cond));
    rec_enter(&call, SBT_TRACE_DESTROY, SBT_TRACE_COND, cond, REC_SITE_HERE);
    return rec_destroyed(&call, sbt_pthread_cond_destroy(cond));
}

SBT_EXPORT void cnd_destroy(cnd_t *cond) {
    struct rec_call c;
    if (rec_profiles()) {
        sbt_cnd_destroy(cond);
        rec_profile_destroyed(SBT_TRACE_COND, cond, REC_SITE_HERE, 0);
        return;
    }
    rec_enter(&c, SBT_TRACE_DESTROY, SBT_TRACE_COND, cond, REC_SITE_HERE);
    sbt_cnd_destroy(cond);
    rec_destroyed(&c, 0);
}

SBT_OLD_COND_VERSIONS;
