/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Condition variables with mutexes of every type, robust, priority and shared ones included: the mutex may belong to
 * the C library while the private condition does not. Source: POSIX.1-2017 pthread_cond_wait (EPERM, EOWNERDEAD,
 * ENOTRECOVERABLE).
 */
#include "topic.h"

#include <sched.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int waiting, tickets, done;
} c = {.cond = PTHREAD_COND_INITIALIZER};

static void init_mutex(int type, int robust, int protocol, int shared) {
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, type));
    OK(pthread_mutexattr_setrobust(&attr, robust));
    OK(pthread_mutexattr_setprotocol(&attr, protocol));
    OK(pthread_mutexattr_setpshared(&attr, shared));
    OK(pthread_mutex_init(&c.mutex, &attr));
    OK(pthread_mutexattr_destroy(&attr));
}
static void init_type(int type) {
    init_mutex(type, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
}

static void *do_wait(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&c.mutex));
    c.waiting++;
    while (c.tickets == 0)
        OK(pthread_cond_wait(&c.cond, &c.mutex));
    c.tickets--;
    c.waiting--;
    c.done++;
    OK(pthread_mutex_unlock(&c.mutex));
    return NULL;
}
static void *do_timedwait(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    OK(pthread_mutex_lock(&c.mutex));
    c.waiting++;
    while (c.tickets == 0)
        OK(pthread_cond_timedwait(&c.cond, &c.mutex, &end));
    c.tickets--;
    c.waiting--;
    c.done++;
    OK(pthread_mutex_unlock(&c.mutex));
    return NULL;
}
static void await_waiting(int wanted) {
    for (int now = -1; now != wanted; sleep_ms(1)) {
        OK(pthread_mutex_lock(&c.mutex));
        now = c.waiting;
        OK(pthread_mutex_unlock(&c.mutex));
    }
}
/* 6 waiters are woken by 2 signals and a broadcast; a time-out afterwards keeps the mutex. */
static void wait_signal_broadcast(void) {
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        threads[i] = thread_start(i % 2 == 0 ? do_wait : do_timedwait, NULL);
    await_waiting(6);
    for (int i = 0; i < 2; i++) {
        OK(pthread_mutex_lock(&c.mutex));
        c.tickets++;
        OK(pthread_cond_signal(&c.cond));
        OK(pthread_mutex_unlock(&c.mutex));
    }
    await_waiting(4);
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = 4;
    OK(pthread_cond_broadcast(&c.cond));
    OK(pthread_mutex_unlock(&c.mutex));
    for (int i = 0; i < 6; i++)
        thread_join(threads[i]);
    CHECK_INT(c.done, 6);
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    OK(pthread_mutex_lock(&c.mutex));
    CHECK_RC(pthread_cond_timedwait(&c.cond, &c.mutex, &end), ETIMEDOUT);
    OK(pthread_mutex_unlock(&c.mutex));
    OK(pthread_mutex_destroy(&c.mutex));
}
TEST(cond_wait__recursive_mutex, "6 waiters, 2 signals and a broadcast, time-out: recursive mutex held once") {
    init_type(PTHREAD_MUTEX_RECURSIVE);
    wait_signal_broadcast();
}
TEST(cond_wait__errorcheck_mutex, "6 waiters, 2 signals and a broadcast, time-out: errorcheck mutex") {
    init_type(PTHREAD_MUTEX_ERRORCHECK);
    wait_signal_broadcast();
}
TEST(cond_wait__adaptive_mutex, "6 waiters, 2 signals and a broadcast, time-out: adaptive mutex") {
    init_type(PTHREAD_MUTEX_ADAPTIVE_NP);
    wait_signal_broadcast();
}
TEST(cond_wait__robust_mutex, "6 waiters, 2 signals and a broadcast, time-out: private condition, robust mutex") {
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
    wait_signal_broadcast();
}
TEST(cond_wait__shared_mutex, "6 waiters, 2 signals and a broadcast, time-out: private condition, shared mutex") {
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED);
    wait_signal_broadcast();
}
TEST(cond_wait__inherit_mutex, "6 waiters, 2 signals and a broadcast, time-out: private condition, PI mutex") {
    SKIP_IF(no_priority_inherit(), "the kernel (or its emulation) has no priority-inheritance futexes");
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, PTHREAD_PROCESS_PRIVATE);
    wait_signal_broadcast();
}
TEST(cond_wait__protect_mutex, "6 waiters, 2 signals and a broadcast, time-out: private condition, PP mutex") {
    SKIP_IF(no_realtime(), "the process may not use SCHED_FIFO, which priority protection needs");
    struct sched_param fifo = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    OK(pthread_setschedparam(pthread_self(), SCHED_FIFO, &fifo));
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_PROTECT, PTHREAD_PROCESS_PRIVATE);
    wait_signal_broadcast();
}

/* --- errors ------------------------------------------------------------------------------------------------------- */
static void *wait_unowned(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    CHECK_RC(pthread_cond_wait(&c.cond, &c.mutex), EPERM);
    CHECK_RC(pthread_cond_timedwait(&c.cond, &c.mutex, &end), EPERM);
    CHECK_RC(pthread_cond_clockwait(&c.cond, &c.mutex, CLOCK_REALTIME, &end), EPERM);
    return NULL;
}
TEST(cond_wait__errorcheck_not_owner_returns_EPERM, "wait, timedwait and clockwait with a free or foreign errorcheck "
                                                    "mutex: EPERM, and no thread is left waiting") {
    init_type(PTHREAD_MUTEX_ERRORCHECK);
    wait_unowned(NULL);
    OK(pthread_mutex_lock(&c.mutex));
    thread_join(thread_start(wait_unowned, NULL));
    OK(pthread_mutex_unlock(&c.mutex));
    wait_signal_broadcast();
}
TEST(cond_wait__recursive_not_owner_returns_EPERM, "wait, timedwait and clockwait with a free or foreign recursive "
                                                   "mutex: EPERM") {
    init_type(PTHREAD_MUTEX_RECURSIVE);
    wait_unowned(NULL);
    OK(pthread_mutex_lock(&c.mutex));
    thread_join(thread_start(wait_unowned, NULL));
    OK(pthread_mutex_unlock(&c.mutex));
}
TEST(cond_wait__robust_not_owner_returns_EPERM, "wait with a free robust mutex: EPERM") {
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
    wait_unowned(NULL);
}

/* --- recursive mutex held more than once -------------------------------------------------------------------------- */
static atomic_int tried;
static void *do_trylock(void *unused) {
    (void)unused;
    let_threads_block();
    int rc = pthread_mutex_trylock(&c.mutex);
    if (rc == 0)
        OK(pthread_mutex_unlock(&c.mutex));
    atomic_store(&tried, 1);
    return (void *)(long)rc;
}
/* POSIX leaves it open; glibc unlocks one level, so the mutex stays held during the wait. */
TEST(cond_timedwait__recursive_depth_2_stays_held,
     "a wait at depth 2 keeps the mutex from others and returns at depth 2") {
    init_type(PTHREAD_MUTEX_RECURSIVE);
    OK(pthread_mutex_lock(&c.mutex));
    OK(pthread_mutex_lock(&c.mutex));
    pthread_t prober = thread_start(do_trylock, NULL);
    do { /* one wait lasts long enough, unless the machine is busy */
        struct timespec end = time_in_ms(CLOCK_REALTIME, 5 * SHORT_MS);
        CHECK_RC(pthread_cond_timedwait(&c.cond, &c.mutex, &end), ETIMEDOUT);
    } while (atomic_load(&tried) == 0);
    CHECK_RC((int)(long)thread_join(prober), EBUSY);
    OK(pthread_mutex_unlock(&c.mutex));
    OK(pthread_mutex_unlock(&c.mutex));
    CHECK_RC(pthread_mutex_unlock(&c.mutex), EPERM);
}
static void *signal_without_mutex(void *unused) {
    (void)unused;
    for (;;) {
        let_threads_block();
        OK(pthread_cond_signal(&c.cond));
        pthread_testcancel();
    }
    return NULL;
}
TEST(cond_wait__recursive_depth_2_is_woken, "a wait at depth 2 ends by a signal sent without the mutex, at depth 2") {
    init_type(PTHREAD_MUTEX_RECURSIVE);
    OK(pthread_mutex_lock(&c.mutex));
    OK(pthread_mutex_lock(&c.mutex));
    pthread_t signaller = thread_start(signal_without_mutex, NULL);
    OK(pthread_cond_wait(&c.cond, &c.mutex));
    OK(pthread_cancel(signaller));
    thread_join_cancelled(signaller);
    OK(pthread_mutex_unlock(&c.mutex));
    OK(pthread_mutex_unlock(&c.mutex));
    CHECK_RC(pthread_mutex_unlock(&c.mutex), EPERM);
}

/* --- the owner of a robust mutex dies during the wait ------------------------------------------------------------- */
static void *signal_and_die(void *unused) {
    (void)unused;
    await_waiting(1);
    OK(pthread_mutex_lock(&c.mutex));
    OK(pthread_cond_signal(&c.cond));
    return NULL;
}
static int wait_beside_dying_owner(bool timed) {
    SKIP_IF(no_robust_list(), "the kernel (or its emulation) does not walk robust lists");
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    OK(pthread_mutex_lock(&c.mutex));
    c.waiting = 1;
    pthread_t dying = thread_start(signal_and_die, NULL);
    int rc = timed ? pthread_cond_timedwait(&c.cond, &c.mutex, &end) : pthread_cond_wait(&c.cond, &c.mutex);
    thread_join(dying);
    return rc;
}
TEST(cond_wait__robust_owner_died_returns_EOWNERDEAD, "the signaller dies with the mutex: wait returns EOWNERDEAD and "
                                                      "holds it; consistent makes it usable") {
    CHECK_RC(wait_beside_dying_owner(false), EOWNERDEAD);
    OK(pthread_mutex_consistent(&c.mutex));
    OK(pthread_mutex_unlock(&c.mutex));
    OK(pthread_mutex_lock(&c.mutex));
}
TEST(cond_timedwait__robust_owner_died_returns_EOWNERDEAD, "the signaller dies with the mutex: timedwait, EOWNERDEAD") {
    CHECK_RC(wait_beside_dying_owner(true), EOWNERDEAD);
    OK(pthread_mutex_consistent(&c.mutex));
    OK(pthread_mutex_unlock(&c.mutex));
}
static void *die_holding(void *unused) {
    (void)unused;
    await_waiting(1);
    OK(pthread_mutex_lock(&c.mutex));
    return NULL;
}
static void *recover_badly(void *unused) {
    (void)unused;
    thread_join(thread_start(die_holding, NULL));
    CHECK_RC(pthread_mutex_lock(&c.mutex), EOWNERDEAD);
    OK(pthread_mutex_unlock(&c.mutex)); /* without consistent: gone for good */
    OK(pthread_cond_signal(&c.cond));
    return NULL;
}
TEST(cond_wait__robust_unrecoverable_returns_ENOTRECOVERABLE, "the mutex becomes unrecoverable during the wait") {
    SKIP_IF(no_robust_list(), "the kernel (or its emulation) does not walk robust lists");
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
    OK(pthread_mutex_lock(&c.mutex));
    c.waiting = 1;
    pthread_t other = thread_start(recover_badly, NULL);
    CHECK_RC(pthread_cond_wait(&c.cond, &c.mutex), ENOTRECOVERABLE);
    thread_join(other);
}

/* --- destroy of a mutex that a wait uses -------------------------------------------------------------------------- */
static pthread_cond_t shared_cond;
static pthread_cond_t *cond_in_use = &c.cond;
static void *wait_in_use(void *deadline_ms) {
    OK(pthread_mutex_lock(&c.mutex));
    c.waiting++;
    while (c.tickets == 0) {
        if (deadline_ms == NULL) {
            OK(pthread_cond_wait(cond_in_use, &c.mutex));
        } else {
            struct timespec end = time_in_ms(CLOCK_REALTIME, *(long *)deadline_ms);
            int r = pthread_cond_timedwait(cond_in_use, &c.mutex, &end);
            CHECK(r == 0 || r == ETIMEDOUT);
            if (r == ETIMEDOUT)
                break;
        }
    }
    c.waiting--;
    OK(pthread_mutex_unlock(&c.mutex));
    return NULL;
}
static void release_waiting(void) {
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = 1;
    OK(pthread_cond_broadcast(cond_in_use));
    OK(pthread_mutex_unlock(&c.mutex));
}
/* Refused while it is used and free, again after each wait but the last; allowed then. */
static void destroy_in_use(int n) {
    pthread_t waiters[8];
    for (int i = 0; i < n; i++)
        waiters[i] = thread_start(wait_in_use, NULL);
    await_waiting(n);
    CHECK_RC(pthread_mutex_destroy(&c.mutex), EBUSY);
    /* A wait on a shared condition may end spuriously, and the waiter owns the mutex until it waits again. */
    OK(cond_in_use == &shared_cond ? pthread_mutex_lock(&c.mutex) : pthread_mutex_trylock(&c.mutex));
    OK(pthread_mutex_unlock(&c.mutex));
    CHECK_RC(pthread_mutex_destroy(&c.mutex), EBUSY);
    release_waiting();
    for (int i = 0; i < n; i++)
        thread_join(waiters[i]);
    OK(pthread_mutex_destroy(&c.mutex));
}
TEST(mutex_destroy__in_use_by_a_wait_returns_EBUSY,
     "1 and 8 waiters, each type of mutex: EBUSY until all have returned") {
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                                PTHREAD_MUTEX_ADAPTIVE_NP};
    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        c.tickets = 0;
        init_type(types[i / 2]);
        destroy_in_use(i % 2 == 0 ? 1 : 8);
    }
}
TEST(mutex_destroy__shared_in_use_by_a_wait_returns_EBUSY, "the same: private condition, process-shared mutex") {
    init_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED);
    destroy_in_use(3);
}
TEST(mutex_destroy__inherit_in_use_by_a_wait_returns_EBUSY, "the same: private condition, PI mutex") {
    SKIP_IF(no_priority_inherit(), "no PI futexes");
    init_mutex(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, PTHREAD_PROCESS_PRIVATE);
    destroy_in_use(3);
}
TEST(mutex_destroy__in_use_by_a_wait_on_a_shared_condition_returns_EBUSY, "the same: process-shared condition") {
    pthread_condattr_t attr;
    OK(pthread_condattr_init(&attr));
    OK(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    OK(pthread_cond_init(&shared_cond, &attr));
    cond_in_use = &shared_cond;
    init_type(PTHREAD_MUTEX_RECURSIVE);
    destroy_in_use(3);
}
static void unlock(void *mutex) {
    OK(pthread_mutex_unlock(mutex));
}
static void *wait_cancelled(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&c.mutex));
    c.waiting++;
    pthread_cleanup_push(unlock, &c.mutex);
    for (;;)
        OK(pthread_cond_wait(&c.cond, &c.mutex));
    pthread_cleanup_pop(0);
    return NULL;
}
TEST(mutex_destroy__after_a_wait_that_ended_otherwise,
     "waits that are cancelled, time out or are refused do not count") {
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        static long short_ms = SHORT_MS;
        c.tickets = 0;
        init_type(types[i]);
        pthread_t t = thread_start(wait_cancelled, NULL);
        await_waiting(1);
        CHECK_RC(pthread_mutex_destroy(&c.mutex), EBUSY);
        OK(pthread_cancel(t));
        thread_join_cancelled(t);
        c.waiting = 0;
        thread_join(thread_start(wait_in_use, &short_ms));
        OK(pthread_mutex_lock(&c.mutex));
        CHECK_RC(pthread_cond_timedwait(&c.cond, &c.mutex, &time_nsec_too_big), EINVAL);
        OK(pthread_mutex_unlock(&c.mutex));
        OK(pthread_mutex_destroy(&c.mutex));
    }
}
