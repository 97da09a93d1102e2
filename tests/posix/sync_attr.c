/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attribute objects of mutexes, condition variables, barriers and rwlocks: defaults, legal values, refusals.
 * Source: POSIX.1-2017 pthread_mutexattr_*, pthread_condattr_*, pthread_barrierattr_*, pthread_rwlockattr_*; kinds and
 * other _np values from glibc 2.36.
 */
#include "topic.h"

#include <sched.h>

/* `set` accepts each of `legal` and `get` gives it back; each of `illegal` is EINVAL and changes nothing. */
#define CHECK_ATTRIBUTE(attr, get, set, legal, illegal)                                                                \
    do {                                                                                                               \
        int value = -1;                                                                                                \
        for (size_t i = 0; i < sizeof(legal) / sizeof *(legal); i++) {                                                 \
            OK(set(&attr, (legal)[i]));                                                                                \
            OK(get(&attr, &value));                                                                                    \
            CHECK_INT(value, (legal)[i]);                                                                              \
        }                                                                                                              \
        int last = value;                                                                                              \
        for (size_t i = 0; i < sizeof(illegal) / sizeof *(illegal); i++) {                                             \
            CHECK_RC(set(&attr, (illegal)[i]), EINVAL);                                                                \
            OK(get(&attr, &value));                                                                                    \
            CHECK_INT(value, last);                                                                                    \
        }                                                                                                              \
    } while (0)
#define CHECK_DEFAULT(attr, get, wanted)                                                                               \
    do {                                                                                                               \
        int value = -1;                                                                                                \
        OK(get(&attr, &value));                                                                                        \
        CHECK_INT(value, wanted);                                                                                      \
    } while (0)

static const int sharings[] = {PTHREAD_PROCESS_SHARED, PTHREAD_PROCESS_PRIVATE}, bad_sharings[] = {-1, 2, 99};

static pthread_mutexattr_t mutexattr(void) {
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    return attr;
}
TEST(mutexattr_init__defaults, "default type, private, stalled, no protocol") {
    pthread_mutexattr_t attr = mutexattr();
    CHECK_DEFAULT(attr, pthread_mutexattr_gettype, PTHREAD_MUTEX_DEFAULT);
    CHECK_DEFAULT(attr, pthread_mutexattr_getpshared, PTHREAD_PROCESS_PRIVATE);
    CHECK_DEFAULT(attr, pthread_mutexattr_getrobust, PTHREAD_MUTEX_STALLED);
    CHECK_DEFAULT(attr, pthread_mutexattr_getprotocol, PTHREAD_PRIO_NONE);
}
TEST(mutexattr_init__prioceiling_is_a_fifo_priority, "the default ceiling lies within SCHED_FIFO's priorities") {
    pthread_mutexattr_t attr = mutexattr();
    int ceiling = -1;
    OK(pthread_mutexattr_getprioceiling(&attr, &ceiling));
    CHECK(ceiling >= sched_get_priority_min(SCHED_FIFO) && ceiling <= sched_get_priority_max(SCHED_FIFO));
}
TEST(mutexattr_settype__values, "4 types set and read back, unknown ones EINVAL") {
    static const int legal[] = {PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP,
                                PTHREAD_MUTEX_NORMAL},
                     illegal[] = {-1, 4, 99};
    pthread_mutexattr_t attr = mutexattr();
    CHECK_ATTRIBUTE(attr, pthread_mutexattr_gettype, pthread_mutexattr_settype, legal, illegal);
}
TEST(mutexattr_setpshared__values, "shared and private set and read back, others EINVAL") {
    pthread_mutexattr_t attr = mutexattr();
    CHECK_ATTRIBUTE(attr, pthread_mutexattr_getpshared, pthread_mutexattr_setpshared, sharings, bad_sharings);
}
TEST(mutexattr_setrobust__values, "robust and stalled set and read back, others EINVAL") {
    static const int legal[] = {PTHREAD_MUTEX_ROBUST, PTHREAD_MUTEX_STALLED}, illegal[] = {-1, 2, 99};
    pthread_mutexattr_t attr = mutexattr();
    CHECK_ATTRIBUTE(attr, pthread_mutexattr_getrobust, pthread_mutexattr_setrobust, legal, illegal);
}
TEST(mutexattr_setprotocol__values, "none, inherit and protect set and read back, others EINVAL") {
    static const int legal[] = {PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT, PTHREAD_PRIO_NONE}, illegal[] = {-1, 3, 99};
    pthread_mutexattr_t attr = mutexattr();
    CHECK_ATTRIBUTE(attr, pthread_mutexattr_getprotocol, pthread_mutexattr_setprotocol, legal, illegal);
}
TEST(mutexattr_setprioceiling__values, "ceilings within SCHED_FIFO's range set and read back, outside EINVAL") {
    int low = sched_get_priority_min(SCHED_FIFO), high = sched_get_priority_max(SCHED_FIFO);
    const int legal[] = {low, high}, illegal[] = {low - 1, high + 1, -1};
    pthread_mutexattr_t attr = mutexattr();
    CHECK_ATTRIBUTE(attr, pthread_mutexattr_getprioceiling, pthread_mutexattr_setprioceiling, legal, illegal);
}
TEST(mutexattr__attributes_are_independent, "type, sharing, robustness and protocol do not overwrite each other") {
    pthread_mutexattr_t attr = mutexattr();
    OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
    OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
    CHECK_DEFAULT(attr, pthread_mutexattr_gettype, PTHREAD_MUTEX_ERRORCHECK);
    CHECK_DEFAULT(attr, pthread_mutexattr_getpshared, PTHREAD_PROCESS_SHARED);
    CHECK_DEFAULT(attr, pthread_mutexattr_getrobust, PTHREAD_MUTEX_ROBUST);
    CHECK_DEFAULT(attr, pthread_mutexattr_getprotocol, PTHREAD_PRIO_INHERIT);
}
TEST(mutexattr_destroy__then_init_again, "destroy returns 0 and the object may be initialised again") {
    pthread_mutexattr_t attr = mutexattr();
    OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    OK(pthread_mutexattr_destroy(&attr));
    OK(pthread_mutexattr_init(&attr));
    CHECK_DEFAULT(attr, pthread_mutexattr_gettype, PTHREAD_MUTEX_DEFAULT);
    OK(pthread_mutexattr_destroy(&attr));
}

static pthread_condattr_t condattr(void) {
    pthread_condattr_t attr;
    OK(pthread_condattr_init(&attr));
    return attr;
}
TEST(condattr_init__defaults, "private, CLOCK_REALTIME") {
    pthread_condattr_t attr = condattr();
    CHECK_DEFAULT(attr, pthread_condattr_getpshared, PTHREAD_PROCESS_PRIVATE);
    CHECK_DEFAULT(attr, pthread_condattr_getclock, CLOCK_REALTIME);
}
TEST(condattr_setclock__values,
     "REALTIME and MONOTONIC set and read back; CPU-time, coarse and unknown clocks EINVAL") {
    static const int legal[] = {CLOCK_MONOTONIC, CLOCK_REALTIME}, illegal[] = {CLOCK_PROCESS_CPUTIME_ID,
                                                                               CLOCK_THREAD_CPUTIME_ID,
                                                                               CLOCK_BOOTTIME,
                                                                               CLOCK_MONOTONIC_COARSE,
                                                                               12345,
                                                                               -1};
    pthread_condattr_t attr = condattr();
    CHECK_ATTRIBUTE(attr, pthread_condattr_getclock, pthread_condattr_setclock, legal, illegal);
}
TEST(condattr_setpshared__values, "shared and private set and read back, others EINVAL") {
    pthread_condattr_t attr = condattr();
    CHECK_ATTRIBUTE(attr, pthread_condattr_getpshared, pthread_condattr_setpshared, sharings, bad_sharings);
}
TEST(condattr__attributes_are_independent, "clock and sharing do not overwrite each other") {
    pthread_condattr_t attr = condattr();
    OK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    OK(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    CHECK_DEFAULT(attr, pthread_condattr_getclock, CLOCK_MONOTONIC);
    CHECK_DEFAULT(attr, pthread_condattr_getpshared, PTHREAD_PROCESS_SHARED);
}
TEST(condattr_destroy__then_init_again, "destroy returns 0 and the object may be initialised again") {
    pthread_condattr_t attr = condattr();
    OK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    OK(pthread_condattr_destroy(&attr));
    OK(pthread_condattr_init(&attr));
    CHECK_DEFAULT(attr, pthread_condattr_getclock, CLOCK_REALTIME);
}

TEST(barrierattr_init__defaults, "private") {
    pthread_barrierattr_t attr;
    OK(pthread_barrierattr_init(&attr));
    CHECK_DEFAULT(attr, pthread_barrierattr_getpshared, PTHREAD_PROCESS_PRIVATE);
    OK(pthread_barrierattr_destroy(&attr));
}
TEST(barrierattr_setpshared__values, "shared and private set and read back, others EINVAL") {
    pthread_barrierattr_t attr;
    OK(pthread_barrierattr_init(&attr));
    CHECK_ATTRIBUTE(attr, pthread_barrierattr_getpshared, pthread_barrierattr_setpshared, sharings, bad_sharings);
}

static pthread_rwlockattr_t rwlockattr(void) {
    pthread_rwlockattr_t attr;
    OK(pthread_rwlockattr_init(&attr));
    return attr;
}
TEST(rwlockattr_init__defaults, "private, readers preferred") {
    pthread_rwlockattr_t attr = rwlockattr();
    CHECK_DEFAULT(attr, pthread_rwlockattr_getpshared, PTHREAD_PROCESS_PRIVATE);
    CHECK_DEFAULT(attr, pthread_rwlockattr_getkind_np, PTHREAD_RWLOCK_PREFER_READER_NP);
}
TEST(rwlockattr_setpshared__values, "shared and private set and read back, others EINVAL") {
    pthread_rwlockattr_t attr = rwlockattr();
    CHECK_ATTRIBUTE(attr, pthread_rwlockattr_getpshared, pthread_rwlockattr_setpshared, sharings, bad_sharings);
}
TEST(rwlockattr_setkind_np__values, "3 kinds set and read back, others EINVAL") {
    static const int legal[] = {PTHREAD_RWLOCK_PREFER_WRITER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP,
                                PTHREAD_RWLOCK_PREFER_READER_NP},
                     illegal[] = {-1, 3, 99};
    pthread_rwlockattr_t attr = rwlockattr();
    CHECK_ATTRIBUTE(attr, pthread_rwlockattr_getkind_np, pthread_rwlockattr_setkind_np, legal, illegal);
}
TEST(rwlockattr_destroy__then_init_again, "destroy returns 0 and the object may be initialised again") {
    pthread_rwlockattr_t attr = rwlockattr();
    OK(pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NP));
    OK(pthread_rwlockattr_destroy(&attr));
    OK(pthread_rwlockattr_init(&attr));
    CHECK_DEFAULT(attr, pthread_rwlockattr_getkind_np, PTHREAD_RWLOCK_PREFER_READER_NP);
}
