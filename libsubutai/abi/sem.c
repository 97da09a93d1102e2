/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sem_*. Unnamed private semaphores are served. Process-shared and named semaphores carry glibc's mark and are glibc's.
 * Errors go to errno.
 */
#include <errno.h>
#include <limits.h>

#include "abi/abi.h"
#include "core/probes.h"
#include "os/program_time.h"

static inline bool theirs(const sem_t *s) {
    return sbt_marked(s, &sbt_layout.sem);
}

static int result(int r) {
    if (SBT_LIKELY(r == 0))
        return 0;
    errno = r;
    return -1;
}

SBT_EXPORT int sem_init(sem_t *s, int shared, unsigned value) {
    sbt_init();
    if (sbt_all_theirs != 0 || shared != 0)
        return sbt_real.sem_init(s, shared, value);
    return result(value > SEM_VALUE_MAX ? EINVAL : sbt_engine.sem_init(s, value));
}

SBT_EXPORT int sem_destroy(sem_t *s) {
    return theirs(s) ? THEIRS(sem_destroy(s)) : result(sbt_engine.sem_destroy(s));
}

/* A cancellation point, even if it need not wait. */
static int wait(sem_t *s, const struct sbt_deadline *deadline) {
    int r = sbt_deadline_check(deadline);
    if (r != 0)
        return result(r);
    pthread_testcancel();
    SBT_PROBE1(sem_entry, s);
    r = sbt_engine.sem_wait(s, deadline);
    SBT_PROBE2(sem_exit, s, r);
    return result(r);
}

/* Apart: what leaves an order and comes back would cost the other calls registers. */
static SBT_NOINLINE int wait_theirs(sem_t *s) {
    return THEIRS_WAITS(sem_wait(s));
}

static SBT_NOINLINE int timedwait_theirs(sem_t *s, const struct timespec *at) {
    return THEIRS_WAITS(sem_timedwait(s, at));
}

static SBT_NOINLINE int clockwait_theirs(sem_t *s, clockid_t clock, const struct timespec *at) {
    return THEIRS_WAITS(sem_clockwait(s, clock, at));
}

SBT_EXPORT int sem_wait(sem_t *s) {
    return theirs(s) ? wait_theirs(s) : wait(s, NULL);
}

SBT_EXPORT int sem_timedwait(sem_t *s, const struct timespec *at) {
    if (theirs(s))
        return timedwait_theirs(s, at);
    struct sbt_deadline deadline = {CLOCK_REALTIME, *at};
    if (SBT_UNLIKELY(sbt_program_time.sem_timedwait))
        deadline = sbt_program_time_deadline(deadline.clock, at);
    return wait(s, &deadline);
}

SBT_EXPORT int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *at) {
    if (theirs(s))
        return clockwait_theirs(s, clock, at);
    struct sbt_deadline deadline = {clock, *at};
    return wait(s, &deadline);
}

SBT_EXPORT int sem_trywait(sem_t *s) {
    return theirs(s) ? THEIRS(sem_trywait(s)) : result(sbt_engine.sem_trywait(s));
}

SBT_EXPORT int sem_post(sem_t *s) {
    sbt_progress_surely();
    if (theirs(s))
        return THEIRS(sem_post(s));
    SBT_PROBE1(sem_post, s);
    return result(sbt_engine.sem_post(s));
}

SBT_EXPORT int sem_getvalue(sem_t *s, int *value) {
    return theirs(s) ? THEIRS(sem_getvalue(s, value)) : result(sbt_engine.sem_getvalue(s, value));
}
