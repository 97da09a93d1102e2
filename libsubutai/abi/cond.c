/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_cond_*. A private condition is ours whatever mutex it is used with; a process-shared one is glibc's. For
 * a recursive or error-checking mutex of ours the owner is put aside during the wait and back afterwards, also when the
 * wait is cancelled: the engine's own clean-up, which takes the mutex again, runs before ours.
 */
#include <errno.h>
#include <string.h>

#include "abi/abi.h"

static inline bool theirs(const pthread_cond_t *c) {
    return sbt_marked(c, &sbt_layout.cond);
}

SBT_EXPORT int ABI(pthread_cond_init)(pthread_cond_t *c, const pthread_condattr_t *attr) {
    int shared = PTHREAD_PROCESS_PRIVATE;
    clockid_t clock = CLOCK_REALTIME;
    sbt_init();
    if (attr != NULL) {
        pthread_condattr_getpshared(attr, &shared);
        pthread_condattr_getclock(attr, &clock);
    }
    memset(c, 0, sizeof *c);
    if (sbt_all_theirs != 0 || shared == PTHREAD_PROCESS_SHARED)
        return sbt_real.pthread_cond_init(c, attr);
    sbt_cond_of(c)->clock = (uint32_t)clock;
    return 0;
}

SBT_EXPORT int ABI(pthread_cond_destroy)(pthread_cond_t *c) {
    return theirs(c) ? THEIRS(pthread_cond_destroy(c)) : sbt_engine.cond_destroy(c);
}

SBT_EXPORT int ABI(pthread_cond_signal)(pthread_cond_t *c) {
    return theirs(c) ? THEIRS(pthread_cond_signal(c)) : sbt_engine.cond_signal(c);
}

SBT_EXPORT int ABI(pthread_cond_broadcast)(pthread_cond_t *c) {
    return theirs(c) ? THEIRS(pthread_cond_broadcast(c)) : sbt_engine.cond_broadcast(c);
}

static void own_again(void *argument) {
    struct sbt_mutex *mx = argument;
    __atomic_store_n(&mx->owner, sbt_thread_tid(), __ATOMIC_RELAXED);
}

static int wait(pthread_cond_t *c, pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t kind = (uint32_t)mx->kind, type = kind & SBT_KIND_TYPE;
    if ((kind & SBT_KIND_THEIRS) != 0)
        return sbt_engine.cond_wait(c, m, SBT_RELEASE_THEIRS, deadline);
    if (type != SBT_KIND_RECURSIVE && type != SBT_KIND_ERRORCHECK)
        return sbt_engine.cond_wait(c, m, SBT_RELEASE_OURS, deadline);

    int r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    if (__atomic_load_n(&mx->owner, __ATOMIC_RELAXED) != sbt_thread_tid())
        return EPERM;
    if (mx->count > 0)
        return sbt_engine.cond_wait(c, m, SBT_RELEASE_NOTHING, deadline);
    __atomic_store_n(&mx->owner, 0, __ATOMIC_RELAXED);
    pthread_cleanup_push(own_again, mx);
    r = sbt_engine.cond_wait(c, m, SBT_RELEASE_OURS, deadline);
    pthread_cleanup_pop(1);
    return r;
}

/*
 * A process-shared condition with a private mutex: the condition is glibc's and would release the mutex in glibc's way,
 * but the mutex is ours. There is no way to be queued by the one and release the other in one step, so the wait is cut
 * into slices: a signal that falls between release and queueing is made up for by a wake-up for no reason, which POSIX
 * allows, within SLICE_NS. Rare enough (nobody shares a condition but not its mutex) that only correctness matters.
 */
#define SLICE_NS 5000000

struct mixed_wait {
    pthread_mutex_t stand_in; /* glibc's, on the stack: what glibc's condition releases and takes */
    pthread_mutex_t *m;
};

static void take_ours(void *argument) {
    struct mixed_wait *wait = argument;
    sbt_real.pthread_mutex_unlock(&wait->stand_in);
    ABI(pthread_mutex_lock)(wait->m);
}

static int wait_mixed(pthread_cond_t *c, pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    struct mixed_wait wait = {PTHREAD_MUTEX_INITIALIZER, m};
    struct timespec slice;
    int r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    sbt_real.pthread_mutex_lock(&wait.stand_in);
    r = ABI(pthread_mutex_unlock)(m);
    if (r != 0)
        return r;
    pthread_cleanup_push(take_ours, &wait);
    clock_gettime(CLOCK_MONOTONIC, &slice);
    slice.tv_nsec += SLICE_NS;
    slice.tv_sec += slice.tv_nsec / 1000000000;
    slice.tv_nsec %= 1000000000;
    sbt_real.pthread_cond_clockwait(c, &wait.stand_in, CLOCK_MONOTONIC, &slice);
    pthread_cleanup_pop(1);
    return deadline != NULL && sbt_deadline_passed(deadline) ? ETIMEDOUT : 0;
}

/* The condition is glibc's: is the mutex too? */
static inline bool all_theirs(const pthread_mutex_t *m) {
    return ((((const struct sbt_mutex *)m)->kind | sbt_all_theirs) & SBT_KIND_THEIRS) != 0;
}

/* glibc keeps the clock in the bit above the mark. */
static clockid_t their_clock(const pthread_cond_t *c) {
    typedef uint32_t SBT_OVERLAY word;
    const word *mark = (const word *)((const char *)c + sbt_layout.cond.offset);
    return (*mark & (sbt_layout.cond.mask << 1)) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

SBT_EXPORT int ABI(pthread_cond_wait)(pthread_cond_t *c, pthread_mutex_t *m) {
    if (SBT_LIKELY(!theirs(c)))
        return wait(c, m, NULL);
    return all_theirs(m) ? THEIRS(pthread_cond_wait(c, m)) : wait_mixed(c, m, NULL);
}

SBT_EXPORT int ABI(pthread_cond_timedwait)(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at) {
    if (theirs(c) && all_theirs(m))
        return THEIRS(pthread_cond_timedwait(c, m, at));
    bool mixed = theirs(c);
    struct sbt_deadline deadline = {mixed ? their_clock(c) : (clockid_t)sbt_cond_of(c)->clock, *at};
    return mixed ? wait_mixed(c, m, &deadline) : wait(c, m, &deadline);
}

SBT_EXPORT int ABI(pthread_cond_clockwait)(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                                           const struct timespec *at) {
    if (theirs(c) && all_theirs(m))
        return THEIRS(pthread_cond_clockwait(c, m, clock, at));
    struct sbt_deadline deadline = {clock, *at};
    return theirs(c) ? wait_mixed(c, m, &deadline) : wait(c, m, &deadline);
}
