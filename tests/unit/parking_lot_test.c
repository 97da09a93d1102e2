/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parking lot by itself: keys that are no objects, and what a futex needs. How many were woken or moved is exact,
 * the first comes first, and a deadline, a refusal or a changed word ends a wait.
 */
#include "wait/parking_lot.h"

#include <errno.h>
#include <pthread.h>

#include "core/handlers.h"
#include "engine/direct/direct.h"
#include "engine/engine.h"
#include "lib/suite.h"
#include "os/fork.h"
#include "os/futex.h"
#include "switch/pool.h"

enum { N = 40 }; /* more than are woken in one go */

/* The library does it before there are threads. Two threads that notice at once would begin a generation each. */
__attribute__((constructor)) static void notice_generation(void) {
    sbt_fork_generation();
}

static uint32_t word; /* parked on while it is 1 */
static const char keys[2];
static uint32_t n_asked, n_refused, n_left;
static int refusal;

/* Relaxed: under the bucket's lock. */
static int validate(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    (void)q;
    n_asked++;
    return w->inflight || __atomic_load_n(&word, __ATOMIC_RELAXED) != 1 ? EAGAIN : EBUSY;
}

static struct sbt_waiter *successor(struct sbt_lot_queue *q, struct sbt_waiter *w, int result) {
    (void)q, (void)w;
    n_left += result != EBUSY;
    return NULL;
}

static int refuse(struct sbt_waiter *w) {
    ck_assert(sbt_lot_busy() || sbt_self.waiter == w);
    n_refused++;
    return refusal;
}

static const struct sbt_lot_role plain = {.validate = validate, .successor = successor};
static const struct sbt_lot_role refusing = {.validate = validate, .successor = successor, .before_sleep = refuse};

static int park(const struct sbt_lot_role *role, const void *key, const struct sbt_deadline *deadline) {
    struct sbt_adapt memory = {0};
    struct sbt_active active;
    sbt_active_begin(&active, &memory);
    struct sbt_waiter w = {.role = role, .active = &active};
    return sbt_lot_park(key, &w, deadline);
}

struct sleeper {
    pthread_t thread;
    const void *key;
    int result;
    uint32_t place;
};
static uint32_t n_over;

static void *sleeps(void *argument) {
    struct sleeper *s = argument;
    s->result = park(&plain, s->key, NULL);
    s->place = __atomic_fetch_add(&n_over, 1, __ATOMIC_RELAXED);
    return NULL;
}

static uint32_t n_queued(const void *key);

static struct sleeper sleeper[N];

/* One after the other: in the order of their numbers. */
static void begin(uint32_t n) {
    word = 1;
    n_over = 0;
    for (uint32_t i = 0; i < n; i++) {
        sleeper[i] = (struct sleeper){.key = &keys[0], .result = -1};
        ck_assert_int_eq(pthread_create(&sleeper[i].thread, NULL, sleeps, &sleeper[i]), 0);
        while (n_queued(&keys[0]) != i + 1)
            sbt_pause_ns(10000);
    }
}

static void end(uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        ck_assert_int_eq(pthread_join(sleeper[i].thread, NULL), 0);
        ck_assert_int_eq(sleeper[i].result, 0);
    }
}

static enum sbt_lot_verdict count(struct sbt_lot_queue *q, struct sbt_waiter *w, void *n) {
    *(uint32_t *)n = 1;
    while ((w = sbt_lot_next(q, w)) != NULL)
        ++*(uint32_t *)n;
    return SBT_LOT_STOP;
}

static uint32_t n_queued(const void *key) {
    uint32_t n = 0;
    ck_assert_uint_eq(sbt_lot_sort(key, NULL, count, &n, NULL, NULL), 0);
    return n;
}

TEST(as_many_as_asked_for_are_unparked) {
    begin(N);
    ck_assert_uint_eq(sbt_lot_unpark_some(&keys[1], N), 0);
    ck_assert_uint_eq(sbt_lot_unpark_some(&keys[0], 0), 0);
    ck_assert_uint_eq(sbt_lot_unpark_some(&keys[0], 3), 3);
    end(0, 3);
    ck_assert_uint_eq(n_over, 3);
    ck_assert_uint_eq(n_queued(&keys[0]), N - 3);
    ck_assert_uint_eq(sbt_lot_unpark_some(&keys[0], N), N - 3);
    end(3, N);
    ck_assert_uint_eq(sbt_lot_unpark_all(&keys[0]), 0);
}

TEST(the_first_comes_first) {
    begin(5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(sbt_lot_unpark_some(&keys[0], 1), 1);
        end(i, i + 1);
        ck_assert_uint_eq(sleeper[i].place, i);
    }
}

/* The memory of a futex may be an object's by the time that a wake-up comes. */
TEST(a_futex_wake_finds_no_waiter_of_an_object) {
    static uint32_t object, other;
    struct sbt_futex_moved most = {1, 1};
    word = 1;
    sleeper[0] = (struct sleeper){.key = &object, .result = -1};
    ck_assert_int_eq(pthread_create(&sleeper[0].thread, NULL, sleeps, &sleeper[0]), 0);
    while (n_queued(&object) != 1)
        sbt_pause_ns(10000);
    ck_assert_uint_eq(direct_futex_wake(&object, false, INT_MAX, UINT32_MAX), 0);
    ck_assert_int_eq(direct_futex_requeue(&object, &other, false, &most, NULL), 0);
    ck_assert_uint_eq(most.woken + most.moved, 0);
    ck_assert_uint_eq(n_queued(&object), 1);
    ck_assert_uint_eq(sbt_lot_unpark_some(&object, 1), 1);
    end(0, 1);
}

TEST(waiters_move_to_another_key) {
    begin(10);
    ck_assert_uint_eq(sbt_lot_requeue(&keys[0], &keys[1], 4), 4);
    ck_assert_uint_eq(n_queued(&keys[0]), 6);
    ck_assert_uint_eq(n_queued(&keys[1]), 4);
    ck_assert_uint_eq(sbt_lot_requeue(&keys[0], &keys[1], 0), 0);
    ck_assert_uint_eq(sbt_lot_unpark_all(&keys[0]), 6);
    end(4, 10);
    ck_assert_uint_eq(n_over, 6);
    ck_assert_uint_eq(sbt_lot_requeue(&keys[1], &keys[0], 10), 4);
    ck_assert_uint_eq(sbt_lot_unpark_all(&keys[0]), 4);
    end(0, 4);
}

TEST(a_changed_word_is_seen_before_the_sleep) {
    word = 2;
    n_asked = n_left = 0;
    ck_assert_int_eq(park(&plain, &keys[0], NULL), EAGAIN);
    ck_assert_uint_eq(n_asked, 1);
    ck_assert_uint_eq(n_left, 1);
    ck_assert_uint_eq(n_queued(&keys[0]), 0);
}

TEST(time_runs_out) {
    struct sbt_deadline soon = sbt_deadline_in(20000000);
    word = 1;
    n_left = 0;
    ck_assert_int_eq(park(&plain, &keys[0], &soon), ETIMEDOUT);
    ck_assert(sbt_deadline_passed(&soon));
    ck_assert_uint_eq(n_left, 1);
    ck_assert_uint_eq(n_queued(&keys[0]), 0);
}

/* While it waits, and no longer, a thread is relied on. */
TEST(a_refusal_before_the_sleep_ends_it) {
    word = 1;
    n_refused = n_left = 0;
    refusal = EPERM;
    ck_assert_int_eq(park(&refusing, &keys[0], NULL), EPERM);
    ck_assert_uint_eq(n_refused, 1);
    ck_assert_uint_eq(n_left, 1);
    ck_assert_uint_eq(n_queued(&keys[0]), 0);
    ck_assert_ptr_null(sbt_self.waiter);
}

/* As a signal handler does that has interrupted its thread inside the lot. */
TEST(a_thread_inside_the_lot_does_not_queue) {
    struct sbt_deadline soon = sbt_deadline_in(2000000);
    sbt_self.in_lot++;
    refusal = 0;
    n_refused = 0;
    ck_assert_int_eq(park(&refusing, &keys[0], &soon), 0); /* nothing to poll: one look */
    ck_assert_uint_eq(n_refused, 1);
    refusal = EPERM;
    ck_assert_int_eq(park(&refusing, &keys[0], &soon), EPERM);
    ck_assert_uint_eq(sbt_lot_unpark_all(&keys[0]), 0);
    ck_assert_uint_eq(sbt_self.owes_wakeups, 1);
    sbt_self.in_lot--;
    sbt_self.owes_wakeups = 0;
}

/* Waits on after a notification while the word is 1. */
static int validate_again(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    (void)q, (void)w;
    __atomic_fetch_add(&n_asked, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(&word, __ATOMIC_RELAXED) != 1 ? 0 : EBUSY;
}

static const struct sbt_lot_role patient = {.validate = validate_again};

static void *waits_on(void *argument) {
    struct sleeper *s = argument;
    s->result = park(&patient, s->key, NULL);
    return NULL;
}

/* A handler could not wake; then its thread leaves the lot. Returns when each waiter has looked. */
static void notify_all_late(uint32_t n_looks) {
    __atomic_store_n(&n_asked, 0, __ATOMIC_RELAXED);
    sbt_self.owes_wakeups = 1;
    n_queued(&keys[1]);
    ck_assert_uint_eq(sbt_self.owes_wakeups, 0);
    for (int i = 0; i < 20000 && __atomic_load_n(&n_asked, __ATOMIC_RELAXED) < n_looks; i++)
        sbt_pause_ns(100000);
    ck_assert_uint_eq(__atomic_load_n(&n_asked, __ATOMIC_RELAXED), n_looks);
}

TEST(every_waiter_looks_once_when_a_handler_could_not_wake) {
    word = 1;
    for (uint32_t i = 0; i < N; i++) {
        sleeper[i] = (struct sleeper){.key = &keys[0], .result = -1};
        ck_assert_int_eq(pthread_create(&sleeper[i].thread, NULL, waits_on, &sleeper[i]), 0);
        while (n_queued(&keys[0]) != i + 1)
            sbt_pause_ns(10000);
    }
    for (uint32_t round = 0; round < 20; round++) {
        notify_all_late(N);
        ck_assert_uint_eq(n_queued(&keys[0]), N);
    }
    __atomic_store_n(&word, 2, __ATOMIC_RELAXED);
    notify_all_late(N);
    end(0, N);
    ck_assert_uint_eq(n_queued(&keys[0]), 0);
}

/* Gives the first waiters real-time priorities, and moves them. Relaxed: under the buckets' locks. */
static enum sbt_lot_verdict move_with_priority(struct sbt_lot_queue *q, struct sbt_waiter *w, void *priorities) {
    const uint8_t **priority = priorities;
    (void)q;
    if (**priority == 0)
        return SBT_LOT_STOP;
    w->priority = *(*priority)++;
    return SBT_LOT_MOVE;
}

static enum sbt_lot_verdict read_priorities(struct sbt_lot_queue *q, struct sbt_waiter *w, void *priorities) {
    uint8_t *priority = priorities;
    for (; w != NULL; w = sbt_lot_next(q, w))
        *priority++ = w->priority;
    return SBT_LOT_STOP;
}

TEST(the_moved_stand_where_their_priority_puts_them) {
    const uint8_t some[] = {20, 50, 0}, others[] = {30, 50, 10, 0}, *next = some, in_order[] = {50, 50, 30, 20, 10};
    uint8_t seen[5] = {0};
    begin(5);
    ck_assert_uint_eq(sbt_lot_sort(&keys[0], &keys[1], move_with_priority, &next, NULL, NULL), 2);
    next = others;
    ck_assert_uint_eq(sbt_lot_sort(&keys[0], &keys[1], move_with_priority, &next, NULL, NULL), 3);
    ck_assert_uint_eq(sbt_lot_sort(&keys[1], NULL, read_priorities, seen, NULL, NULL), 0);
    ck_assert_mem_eq(seen, in_order, sizeof seen);
    /* 1 came before 3 with the same priority. */
    const uint32_t order[] = {1, 3, 2, 0, 4};
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(sbt_lot_unpark_some(&keys[1], 1), 1);
        end(order[i], order[i] + 1);
        ck_assert_uint_eq(sleeper[order[i]].place, i);
    }
}

static enum sbt_lot_verdict count_losers(struct sbt_lot_queue *q, struct sbt_waiter *w, void *n) {
    for (; w != NULL; w = sbt_lot_next(q, w))
        *(uint32_t *)n += w->lost;
    return SBT_LOT_STOP;
}

static struct sbt_waiter *first_waiting(struct sbt_lot_queue *q) {
    return sbt_lot_first_waiting(q);
}

TEST(a_notified_waiter_that_waits_on_has_lost_the_race) {
    uint32_t n = 0;
    word = 1;
    for (uint32_t i = 0; i < 2; i++) {
        sleeper[i] = (struct sleeper){.key = &keys[0], .result = -1};
        ck_assert_int_eq(pthread_create(&sleeper[i].thread, NULL, waits_on, &sleeper[i]), 0);
        while (n_queued(&keys[0]) != i + 1)
            sbt_pause_ns(10000);
    }
    ck_assert_uint_eq(sbt_lot_sort(&keys[0], NULL, count_losers, &n, NULL, NULL), 0);
    ck_assert_uint_eq(n, 0);
    __atomic_store_n(&n_asked, 0, __ATOMIC_RELAXED);
    sbt_lot_unpark_one(&keys[0], first_waiting, NULL);
    while (__atomic_load_n(&n_asked, __ATOMIC_RELAXED) == 0) /* it looks, with the bucket locked until all is said */
        sbt_pause_ns(10000);
    ck_assert_uint_eq(sbt_lot_sort(&keys[0], NULL, count_losers, &n, NULL, NULL), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(sbt_lot_unpark_all(&keys[0]), 2);
    end(0, 2);
}

static uint32_t n_held_up;
static const struct sbt_waiter *held_up_waiter;

static struct sbt_waiter *held_up(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    n_held_up++;
    held_up_waiter = w;
    return sbt_lot_first_waiting(q);
}

/* A sleeper's waker would learn that it does not sleep. A waiter that is awake may be what a waker relies on. */
TEST(an_interrupted_waiter_is_held_up_unless_it_sleeps) {
    static const struct sbt_lot_role relied_on = {.validate = validate, .held_up = held_up};
    struct sbt_waiter mine = {.role = &relied_on};
    sbt_lot_start();
    begin(2);
    n_held_up = n_asked = 0;
    sbt_lot_relied_on(&mine, &keys[0]);
    ck_assert_ptr_eq(sbt_self.waiter, &mine);
    mine.state = SBT_WAITER_PARKED;
    sbt_handlers_interrupt(&mine, SIGUSR1);
    mine.state = SBT_WAITER_GRANTED;
    sbt_handlers_interrupt(&mine, SIGUSR1);
    ck_assert_uint_eq(n_held_up, 0);
    mine.state = SBT_WAITER_WAITING;
    sbt_handlers_interrupt(&mine, SIGUSR1);
    ck_assert_uint_eq(n_held_up, 1);
    ck_assert_ptr_eq(held_up_waiter, &mine);
    ck_assert_int_eq(pthread_join(sleeper[0].thread, NULL), 0); /* the one that held_up has chosen */
    ck_assert_int_eq(sleeper[0].result, EAGAIN);
    mine.state = SBT_WAITER_RETRY;
    sbt_handlers_interrupt(&mine, SIGUSR1);
    ck_assert_uint_eq(n_held_up, 2);
    ck_assert_int_eq(pthread_join(sleeper[1].thread, NULL), 0);
    ck_assert_int_eq(sleeper[1].result, EAGAIN);
    sbt_lot_not_relied_on();
    ck_assert_ptr_null(sbt_self.waiter);
}

static uint32_t n_others;

static struct sbt_waiter *choose_itself(struct sbt_lot_queue *q, struct sbt_waiter *w) {
    (void)q;
    return w;
}

static struct sbt_waiter *count_others(struct sbt_lot_queue *q) {
    (void)q;
    n_others++;
    return NULL;
}

/*
 * A handler may interrupt a fiber inside switch/, and last. The fiber is awake: the next waiter is chosen. A fiber that
 * sleeps is woken before the handler runs on.
 */
TEST(inside_switch_an_interrupted_fiber_is_awake_and_another_is_woken) {
    static const struct sbt_lot_role relied_on = {
        .validate = validate, .held_up = choose_itself, .after = count_others};
    struct sbt_waiter mine = {.role = &relied_on};
    ck_assert(sbt_pool_start());
    struct sbt_fiber *f = sbt_pool_get(), *sleeps = sbt_pool_get();
    sbt_lot_start();
    n_others = 0;
    f->token = SBT_TOKEN_NONE;
    mine.wake_word = &f->token;
    sbt_lot_relied_on(&mine, &keys[0]);
    sbt_self.in_switch = 1;
    sbt_handlers_interrupt(&mine, SIGUSR1);
    ck_assert_uint_eq(n_others, 1);
    ck_assert_uint_eq(f->token, SBT_TOKEN_TOKEN);
    sleeps->token = SBT_TOKEN_PARKED;
    sleeps->home_call = SBT_HOME_NOTHING;
    ck_assert(sbt_fiber_unpark(&sleeps->token));
    ck_assert_uint_eq(sleeps->home_call, SBT_HOME_COME);
    sbt_self.in_switch = 0;
    sbt_lot_not_relied_on();
}
