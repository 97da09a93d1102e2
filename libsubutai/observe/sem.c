/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sem_*, observed, also in signal handlers. Posts are counted before they are made, waits after they have succeeded.
 * The n-th success beyond the initial value is said to consume the n-th post, which has been made by then.
 */
#include <errno.h>

#include "observe/observe.h"

/*
 * The number of waits that say the initial value. It is enough for the first wait of each thread: a block that is
 * written has those of its thread.
 */
enum { WAITS_WITH_VALUE = 1024 };

/* The number of the post that a successful wait has consumed. */
static void consume(struct rec_call *c) {
    struct rec_node *node = c->node;
    if (node == NULL)
        return;
    uint64_t n = REC_COUNT(node->acquired), posts = __atomic_load_n(&node->signals, __ATOMIC_RELAXED);
    /* Further waits have consumed posts of another process, or posts from before this trace: they get no number. */
    uint32_t initial = rec_initial_of(node);
    c->event.order = n > initial && n - initial <= posts ? n - initial : 0;
    if (n <= WAITS_WITH_VALUE) /* the init may be in a block that is never written */
        c->event.size = initial;
}

static void end_wait(struct rec_call *c, const sem_t *sem, int r) {
    if (r == 0)
        consume(c);
    else if (rec.profile && errno == ETIMEDOUT)
        c->event.other = rec_profile_holder((uintptr_t)sem);
    rec_leave(c, r == 0 ? 0 : errno);
}

/* A call that waits. `at`: NULL waits for ever. */
struct wait {
    sem_t *sem;
    clockid_t clock;
    const struct timespec *at;
};

/* A wait under way. */
struct waiting {
    struct rec_call c;
    const struct wait *w;
};

static void cancelled(void *waiting) {
    struct waiting *o = waiting;
    if (rec.profile)
        rec_profile_end_wait(o->w->sem);
    rec_leave(&o->c, ECANCELED);
}

/* In a profile: a wait that did not have to wait is over. */
static void count_taken(struct rec_call *c, const sem_t *sem, const void *site) {
    struct rec_key key = {(uintptr_t)sem, (uintptr_t)site, c->event.op, SBT_TRACE_SEM, false, 0};
    consume(c);
    if (rec_permit_taken(sem)) {
        rec_drop(c);
        rec_profile_acquired(&key);
    } else {
        rec_profile_leave(c, sem, site, false);
    }
}

/* In a profile, where a wait that need not wait is no event. The wait is a cancellation point all the same. */
static bool taken_at_once(struct rec_call *c, const struct wait *w, const void *site) {
    int saved = errno;
    bool taken = !rec_is_refusable(&(struct rec_limit){w->clock, w->at}) && sbt_sem_trywait(w->sem) == 0;
    errno = saved;
    if (taken) {
        count_taken(c, w->sem, site);
    } else {
        rec_profile_begin_wait(w->sem, c->thread != NULL ? c->begin_ns : 0);
    }
    return taken;
}

static int wait_observed(int (*call)(const struct wait *), const struct wait *w, const void *site) {
    struct waiting o = {.w = w};
    int r;
    if (rec_profiles())
        pthread_testcancel();
    rec_enter(&o.c, SBT_TRACE_SEM_WAIT, SBT_TRACE_SEM, w->sem, site);
    if (rec.profile && taken_at_once(&o.c, w, site))
        return 0;
    pthread_cleanup_push(cancelled, &o);
    r = call(w);
    pthread_cleanup_pop(0);
    if (rec.profile)
        rec_profile_end_wait(w->sem);
    if (rec.profile && r == 0 && rec_permit_taken(w->sem)) {
        struct rec_key key = {(uintptr_t)w->sem, (uintptr_t)site, SBT_TRACE_SEM_WAIT, SBT_TRACE_SEM, false, 0};
        rec_profile_hold(&key);
    }
    end_wait(&o.c, w->sem, r);
    return r;
}

static int wait(const struct wait *w) {
    return sbt_sem_wait(w->sem);
}

static int wait_timed(const struct wait *w) {
    return sbt_sem_timedwait(w->sem, w->at);
}

static int wait_clock(const struct wait *w) {
    return sbt_sem_clockwait(w->sem, w->clock, w->at);
}

SBT_EXPORT int sem_wait(sem_t *s) {
    return wait_observed(wait, &(struct wait){.sem = s}, REC_SITE_HERE);
}

SBT_EXPORT int sem_timedwait(sem_t *s, const struct timespec *at) {
    return wait_observed(wait_timed, &(struct wait){.sem = s, .at = at}, REC_SITE_HERE);
}

SBT_EXPORT int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *at) {
    return wait_observed(wait_clock, &(struct wait){s, clock, at}, REC_SITE_HERE);
}

SBT_EXPORT int sem_trywait(sem_t *s) {
    struct rec_call c;
    rec_enter(&c, SBT_TRACE_SEM_TRYWAIT, SBT_TRACE_SEM, s, REC_SITE_HERE);
    int r = sbt_sem_trywait(s);
    if (rec_profiles()) {
        if (r == 0)
            count_taken(&c, s, REC_SITE_HERE);
        else
            rec_profile_leave(&c, s, REC_SITE_HERE, true);
        return r;
    }
    end_wait(&c, s, r);
    return r;
}

SBT_EXPORT int sem_post(sem_t *s) {
    struct rec_call c;
    if (rec_profiles())
        rec_permit_given(s);
    bool entered = rec_enter(&c, SBT_TRACE_SEM_POST, SBT_TRACE_SEM, s, REC_SITE_HERE);
    bool is_event = !entered || !rec.profile || rec_ends_wait(&c, s);
    c.event.order = REC_COUNTED(c.node, signals);
    int r = sbt_sem_post(s);
    if (is_event)
        rec_leave(&c, r == 0 ? 0 : errno);
    else
        rec_profile_leave(&c, s, REC_SITE_HERE, r != 0);
    return r;
}

SBT_EXPORT int sem_getvalue(sem_t *s, int *value) {
    return sbt_sem_getvalue(s, value);
}

SBT_EXPORT int sem_init(sem_t *s, int shared, unsigned value) {
    int r = sbt_sem_init(s, shared, value);
    if (r == 0)
        rec_init(SBT_TRACE_SEM, s, value, REC_SITE_HERE);
    return r;
}

SBT_EXPORT int sem_destroy(sem_t *s) {
    struct rec_call c;
    if (rec_profiles())
        return rec_profile_destroyed(SBT_TRACE_SEM, s, REC_SITE_HERE, sbt_sem_destroy(s));
    rec_enter(&c, SBT_TRACE_DESTROY, SBT_TRACE_SEM, s, REC_SITE_HERE);
    int r = sbt_sem_destroy(s);
    rec_destroyed(&c, r == 0 ? 0 : errno);
    return r;
}
