/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * C11 threads: mtx_*, cnd_*, call_once, thrd_*. glibc's do not go through the pthread symbols, so they are tested on
 * their own. Source: C17 7.26; values that C leaves open as in glibc 2.36.
 */
#include "topic.h"

#include <string.h>
#include <threads.h>
#include <unistd.h>

static mtx_t mtx;
static cnd_t cnd;
static int waiting, tickets;
static long plain;
static atomic_int inside, calls, release;

#define SUCCESS(expression) CHECK_INT(expression, thrd_success)

static thrd_t start(thrd_start_t routine, void *argument) {
    thrd_t t;
    SUCCESS(thrd_create(&t, routine, argument));
    return t;
}
static int join(thrd_t t) {
    int value = -4711;
    SUCCESS(thrd_join(t, &value));
    return value;
}
static int do_trylock(void *m) {
    int rc = mtx_trylock(m);
    if (rc == thrd_success)
        SUCCESS(mtx_unlock(m));
    return rc;
}
#define CHECK_HELD(m) CHECK_INT(join(start(do_trylock, m)), thrd_busy)
#define CHECK_FREE(m) CHECK_INT(join(start(do_trylock, m)), thrd_success)

/* --- mtx ---------------------------------------------------------------------------------------------------------- */
static const int all_types[] = {mtx_plain, mtx_timed, mtx_plain | mtx_recursive, mtx_timed | mtx_recursive};

TEST(mtx_init__types, "the 4 types of C: lock, busy for others, unlock, destroy") {
    for (int i = 0; i < 4; i++) {
        SUCCESS(mtx_init(&mtx, all_types[i]));
        SUCCESS(mtx_lock(&mtx));
        CHECK_HELD(&mtx);
        SUCCESS(mtx_unlock(&mtx));
        CHECK_FREE(&mtx);
        mtx_destroy(&mtx);
    }
}
TEST(mtx_lock__recursive_counts, "a recursive mtx locked 3 times by lock and trylock is free after the third unlock") {
    SUCCESS(mtx_init(&mtx, mtx_plain | mtx_recursive));
    SUCCESS(mtx_lock(&mtx));
    SUCCESS(mtx_lock(&mtx));
    SUCCESS(mtx_trylock(&mtx));
    for (int i = 0; i < 3; i++) {
        CHECK_HELD(&mtx);
        SUCCESS(mtx_unlock(&mtx));
    }
    CHECK_FREE(&mtx);
    CHECK_INT(mtx_unlock(&mtx), thrd_error);
}
TEST(mtx_trylock__own_plain_is_busy, "trylock of an own plain mtx: thrd_busy") {
    SUCCESS(mtx_init(&mtx, mtx_plain));
    SUCCESS(mtx_trylock(&mtx));
    CHECK_INT(mtx_trylock(&mtx), thrd_busy);
    SUCCESS(mtx_unlock(&mtx));
}
static int do_timedlock(void *end) {
    int rc = mtx_timedlock(&mtx, end);
    if (rc == thrd_success)
        SUCCESS(mtx_unlock(&mtx));
    return rc;
}
TEST(mtx_timedlock__held_times_out, "timedlock of a held mtx: thrd_timedout, not before the deadline (TIME_UTC)") {
    SUCCESS(mtx_init(&mtx, mtx_timed));
    SUCCESS(mtx_lock(&mtx));
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS), past = time_epoch;
    CHECK_INT(join(start(do_timedlock, &end)), thrd_timedout);
    CHECK(time_since_ms(CLOCK_REALTIME, end) >= 0);
    CHECK_INT(join(start(do_timedlock, &past)), thrd_timedout);
    SUCCESS(mtx_unlock(&mtx));
    CHECK_INT(join(start(do_timedlock, &past)), thrd_success);
}
TEST(mtx_timedlock__invalid_nsec_is_an_error, "timedlock of a held mtx with a bad nsec: thrd_error") {
    SUCCESS(mtx_init(&mtx, mtx_timed));
    SUCCESS(mtx_lock(&mtx));
    struct timespec bad = time_nsec_too_big;
    CHECK_INT(join(start(do_timedlock, &bad)), thrd_error);
}
TEST(mtx_timedlock__gets_a_mutex_released_in_time, "timedlock: thrd_success once the owner unlocks") {
    SUCCESS(mtx_init(&mtx, mtx_timed));
    SUCCESS(mtx_lock(&mtx));
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    thrd_t t = start(do_timedlock, &end);
    let_threads_block();
    SUCCESS(mtx_unlock(&mtx));
    CHECK_INT(join(t), thrd_success);
}
static atomic_int absent;
static int enter_often(void *unused) {
    (void)unused;
    begin_together(&absent);
    for (int i = 0; i < 4000; i++) {
        SUCCESS(mtx_lock(&mtx));
        CHECK_INT(atomic_fetch_add(&inside, 1), 0);
        plain++;
        let_others_in(i);
        CHECK_INT(atomic_fetch_sub(&inside, 1), 1);
        SUCCESS(mtx_unlock(&mtx));
    }
    return 0;
}
TEST(mtx_lock__excludes, "8 threads, 4000 sections each, all types: one inside at a time, no update lost") {
    for (int i = 0; i < 4; i++) {
        thrd_t threads[8];
        plain = 0;
        SUCCESS(mtx_init(&mtx, all_types[i]));
        atomic_store(&absent, 8);
        for (int k = 0; k < 8; k++)
            threads[k] = start(enter_often, NULL);
        for (int k = 0; k < 8; k++)
            join(threads[k]);
        CHECK_INT(plain, 32000);
        mtx_destroy(&mtx);
    }
}
TEST(mtx__zeroed_memory_is_valid, "a zeroed mtx_t works as a plain one (glibc)") {
    memset(&mtx, 0, sizeof mtx);
    SUCCESS(mtx_lock(&mtx));
    CHECK_HELD(&mtx);
    SUCCESS(mtx_unlock(&mtx));
    CHECK_FREE(&mtx);
}

/* --- cnd ---------------------------------------------------------------------------------------------------------- */
static int wait_for_ticket(void *unused) {
    (void)unused;
    SUCCESS(mtx_lock(&mtx));
    waiting++;
    while (tickets == 0)
        SUCCESS(cnd_wait(&cnd, &mtx));
    tickets--;
    waiting--;
    SUCCESS(mtx_unlock(&mtx));
    return 0;
}
static int timedwait_for_ticket(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    SUCCESS(mtx_lock(&mtx));
    waiting++;
    while (tickets == 0)
        SUCCESS(cnd_timedwait(&cnd, &mtx, &end));
    tickets--;
    waiting--;
    SUCCESS(mtx_unlock(&mtx));
    return 0;
}
static void start_waiters(thrd_t *threads, int n, int type) {
    SUCCESS(mtx_init(&mtx, type));
    SUCCESS(cnd_init(&cnd));
    for (int i = 0; i < n; i++)
        threads[i] = start(i % 2 == 0 ? wait_for_ticket : timedwait_for_ticket, NULL);
    for (int now = -1; now != n; sleep_ms(1)) {
        SUCCESS(mtx_lock(&mtx));
        now = waiting;
        SUCCESS(mtx_unlock(&mtx));
    }
}
TEST(cnd_signal__wakes_one_each, "10 waiters, 10 signals: all return") {
    thrd_t threads[10];
    start_waiters(threads, 10, mtx_plain);
    for (int i = 0; i < 10; i++) {
        SUCCESS(mtx_lock(&mtx));
        tickets++;
        SUCCESS(cnd_signal(&cnd));
        SUCCESS(mtx_unlock(&mtx));
    }
    for (int i = 0; i < 10; i++)
        join(threads[i]);
    CHECK_INT(waiting, 0);
}
TEST(cnd_broadcast__wakes_all, "20 waiters with a recursive mtx, one broadcast: all return") {
    thrd_t threads[20];
    start_waiters(threads, 20, mtx_plain | mtx_recursive);
    SUCCESS(mtx_lock(&mtx));
    tickets = 20;
    SUCCESS(cnd_broadcast(&cnd));
    SUCCESS(mtx_unlock(&mtx));
    for (int i = 0; i < 20; i++)
        join(threads[i]);
    CHECK_INT(tickets, 0);
    cnd_destroy(&cnd);
}
TEST(cnd_timedwait__times_out, "no signal comes: thrd_timedout, not before the deadline, mtx held") {
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    SUCCESS(mtx_init(&mtx, mtx_plain));
    SUCCESS(cnd_init(&cnd));
    SUCCESS(cnd_signal(&cnd));
    SUCCESS(mtx_lock(&mtx));
    CHECK_INT(cnd_timedwait(&cnd, &mtx, &end), thrd_timedout);
    CHECK(time_since_ms(CLOCK_REALTIME, end) >= 0);
    CHECK_HELD(&mtx);
    SUCCESS(mtx_unlock(&mtx));
}
TEST(cnd_timedwait__past_and_invalid_deadlines, "deadline passed: thrd_timedout; bad nsec: thrd_error; mtx held") {
    SUCCESS(mtx_init(&mtx, mtx_plain));
    SUCCESS(cnd_init(&cnd));
    SUCCESS(mtx_lock(&mtx));
    CHECK_INT(cnd_timedwait(&cnd, &mtx, &time_epoch), thrd_timedout);
    CHECK_INT(cnd_timedwait(&cnd, &mtx, &time_nsec_too_big), thrd_error);
    CHECK_HELD(&mtx);
    SUCCESS(mtx_unlock(&mtx));
}
/* glibc's mtx_t and cnd_t are a pthread_mutex_t and a pthread_cond_t inside; libraries rely on it to mix the two. */
TEST(cnd__is_a_pthread_condition, "pthread_cond_broadcast and pthread_mutex_* serve cnd_t and mtx_t (glibc)") {
    thrd_t threads[4];
    start_waiters(threads, 4, mtx_plain);
    OK(pthread_mutex_lock((pthread_mutex_t *)&mtx));
    CHECK_HELD(&mtx);
    tickets = 4;
    OK(pthread_cond_broadcast((pthread_cond_t *)&cnd));
    OK(pthread_mutex_unlock((pthread_mutex_t *)&mtx));
    for (int i = 0; i < 4; i++)
        join(threads[i]);
}

/* --- call_once ---------------------------------------------------------------------------------------------------- */
static once_flag flag = ONCE_FLAG_INIT;
static void count_call(void) {
    atomic_fetch_add(&calls, 1);
}
static void slow_call(void) {
    await(&release, 1);
    count_call();
}
static int do_call_once(void *unused) {
    (void)unused;
    call_once(&flag, slow_call);
    return atomic_load(&calls);
}
TEST(call_once__runs_once, "1000 calls run the function once") {
    for (int i = 0; i < 1000; i++)
        call_once(&flag, count_call);
    CHECK_INT(atomic_load(&calls), 1);
}
TEST(call_once__callers_wait, "8 threads: one run, and no thread returns before it is done") {
    thrd_t threads[8];
    for (int i = 0; i < 8; i++)
        threads[i] = start(do_call_once, NULL);
    let_threads_block();
    atomic_store(&release, 1);
    for (int i = 0; i < 8; i++)
        CHECK_INT(join(threads[i]), 1);
}

/* --- thrd --------------------------------------------------------------------------------------------------------- */
static int give_back(void *value) {
    return *(int *)value;
}
static int exit_with(void *value) {
    thrd_exit(*(int *)value);
}
TEST(thrd_join__value, "the value of return and of thrd_exit, negative ones included; join without a place for it") {
    int value = -17;
    CHECK_INT(join(start(give_back, &value)), -17);
    CHECK_INT(join(start(exit_with, &value)), -17);
    SUCCESS(thrd_join(start(give_back, &value), NULL));
}
static thrd_t seen;
static int note_self(void *unused) {
    (void)unused;
    seen = thrd_current();
    return 0;
}
TEST(thrd_current__equals_the_created, "thrd_current in the thread equals what create stored") {
    thrd_t t = start(note_self, NULL);
    join(t);
    CHECK(thrd_equal(t, seen));
    CHECK(!thrd_equal(t, thrd_current()));
}
static int finish(void *unused) {
    (void)unused;
    atomic_fetch_add(&calls, 1);
    return 0;
}
TEST(thrd_detach__runs_to_its_end, "100 detached threads all run") {
    for (int i = 0; i < 100; i++)
        SUCCESS(thrd_detach(start(finish, NULL)));
    await(&calls, 100);
}
TEST(thrd_sleep__sleeps, "thrd_sleep of 60 ms: 0, not shorter; thrd_yield returns") {
    struct timespec begin = time_now(CLOCK_MONOTONIC), length = {0, SHORT_MS * 1000000};
    CHECK_INT(thrd_sleep(&length, NULL), 0);
    CHECK(time_since_ms(CLOCK_MONOTONIC, begin) >= SHORT_MS - 1);
    thrd_yield();
}
static tss_t key;
static void lock_in_destructor(void *value) {
    CHECK(value == &key);
    SUCCESS(mtx_lock(&mtx));
    plain++;
    SUCCESS(mtx_unlock(&mtx));
}
static int set_key(void *unused) {
    (void)unused;
    SUCCESS(tss_set(key, &key));
    return 0;
}
TEST(thrd_exit__destructors_may_lock, "tss destructors of 50 threads lock a mtx: 50 calls") {
    SUCCESS(mtx_init(&mtx, mtx_plain));
    SUCCESS(tss_create(&key, lock_in_destructor));
    for (int i = 0; i < 50; i++)
        join(start(set_key, NULL));
    CHECK_INT(plain, 50);
}
