/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pthread_cond_*. A private condition is served, whatever mutex it is used with. A process-shared one is glibc's.
 *
 * A recursive or error-checking mutex of ours has an owner in the object. It is cleared during the wait and set again
 * afterwards, also when the wait is cancelled: the engine's own clean-up, which takes the mutex again, runs before
 * ours.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>

#include "abi/abi.h"
#include "core/probes.h"
#include "os/program_time.h"

static inline bool theirs(const pthread_cond_t *c) {
    return sbt_marked(c, &sbt_layout.cond);
}

SBT_EXPORT int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attr) {
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
    SBT_PROBE_THREADS2(cond_init, c, attr);
    return 0;
}

SBT_EXPORT int pthread_cond_destroy(pthread_cond_t *c) {
    if (theirs(c))
        return THEIRS(pthread_cond_destroy(c));
    SBT_PROBE_THREADS1(cond_destroy, c);
    return sbt_engine.cond_destroy(c);
}

SBT_EXPORT int pthread_cond_signal(pthread_cond_t *c) {
    sbt_progress_surely();
    if (theirs(c))
        return THEIRS(pthread_cond_signal(c));
    SBT_PROBE_THREADS1(cond_signal, c);
    return sbt_engine.cond_signal(c);
}

SBT_EXPORT int pthread_cond_broadcast(pthread_cond_t *c) {
    sbt_progress_surely();
    if (theirs(c))
        return THEIRS(pthread_cond_broadcast(c));
    SBT_PROBE_THREADS1(cond_broadcast, c);
    return sbt_engine.cond_broadcast(c);
}

/* A wait has ended, perhaps by a cancellation. The caller owns the mutex again. */
static void ends(void *m) {
    sbt_mutex_count_wait(sbt_mutex_of(m), -1);
}

static void ends_owned(void *m) {
    __atomic_store_n(&sbt_mutex_of(m)->owner, sbt_thread_owner(), __ATOMIC_RELAXED);
    ends(m);
}

static int wait_plain(pthread_cond_t *c, pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    int r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    SBT_PROBE_THREADS1(mutex_release, m);
    sbt_mutex_count_wait(sbt_mutex_of(m), 1);
    pthread_cleanup_push(ends, m);
    r = sbt_engine.cond_wait(c, m, SBT_RELEASE_OURS, deadline);
    pthread_cleanup_pop(1);
    return r;
}

static bool knows_owner(uint32_t kind) {
    uint32_t type = kind & SBT_KIND_TYPE;
    return type == SBT_KIND_RECURSIVE || type == SBT_KIND_ERRORCHECK;
}

static bool is_owner(const pthread_mutex_t *m) {
    return __atomic_load_n(&((const struct sbt_mutex *)m)->owner, __ATOMIC_RELAXED) == sbt_thread_owner();
}

static int wait_owned(pthread_cond_t *c, pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    int r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    if (!is_owner(m))
        return EPERM;
    if (mx->count > 0)
        return sbt_engine.cond_wait(c, m, SBT_RELEASE_NOTHING, deadline);
    __atomic_store_n(&mx->owner, 0, __ATOMIC_RELAXED);
    SBT_PROBE_THREADS1(mutex_release, m);
    sbt_mutex_count_wait(mx, 1);
    pthread_cleanup_push(ends_owned, m);
    r = sbt_engine.cond_wait(c, m, SBT_RELEASE_OURS, deadline);
    pthread_cleanup_pop(1);
    return r;
}

/*
 * A mutex of glibc's counts its waits in glibc's way: glibc's unlock takes 1 off __nusers, so a wait adds 1 before. Two
 * kinds of mutexes are not counted:
 *  - robust ones: glibc destroys them in use, and after a wait the caller may not own the mutex;
 *  - those that the caller does not own: either the unlock refuses the caller, or the program is in error.
 */
static bool counts_theirs(const pthread_mutex_t *m, uint32_t kind) {
    return (kind & SBT_KIND_ROBUST) == 0 && m->__data.__nusers != 0 &&
           ((uint32_t)m->__data.__owner & FUTEX_TID_MASK) == sbt_thread_owner();
}

static void ends_theirs(void *m) {
    ((pthread_mutex_t *)m)->__data.__nusers--;
}

static int wait_theirs(pthread_cond_t *c, pthread_mutex_t *m, uint32_t kind, const struct sbt_deadline *deadline) {
    int r;
    if (!counts_theirs(m, kind))
        return sbt_engine.cond_wait(c, m, SBT_RELEASE_THEIRS, deadline);
    m->__data.__nusers++;
    pthread_cleanup_push(ends_theirs, m);
    r = sbt_engine.cond_wait(c, m, SBT_RELEASE_THEIRS, deadline);
    pthread_cleanup_pop(1);
    return r;
}

static int wait(pthread_cond_t *c, pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    uint32_t kind = sbt_mutex_kind(m);
    if ((kind & SBT_KIND_THEIRS) != 0)
        return wait_theirs(c, m, kind, deadline);
    return knows_owner(kind) ? wait_owned(c, m, deadline) : wait_plain(c, m, deadline);
}

/*
 * A process-shared condition with a private mutex. The condition is glibc's and would release the mutex in glibc's way,
 * but the mutex is ours. Queueing at the condition and releasing the mutex cannot be one step here, so a signal may
 * fall between the two. Therefore the wait is cut into slices: within SLICE_NS a spurious wake-up makes up for the lost
 * signal, which POSIX allows. Hardly any program shares a condition and not its mutex, so only correctness matters.
 */
#define SLICE_NS 5000000

struct mixed_wait {
    pthread_mutex_t stand_in; /* a mutex of glibc's, on the stack, for glibc's condition to release and take */
    pthread_mutex_t *m;
};

static void take_ours(void *argument) {
    struct mixed_wait *wait = argument;
    sbt_real.pthread_mutex_unlock(&wait->stand_in);
    pthread_mutex_lock(wait->m);
    ends(wait->m);
}

static int wait_mixed(pthread_cond_t *c, pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    struct mixed_wait wait = {PTHREAD_MUTEX_INITIALIZER, m};
    struct timespec slice;
    int r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    if (knows_owner(sbt_mutex_kind(m)) && !is_owner(m))
        return EPERM;
    sbt_real.pthread_mutex_lock(&wait.stand_in);
    sbt_mutex_count_wait(sbt_mutex_of(m), 1);
    pthread_mutex_unlock(m);
    pthread_cleanup_push(take_ours, &wait);
    sbt_clock_read(CLOCK_MONOTONIC, &slice);
    slice.tv_nsec += SLICE_NS;
    slice.tv_sec += slice.tv_nsec / 1000000000;
    slice.tv_nsec %= 1000000000;
    THEIRS_WAITS(pthread_cond_clockwait(c, &wait.stand_in, CLOCK_MONOTONIC, &slice));
    pthread_cleanup_pop(1);
    return deadline != NULL && sbt_deadline_passed(deadline) ? ETIMEDOUT : 0;
}

/* The condition is glibc's: is the mutex too? */
static inline bool all_theirs(const pthread_mutex_t *m) {
    return ((sbt_mutex_kind(m) | sbt_all_theirs) & SBT_KIND_THEIRS) != 0;
}

/* glibc keeps the clock in the bit above the mark. */
static clockid_t their_clock(const pthread_cond_t *c) {
    typedef uint32_t SBT_OVERLAY word;
    const word *mark = (const word *)((const char *)c + sbt_layout.cond.offset);
    return (*mark & (sbt_layout.cond.mask << 1)) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

SBT_EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) {
    if (SBT_LIKELY(!theirs(c))) {
        SBT_PROBE_THREADS2(cond_wait, c, m);
        return wait(c, m, NULL);
    }
    return all_theirs(m) ? THEIRS_WAITS(pthread_cond_wait(c, m)) : wait_mixed(c, m, NULL);
}

SBT_EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at) {
    if (theirs(c) && all_theirs(m))
        return THEIRS_WAITS(pthread_cond_timedwait(c, m, at));
    bool mixed = theirs(c);
    struct sbt_deadline deadline = {mixed ? their_clock(c) : (clockid_t)sbt_cond_of(c)->clock, *at};
    if (SBT_UNLIKELY(sbt_program_time.cond_timedwait))
        deadline = sbt_program_time_deadline(deadline.clock, at);
    SBT_PROBE_THREADS3(cond_timedwait, c, m, at);
    return mixed ? wait_mixed(c, m, &deadline) : wait(c, m, &deadline);
}

SBT_EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                                      const struct timespec *at) {
    if (theirs(c) && all_theirs(m))
        return THEIRS_WAITS(pthread_cond_clockwait(c, m, clock, at));
    struct sbt_deadline deadline = {clock, *at};
    SBT_PROBE_THREADS3(cond_timedwait, c, m, at);
    return theirs(c) ? wait_mixed(c, m, &deadline) : wait(c, m, &deadline);
}

#if !SBT_RENAMED
SBT_OLD_COND_VERSIONS;
#endif
