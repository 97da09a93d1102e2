/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Robust, priority-inheritance and priority-protect mutexes. They are the C library's own objects under every engine,
 * so what is tested is that nothing in the way of a call breaks them. Conditions with such mutexes: cond_mutex.c.
 * Source: POSIX.1-2017 pthread_mutex_lock, _consistent, _getprioceiling, _setprioceiling.
 */
#include "topic.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

static pthread_mutex_t mutex;

static void init_mutex(int type, int robust, int protocol, int ceiling) {
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, type));
    OK(pthread_mutexattr_setrobust(&attr, robust));
    OK(pthread_mutexattr_setprotocol(&attr, protocol));
    if (ceiling > 0)
        OK(pthread_mutexattr_setprioceiling(&attr, ceiling));
    OK(pthread_mutex_init(&mutex, &attr));
    OK(pthread_mutexattr_destroy(&attr));
}

static void *do_lock(void *unused) {
    (void)unused;
    return (void *)(long)pthread_mutex_lock(&mutex);
}
static void *do_trylock(void *unused) {
    (void)unused;
    return (void *)(long)pthread_mutex_trylock(&mutex);
}
static void *do_unlock(void *unused) {
    (void)unused;
    return (void *)(long)pthread_mutex_unlock(&mutex);
}
static void *do_short_timedlock(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    return (void *)(long)pthread_mutex_timedlock(&mutex, &end);
}
static void *do_lock_unlock(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
static int elsewhere(void *(*operation)(void *)) {
    return (int)(long)thread_join(thread_start(operation, NULL));
}

/* --- robust ------------------------------------------------------------------------------------------------------- */
#define NO_ROBUST "the kernel (or its emulation) does not walk robust lists"

static void robust_mutex(int type) {
    init_mutex(type, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, 0);
}
/* Leaves the robust mutex with a dead owner. */
static void orphan_mutex(int type) {
    SKIP_IF(no_robust_list(), NO_ROBUST);
    robust_mutex(type);
    OK(elsewhere(do_lock));
}
TEST(mutex_robust__lock_and_unlock, "a robust mutex of each type locks, excludes and unlocks") {
    for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ERRORCHECK; type++) {
        robust_mutex(type);
        OK(pthread_mutex_lock(&mutex));
        CHECK_RC(elsewhere(do_trylock), EBUSY);
        OK(pthread_mutex_unlock(&mutex));
        elsewhere(do_lock_unlock);
        OK(pthread_mutex_destroy(&mutex));
    }
}
TEST(mutex_robust__errorcheck_relock_returns_EDEADLK, "relock of a robust errorcheck mutex: EDEADLK") {
    robust_mutex(PTHREAD_MUTEX_ERRORCHECK);
    OK(pthread_mutex_lock(&mutex));
    CHECK_RC(pthread_mutex_lock(&mutex), EDEADLK);
    OK(pthread_mutex_unlock(&mutex));
    CHECK_RC(pthread_mutex_unlock(&mutex), EPERM);
}
TEST(mutex_robust__recursive_counts, "a robust recursive mutex locked twice is free after the second unlock") {
    robust_mutex(PTHREAD_MUTEX_RECURSIVE);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    CHECK_RC(elsewhere(do_trylock), EBUSY);
    OK(pthread_mutex_unlock(&mutex));
    elsewhere(do_lock_unlock);
}
TEST(mutex_robust__normal_relock_deadlocks, "timed relock of a robust normal mutex: ETIMEDOUT") {
    robust_mutex(PTHREAD_MUTEX_NORMAL);
    OK(pthread_mutex_lock(&mutex));
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_RC(pthread_mutex_timedlock(&mutex, &end), ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
}
TEST(mutex_robust__unlock_by_other_returns_EPERM, "unlock of another's robust mutex, even of type normal: EPERM") {
    robust_mutex(PTHREAD_MUTEX_NORMAL);
    OK(pthread_mutex_lock(&mutex));
    CHECK_RC(elsewhere(do_unlock), EPERM);
    OK(pthread_mutex_unlock(&mutex));
}
TEST(mutex_robust__lock_after_owner_died_returns_EOWNERDEAD, "lock after the owner's end: EOWNERDEAD, and it is held") {
    orphan_mutex(PTHREAD_MUTEX_NORMAL);
    CHECK_RC(pthread_mutex_lock(&mutex), EOWNERDEAD);
    CHECK_RC(elsewhere(do_trylock), EBUSY);
}
TEST(mutex_robust__trylock_after_owner_died_returns_EOWNERDEAD, "trylock after the owner's end: EOWNERDEAD") {
    orphan_mutex(PTHREAD_MUTEX_NORMAL);
    CHECK_RC(pthread_mutex_trylock(&mutex), EOWNERDEAD);
}
TEST(mutex_robust__timedlock_after_owner_died_returns_EOWNERDEAD, "timedlock after the owner's end: EOWNERDEAD") {
    orphan_mutex(PTHREAD_MUTEX_ERRORCHECK);
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    CHECK_RC(pthread_mutex_timedlock(&mutex, &end), EOWNERDEAD);
}
TEST(mutex_robust__clocklock_after_owner_died_returns_EOWNERDEAD, "clocklock after the owner's end: EOWNERDEAD") {
    orphan_mutex(PTHREAD_MUTEX_RECURSIVE);
    struct timespec end = time_in_ms(CLOCK_MONOTONIC, LONG_MS);
    CHECK_RC(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &end), EOWNERDEAD);
}
static void *lock_and_die_slowly(void *locked) {
    OK(pthread_mutex_lock(&mutex));
    atomic_store((atomic_int *)locked, 1);
    let_threads_block();
    let_threads_block();
    return NULL;
}
TEST(mutex_robust__waiter_is_told_of_the_owners_death, "a thread blocked in lock when the owner ends gets EOWNERDEAD") {
    SKIP_IF(no_robust_list(), NO_ROBUST);
    atomic_int locked = 0;
    robust_mutex(PTHREAD_MUTEX_NORMAL);
    pthread_t owner = thread_start(lock_and_die_slowly, &locked);
    await(&locked, 1);
    CHECK_RC(pthread_mutex_lock(&mutex), EOWNERDEAD);
    thread_join(owner);
}
TEST(mutex_consistent__makes_the_mutex_usable_again, "consistent after EOWNERDEAD: later locks return 0") {
    orphan_mutex(PTHREAD_MUTEX_NORMAL);
    CHECK_RC(pthread_mutex_lock(&mutex), EOWNERDEAD);
    OK(pthread_mutex_consistent(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    elsewhere(do_lock_unlock);
}
/* trylock comes last: glibc 2.36 leaves the lock word taken when it reports ENOTRECOVERABLE. */
TEST(mutex_robust__unlock_without_consistent_gives_ENOTRECOVERABLE, "lock, timedlock, trylock afterwards: "
                                                                    "ENOTRECOVERABLE; destroy: 0") {
    orphan_mutex(PTHREAD_MUTEX_NORMAL);
    CHECK_RC(pthread_mutex_lock(&mutex), EOWNERDEAD);
    OK(pthread_mutex_unlock(&mutex));
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    CHECK_RC(pthread_mutex_lock(&mutex), ENOTRECOVERABLE);
    CHECK_RC(pthread_mutex_timedlock(&mutex, &end), ENOTRECOVERABLE);
    CHECK_RC(pthread_mutex_trylock(&mutex), ENOTRECOVERABLE);
    OK(pthread_mutex_destroy(&mutex));
}
TEST(mutex_robust__dies_again_after_recovery, "5 owners die one after the other: EOWNERDEAD each time") {
    orphan_mutex(PTHREAD_MUTEX_NORMAL);
    for (int i = 0; i < 5; i++) {
        CHECK_RC(pthread_mutex_lock(&mutex), EOWNERDEAD);
        OK(pthread_mutex_consistent(&mutex));
        OK(pthread_mutex_unlock(&mutex));
        OK(elsewhere(do_lock));
    }
    CHECK_RC(pthread_mutex_trylock(&mutex), EOWNERDEAD);
}
TEST(mutex_consistent__not_robust_returns_EINVAL, "consistent on a free and a held mutex that is not robust: EINVAL") {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    CHECK_RC(pthread_mutex_consistent(&m), EINVAL);
    OK(pthread_mutex_lock(&m));
    CHECK_RC(pthread_mutex_consistent(&m), EINVAL);
}
TEST(mutex_consistent__not_inconsistent_returns_EINVAL, "consistent on a robust mutex with a live owner: EINVAL") {
    robust_mutex(PTHREAD_MUTEX_NORMAL);
    OK(pthread_mutex_lock(&mutex));
    CHECK_RC(pthread_mutex_consistent(&mutex), EINVAL);
    OK(pthread_mutex_unlock(&mutex));
}
TEST(mutex_robust__timedlock_times_out, "timedlock of a robust mutex that a living thread holds: ETIMEDOUT") {
    robust_mutex(PTHREAD_MUTEX_NORMAL);
    OK(pthread_mutex_lock(&mutex));
    CHECK_RC(elsewhere(do_short_timedlock), ETIMEDOUT);
}

struct shared_robust {
    pthread_mutex_t mutex;
    atomic_int locked;
};
static void lock_and_wait_for_death(void *argument) {
    struct shared_robust *s = argument;
    OK(pthread_mutex_lock(&s->mutex));
    atomic_store(&s->locked, 1);
    for (;;)
        pause();
}
TEST(mutex_robust__process_killed_returns_EOWNERDEAD, "SIGKILL of a process that holds a shared robust mutex") {
    SKIP_IF(no_robust_list(), NO_ROBUST);
    struct shared_robust *s = shared_memory(sizeof *s);
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    OK(pthread_mutex_init(&s->mutex, &attr));
    pid_t child = child_start(lock_and_wait_for_death, s);
    await(&s->locked, 1);
    CHECK_RC(pthread_mutex_trylock(&s->mutex), EBUSY);
    SYS(kill(child, SIGKILL));
    CHECK_RC(pthread_mutex_lock(&s->mutex), EOWNERDEAD);
    OK(pthread_mutex_consistent(&s->mutex));
    OK(pthread_mutex_unlock(&s->mutex));
}

/* --- priority inheritance ----------------------------------------------------------------------------------------- */
#define NO_PI "the kernel (or its emulation) has no priority-inheritance futexes"

static void inherit_mutex(int type) {
    SKIP_IF(no_priority_inherit(), NO_PI);
    init_mutex(type, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, 0);
}
TEST(mutex_inherit__lock_and_unlock, "a PI mutex locks, excludes, unlocks and is destroyed") {
    inherit_mutex(PTHREAD_MUTEX_NORMAL);
    OK(pthread_mutex_lock(&mutex));
    CHECK_RC(elsewhere(do_trylock), EBUSY);
    pthread_t waiter = thread_start(do_lock_unlock, NULL);
    let_threads_block();
    OK(pthread_mutex_unlock(&mutex));
    thread_join(waiter);
    OK(pthread_mutex_destroy(&mutex));
}
TEST(mutex_inherit__types, "PI recursive counts, PI errorcheck relock EDEADLK and foreign unlock EPERM") {
    inherit_mutex(PTHREAD_MUTEX_RECURSIVE);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    CHECK_RC(pthread_mutex_unlock(&mutex), EPERM);
    inherit_mutex(PTHREAD_MUTEX_ERRORCHECK);
    OK(pthread_mutex_lock(&mutex));
    CHECK_RC(pthread_mutex_lock(&mutex), EDEADLK);
    CHECK_RC(elsewhere(do_unlock), EPERM);
    OK(pthread_mutex_unlock(&mutex));
}
TEST(mutex_inherit__timedlock_times_out, "timedlock of a held PI mutex: ETIMEDOUT, and 0 once it is free") {
    inherit_mutex(PTHREAD_MUTEX_NORMAL);
    OK(pthread_mutex_lock(&mutex));
    CHECK_RC(elsewhere(do_short_timedlock), ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
    OK(elsewhere(do_short_timedlock));
}

/* --- priority protection ------------------------------------------------------------------------------------------ */
#define NO_FIFO "the process may not use SCHED_FIFO, which priority protection needs"

/* A ceiling of `priority` raises the owner to it, which the kernel only does for a thread of a real-time policy. */
static void protect_mutex(int ceiling) {
    SKIP_IF(no_realtime(), NO_FIFO);
    struct sched_param fifo = {.sched_priority = 2};
    OK(pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo));
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_PROTECT, ceiling);
}
TEST(mutex_protect__raises_the_owner_to_the_ceiling, "owner of priority 2 runs at ceiling 5 inside and at 2 after") {
    struct sched_param now;
    protect_mutex(5);
    OK(pthread_mutex_lock(&mutex));
    SYS(sched_getparam(0, &now));
    CHECK_INT(now.sched_priority, 5);
    OK(pthread_mutex_unlock(&mutex));
    SYS(sched_getparam(0, &now));
    CHECK_INT(now.sched_priority, 2);
}
TEST(mutex_protect__priority_above_ceiling_returns_EINVAL, "lock and trylock at priority 2 under ceiling 1: EINVAL") {
    protect_mutex(1);
    CHECK_RC(pthread_mutex_lock(&mutex), EINVAL);
    CHECK_RC(pthread_mutex_trylock(&mutex), EINVAL);
}
TEST(mutex_getprioceiling__protect_mutex, "getprioceiling of a PP mutex gives the attribute's ceiling") {
    int ceiling = 0;
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_PROTECT, 7);
    OK(pthread_mutex_getprioceiling(&mutex, &ceiling));
    CHECK_INT(ceiling, 7);
}
TEST(mutex_setprioceiling__protect_mutex, "setprioceiling gives the old ceiling and sets the new one") {
    int old = 0, now = 0;
    protect_mutex(7);
    OK(pthread_mutex_setprioceiling(&mutex, 9, &old));
    CHECK_INT(old, 7);
    OK(pthread_mutex_getprioceiling(&mutex, &now));
    CHECK_INT(now, 9);
    OK(pthread_mutex_trylock(&mutex));
}
TEST(mutex_setprioceiling__out_of_range_returns_EINVAL, "ceilings outside SCHED_FIFO's range: EINVAL") {
    int old;
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_PROTECT, 7);
    CHECK_RC(pthread_mutex_setprioceiling(&mutex, sched_get_priority_max(SCHED_FIFO) + 1, &old), EINVAL);
    CHECK_RC(pthread_mutex_setprioceiling(&mutex, -1, &old), EINVAL);
}
TEST(mutex_prioceiling__other_protocols_return_EINVAL, "get- and setprioceiling of a mutex without ceiling: EINVAL") {
    int value;
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    CHECK_RC(pthread_mutex_getprioceiling(&m, &value), EINVAL);
    CHECK_RC(pthread_mutex_setprioceiling(&m, 5, &value), EINVAL);
    OK(pthread_mutex_lock(&m));
    CHECK_RC(pthread_mutex_getprioceiling(&m, &value), EINVAL);
    CHECK_RC(pthread_mutex_setprioceiling(&m, 5, &value), EINVAL);
    OK(pthread_mutex_unlock(&m));
}
