/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes: types, static initialisers, lock, trylock, unlock, destroy. Deadlines are in mutex_timed.c, robust and
 * priority mutexes in mutex_special.c.
 * Source: POSIX.1-2017 pthread_mutex_lock, _trylock, _unlock, _init, _destroy; glibc 2.36 where a comment says so.
 */
#include "topic.h"

#include <signal.h>

/* --- another thread's view ---------------------------------------------------------------------------------------- */
static void *do_trylock(void *m) {
    return (void *)(long)pthread_mutex_trylock(m);
}
static void *do_unlock(void *m) {
    return (void *)(long)pthread_mutex_unlock(m);
}
static void *do_lock_unlock(void *m) {
    OK(pthread_mutex_lock(m));
    OK(pthread_mutex_unlock(m));
    return NULL;
}
static int elsewhere(void *(*operation)(void *), pthread_mutex_t *m) {
    return (int)(long)thread_join(thread_start(operation, m));
}
/* trylock in another thread, undone there if it succeeded. */
static void *do_probe(void *m) {
    int rc = pthread_mutex_trylock(m);
    if (rc == 0)
        OK(pthread_mutex_unlock(m));
    return (void *)(long)rc;
}
#define CHECK_HELD(m) CHECK_RC(elsewhere(do_probe, m), EBUSY)
#define CHECK_FREE(m) CHECK_RC(elsewhere(do_probe, m), 0)

static void init_type(pthread_mutex_t *m, int type) {
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, type));
    OK(pthread_mutex_init(m, &attr));
    OK(pthread_mutexattr_destroy(&attr));
}

static const int all_types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                                PTHREAD_MUTEX_ADAPTIVE_NP};
#define EACH_TYPE(i) (size_t i = 0; i < sizeof all_types / sizeof *all_types; i++)

/* --- lock and unlock ---------------------------------------------------------------------------------------------- */
TEST(mutex_lock__free_mutex_is_acquired, "lock of a free mutex of each type returns 0 and others find it held") {
    for
        EACH_TYPE(i) {
            pthread_mutex_t m;
            init_type(&m, all_types[i]);
            OK(pthread_mutex_lock(&m));
            CHECK_HELD(&m);
            OK(pthread_mutex_unlock(&m));
            CHECK_FREE(&m);
            OK(pthread_mutex_destroy(&m));
        }
}

static struct contended {
    pthread_mutex_t mutex;
    atomic_int absent, inside, entered;
    long plain;
} contended;

static void *enter_often(void *rounds) {
    begin_together(&contended.absent);
    for (long i = 0; i < (long)rounds; i++) {
        OK(pthread_mutex_lock(&contended.mutex));
        CHECK_INT(atomic_fetch_add(&contended.inside, 1), 0);
        contended.plain++;
        let_others_in((int)i);
        CHECK_INT(atomic_fetch_sub(&contended.inside, 1), 1);
        OK(pthread_mutex_unlock(&contended.mutex));
    }
    return NULL;
}

static void exclusion(int type) {
    enum { N_THREADS = 8, N_ROUNDS = 4000 };
    pthread_t threads[N_THREADS];
    init_type(&contended.mutex, type);
    atomic_store(&contended.absent, N_THREADS);
    for (int i = 0; i < N_THREADS; i++)
        threads[i] = thread_start(enter_often, (void *)(long)N_ROUNDS);
    for (int i = 0; i < N_THREADS; i++)
        thread_join(threads[i]);
    CHECK_INT(contended.plain, N_THREADS * N_ROUNDS);
    OK(pthread_mutex_destroy(&contended.mutex));
}

TEST(mutex_lock__normal_excludes, "8 threads, 4000 sections each: one inside at a time, no update lost (normal)") {
    exclusion(PTHREAD_MUTEX_NORMAL);
}
TEST(mutex_lock__recursive_excludes, "8 threads, 4000 sections each: one inside at a time (recursive)") {
    exclusion(PTHREAD_MUTEX_RECURSIVE);
}
TEST(mutex_lock__errorcheck_excludes, "8 threads, 4000 sections each: one inside at a time (errorcheck)") {
    exclusion(PTHREAD_MUTEX_ERRORCHECK);
}
TEST(mutex_lock__adaptive_excludes, "8 threads, 4000 sections each: one inside at a time (adaptive)") {
    exclusion(PTHREAD_MUTEX_ADAPTIVE_NP);
}

static void *lock_and_tell(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&contended.mutex));
    atomic_store(&contended.entered, 1);
    OK(pthread_mutex_unlock(&contended.mutex));
    return NULL;
}

TEST(mutex_lock__blocks_until_the_owner_unlocks, "a locker of each type stays out until the owner unlocks") {
    for
        EACH_TYPE(i) {
            init_type(&contended.mutex, all_types[i]);
            atomic_store(&contended.entered, 0);
            OK(pthread_mutex_lock(&contended.mutex));
            pthread_t other = thread_start(lock_and_tell, NULL);
            let_threads_block();
            CHECK_INT(atomic_load(&contended.entered), 0);
            OK(pthread_mutex_unlock(&contended.mutex));
            thread_join(other);
            CHECK_INT(atomic_load(&contended.entered), 1);
            OK(pthread_mutex_destroy(&contended.mutex));
        }
}

TEST(mutex_unlock__every_waiter_gets_the_mutex, "of 20 waiters at one mutex each gets it after the owner unlocks") {
    enum { N = 20 };
    pthread_t threads[N];
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&m));
    for (int i = 0; i < N; i++)
        threads[i] = thread_start(do_lock_unlock, &m);
    let_threads_block();
    OK(pthread_mutex_unlock(&m));
    for (int i = 0; i < N; i++)
        thread_join(threads[i]);
    CHECK_FREE(&m);
}

/* --- relocking by type -------------------------------------------------------------------------------------------- */
TEST(mutex_lock__normal_relock_deadlocks, "timedlock of an own normal mutex waits for its whole time: ETIMEDOUT") {
    pthread_mutex_t m;
    init_type(&m, PTHREAD_MUTEX_NORMAL);
    OK(pthread_mutex_lock(&m));
    struct timespec start = time_now(CLOCK_REALTIME), end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_RC(pthread_mutex_timedlock(&m, &end), ETIMEDOUT);
    CHECK(time_since_ms(CLOCK_REALTIME, start) >= SHORT_MS - 1);
    OK(pthread_mutex_unlock(&m));
}
TEST(mutex_lock__adaptive_relock_deadlocks, "timedlock of an own adaptive mutex times out") {
    pthread_mutex_t m = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_RC(pthread_mutex_timedlock(&m, &end), ETIMEDOUT);
    OK(pthread_mutex_unlock(&m));
}
TEST(mutex_lock__normal_relock_blocks_until_another_thread_unlocks,
     "a thread that relocks its normal mutex is released when another thread unlocks it (glibc; undefined in POSIX)") {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&m));
    pthread_t other = thread_start(do_unlock, &m);
    OK(pthread_mutex_lock(&m));
    OK((int)(long)thread_join(other));
    OK(pthread_mutex_unlock(&m));
}
TEST(mutex_lock__errorcheck_relock_returns_EDEADLK, "lock of an own errorcheck mutex: EDEADLK, still held once") {
    pthread_mutex_t m;
    init_type(&m, PTHREAD_MUTEX_ERRORCHECK);
    OK(pthread_mutex_lock(&m));
    CHECK_RC(pthread_mutex_lock(&m), EDEADLK);
    CHECK_HELD(&m);
    OK(pthread_mutex_unlock(&m));
    CHECK_FREE(&m);
}
TEST(mutex_lock__recursive_relock_counts, "a recursive mutex locked 3 times is free after the third unlock only") {
    pthread_mutex_t m;
    init_type(&m, PTHREAD_MUTEX_RECURSIVE);
    for (int i = 0; i < 3; i++)
        OK(pthread_mutex_lock(&m));
    for (int i = 0; i < 2; i++) {
        OK(pthread_mutex_unlock(&m));
        CHECK_HELD(&m);
    }
    OK(pthread_mutex_unlock(&m));
    CHECK_FREE(&m);
}
/* POSIX's EAGAIN comes after 2^32 - 1 levels; a fifth of a million is what fits into a test. */
TEST(mutex_lock__recursive_deep, "200000 levels of a recursive mutex, then exactly as many unlocks and EPERM") {
    pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    for (int i = 0; i < 200000; i++)
        OK(pthread_mutex_lock(&m));
    for (int i = 0; i < 200000; i++)
        OK(pthread_mutex_unlock(&m));
    CHECK_RC(pthread_mutex_unlock(&m), EPERM);
    CHECK_FREE(&m);
}

/* --- trylock ------------------------------------------------------------------------------------------------------ */
TEST(mutex_trylock__free_mutex_is_acquired, "trylock of a free mutex of each type returns 0 and others find it held") {
    for
        EACH_TYPE(i) {
            pthread_mutex_t m;
            init_type(&m, all_types[i]);
            OK(pthread_mutex_trylock(&m));
            CHECK_HELD(&m);
            OK(pthread_mutex_unlock(&m));
            CHECK_FREE(&m);
        }
}
TEST(mutex_trylock__held_by_other_returns_EBUSY, "trylock of a mutex of each type that another thread holds: EBUSY") {
    for
        EACH_TYPE(i) {
            pthread_mutex_t m;
            init_type(&m, all_types[i]);
            OK(pthread_mutex_lock(&m));
            CHECK_RC(elsewhere(do_trylock, &m), EBUSY);
            OK(pthread_mutex_unlock(&m));
        }
}
TEST(mutex_trylock__own_normal_returns_EBUSY, "trylock of an own normal or adaptive mutex: EBUSY") {
    pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER, adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&normal));
    CHECK_RC(pthread_mutex_trylock(&normal), EBUSY);
    OK(pthread_mutex_lock(&adaptive));
    CHECK_RC(pthread_mutex_trylock(&adaptive), EBUSY);
    OK(pthread_mutex_unlock(&adaptive));
    OK(pthread_mutex_unlock(&normal));
}
TEST(mutex_trylock__own_errorcheck_returns_EBUSY, "trylock of an own errorcheck mutex: EBUSY, not EDEADLK") {
    pthread_mutex_t m = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    CHECK_RC(pthread_mutex_trylock(&m), EBUSY);
    OK(pthread_mutex_unlock(&m));
    CHECK_RC(pthread_mutex_unlock(&m), EPERM);
}
TEST(mutex_trylock__own_recursive_counts, "trylock of an own recursive mutex: 0 and one more level") {
    pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_trylock(&m));
    OK(pthread_mutex_unlock(&m));
    CHECK_HELD(&m);
    OK(pthread_mutex_unlock(&m));
    CHECK_FREE(&m);
}
TEST(mutex_trylock__never_barges_into_a_section, "trylock in a loop by 4 threads against 4 lockers keeps exclusion") {
    enum { N = 4, ROUNDS = 3000 };
    pthread_t lockers[N];
    atomic_store(&contended.absent, N + 1);
    for (int i = 0; i < N; i++)
        lockers[i] = thread_start(enter_often, (void *)(long)ROUNDS);
    begin_together(&contended.absent);
    for (long got = 0; got < ROUNDS;) {
        int rc = pthread_mutex_trylock(&contended.mutex);
        if (rc == 0) {
            CHECK_INT(atomic_fetch_add(&contended.inside, 1), 0);
            contended.plain++;
            let_others_in((int)got++);
            CHECK_INT(atomic_fetch_sub(&contended.inside, 1), 1);
            OK(pthread_mutex_unlock(&contended.mutex));
        } else
            CHECK_RC(rc, EBUSY);
    }
    for (int i = 0; i < N; i++)
        thread_join(lockers[i]);
    CHECK_INT(contended.plain, (N + 1) * ROUNDS);
}

/* --- unlock ------------------------------------------------------------------------------------------------------- */
TEST(mutex_unlock__errorcheck_not_owner_returns_EPERM, "unlock of another's errorcheck mutex: EPERM, still held") {
    pthread_mutex_t m = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    CHECK_RC(elsewhere(do_unlock, &m), EPERM);
    CHECK_HELD(&m);
    OK(pthread_mutex_unlock(&m));
}
TEST(mutex_unlock__errorcheck_free_returns_EPERM, "unlock of a free errorcheck mutex: EPERM, still usable") {
    pthread_mutex_t m = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    CHECK_RC(pthread_mutex_unlock(&m), EPERM);
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_unlock(&m));
    CHECK_RC(pthread_mutex_unlock(&m), EPERM);
}
TEST(mutex_unlock__recursive_not_owner_returns_EPERM, "unlock of another's recursive mutex: EPERM, count unchanged") {
    pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_lock(&m));
    CHECK_RC(elsewhere(do_unlock, &m), EPERM);
    OK(pthread_mutex_unlock(&m));
    CHECK_HELD(&m);
    OK(pthread_mutex_unlock(&m));
}
TEST(mutex_unlock__recursive_free_returns_EPERM, "unlock of a free recursive mutex: EPERM") {
    pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    CHECK_RC(pthread_mutex_unlock(&m), EPERM);
    CHECK_FREE(&m);
}
/* Undefined in POSIX; glibc does not look at the owner, and programs hand normal mutexes over like semaphores. */
TEST(mutex_unlock__normal_by_other_thread_releases,
     "a normal mutex unlocked by a thread that did not lock it is free") {
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&m));
    OK(elsewhere(do_unlock, &m));
    OK(pthread_mutex_trylock(&m));
    OK(pthread_mutex_unlock(&m));
}
TEST(mutex_unlock__makes_writes_visible, "what the owner wrote is seen by the next owner, 20000 hand-overs") {
    enum { ROUNDS = 20000 };
    init_type(&contended.mutex, PTHREAD_MUTEX_NORMAL);
    atomic_store(&contended.absent, 2);
    pthread_t other = thread_start(enter_often, (void *)(long)ROUNDS);
    enter_often((void *)(long)ROUNDS);
    thread_join(other);
    CHECK_INT(contended.plain, 2 * ROUNDS);
}

/* --- init, destroy and initialisers ------------------------------------------------------------------------------- */
TEST(mutex_init__null_attr_gives_default, "a mutex of NULL attributes is normal: own trylock EBUSY, no owner check") {
    pthread_mutex_t m;
    OK(pthread_mutex_init(&m, NULL));
    OK(pthread_mutex_lock(&m));
    CHECK_RC(pthread_mutex_trylock(&m), EBUSY);
    OK(pthread_mutex_unlock(&m));
    OK(pthread_mutex_destroy(&m));
}
TEST(mutex_init__is_unlocked, "a mutex of each type is free after init over memory full of ones") {
    for
        EACH_TYPE(i) {
            pthread_mutex_t m;
            __builtin_memset(&m, 0xff, sizeof m);
            init_type(&m, all_types[i]);
            CHECK_FREE(&m);
            OK(pthread_mutex_destroy(&m));
        }
}
TEST(mutex_init__later_change_of_attr_has_no_effect, "settype after init leaves the mutex's type as it was") {
    pthread_mutexattr_t attr;
    pthread_mutex_t m;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    OK(pthread_mutex_init(&m, &attr));
    OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
    OK(pthread_mutexattr_destroy(&attr));
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_lock(&m));
}
TEST(mutex_init__one_attr_serves_many, "100 mutexes of one attribute object are independent") {
    pthread_mutexattr_t attr;
    pthread_mutex_t m[100];
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
    for (int i = 0; i < 100; i++)
        OK(pthread_mutex_init(&m[i], &attr));
    OK(pthread_mutexattr_destroy(&attr));
    for (int i = 0; i < 100; i += 2)
        OK(pthread_mutex_lock(&m[i]));
    for (int i = 0; i < 100; i++)
        CHECK_RC(pthread_mutex_lock(&m[i]), i % 2 == 0 ? EDEADLK : 0);
}
TEST(mutex_initializer__normal, "PTHREAD_MUTEX_INITIALIZER: lock, EBUSY, unlock without init") {
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&m));
    CHECK_RC(pthread_mutex_trylock(&m), EBUSY);
    CHECK_HELD(&m);
    OK(pthread_mutex_unlock(&m));
    CHECK_FREE(&m);
}
TEST(mutex_initializer__recursive_np, "PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP is recursive without init") {
    static pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    OK(pthread_mutex_lock(&m));
    CHECK_HELD(&m);
    OK(pthread_mutex_unlock(&m));
    OK(pthread_mutex_unlock(&m));
    CHECK_RC(pthread_mutex_unlock(&m), EPERM);
}
TEST(mutex_initializer__errorcheck_np, "PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP checks errors without init") {
    static pthread_mutex_t m = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    CHECK_RC(pthread_mutex_lock(&m), EDEADLK);
    OK(pthread_mutex_unlock(&m));
    CHECK_RC(pthread_mutex_unlock(&m), EPERM);
}
TEST(mutex_initializer__adaptive_np, "PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP: lock, EBUSY, unlock without init") {
    static pthread_mutex_t m = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&m));
    CHECK_HELD(&m);
    OK(pthread_mutex_unlock(&m));
    CHECK_FREE(&m);
    OK(pthread_mutex_destroy(&m));
}
TEST(mutex_destroy__free_mutex, "destroy of a free mutex of each type, used or never used: 0") {
    for
        EACH_TYPE(i) {
            pthread_mutex_t m;
            init_type(&m, all_types[i]);
            OK(pthread_mutex_destroy(&m));
            init_type(&m, all_types[i]);
            OK(pthread_mutex_lock(&m));
            OK(pthread_mutex_unlock(&m));
            OK(pthread_mutex_destroy(&m));
        }
}
/* POSIX leaves it undefined; glibc refuses and the mutex goes on working. */
TEST(mutex_destroy__locked_returns_EBUSY, "destroy of a locked mutex of each type: EBUSY, still held (glibc)") {
    for
        EACH_TYPE(i) {
            pthread_mutex_t m;
            init_type(&m, all_types[i]);
            OK(pthread_mutex_lock(&m));
            CHECK_RC(pthread_mutex_destroy(&m), EBUSY);
            CHECK_HELD(&m);
            OK(pthread_mutex_unlock(&m));
            OK(pthread_mutex_destroy(&m));
        }
}
TEST(mutex_lock__destroyed_returns_EINVAL, "lock and trylock of a destroyed mutex: EINVAL (glibc)") {
    pthread_mutex_t m;
    OK(pthread_mutex_init(&m, NULL));
    OK(pthread_mutex_destroy(&m));
    CHECK_RC(pthread_mutex_lock(&m), EINVAL);
    CHECK_RC(pthread_mutex_trylock(&m), EINVAL);
}

/* --- signals ------------------------------------------------------------------------------------------------------ */
TEST(mutex_lock__never_returns_EINTR, "a locker of each type that is hit by 20 signals goes on waiting and gets it") {
    signal_counter(SIGUSR1, false);
    for
        EACH_TYPE(i) {
            pthread_mutex_t m;
            init_type(&m, all_types[i]);
            OK(pthread_mutex_lock(&m));
            pthread_t other = thread_start(do_lock_unlock, &m);
            let_threads_block();
            signal_thread(other, SIGUSR1, 20);
            OK(pthread_mutex_unlock(&m));
            thread_join(other);
        }
    CHECK_INT(atomic_load(&signals_seen), 80);
}
