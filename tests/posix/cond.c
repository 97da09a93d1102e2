/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Condition variables: wait, signal, broadcast, init and destroy. Deadlines: cond_timed.c; mutexes of other types:
 * cond_mutex.c; cancellation: cancel.c.
 * Source: POSIX.1-2017 pthread_cond_wait, _signal, _broadcast, _init, _destroy.
 *
 * A waiter counts itself in under the mutex before it waits, so a thread that holds the mutex and sees the count knows
 * that the waiter is blocked: no test depends on time. Waits end on tickets, because wake-ups may be spurious.
 */
#include "topic.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int waiting, tickets, done, inside;
} c = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void *wait_for_ticket(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&c.mutex));
    c.waiting++;
    while (c.tickets == 0)
        OK(pthread_cond_wait(&c.cond, &c.mutex));
    CHECK_RC(pthread_mutex_trylock(&c.mutex), EBUSY);
    CHECK_INT(++c.inside, 1);
    c.tickets--;
    c.waiting--;
    c.done++;
    c.inside--;
    OK(pthread_mutex_unlock(&c.mutex));
    return NULL;
}
static int locked_read(const int *value) {
    OK(pthread_mutex_lock(&c.mutex));
    int now = *value;
    OK(pthread_mutex_unlock(&c.mutex));
    return now;
}
static void await_value(const int *value, int wanted) {
    while (locked_read(value) != wanted)
        sleep_ms(1);
}
static void start_waiters(pthread_t *threads, int n) {
    for (int i = 0; i < n; i++)
        threads[i] = thread_start(wait_for_ticket, NULL);
    await_value(&c.waiting, n);
}
static void join_all(pthread_t *threads, int n) {
    for (int i = 0; i < n; i++)
        thread_join(threads[i]);
}

TEST(cond_wait__releases_the_mutex, "while a thread waits another one can lock the mutex") {
    pthread_t t;
    start_waiters(&t, 1); /* returns only after having seen the count under the mutex */
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = 1;
    OK(pthread_cond_signal(&c.cond));
    OK(pthread_mutex_unlock(&c.mutex));
    thread_join(t);
}
TEST(cond_wait__returns_with_the_mutex_held, "a signalled waiter does not return before the signaller unlocks") {
    pthread_t t;
    start_waiters(&t, 1);
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = 1;
    OK(pthread_cond_signal(&c.cond));
    let_threads_block();
    CHECK_INT(c.done, 0);
    OK(pthread_mutex_unlock(&c.mutex));
    thread_join(t);
    CHECK_INT(c.done, 1);
}
TEST(cond_wait__blocks_without_signal, "a waiter stays in while no signal comes") {
    pthread_t t;
    start_waiters(&t, 1);
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = 1;
    OK(pthread_mutex_unlock(&c.mutex));
    let_threads_block();
    /* A spurious wake-up may end the wait; the thread must then have taken the ticket properly. */
    int done = locked_read(&c.done);
    CHECK_INT(done + locked_read(&c.tickets), 1);
    OK(pthread_cond_signal(&c.cond));
    thread_join(t);
}
TEST(cond_signal__wakes_one_waiter_each,
     "20 waiters, 20 signals one by one under the mutex: one ticket taken for each") {
    enum { N = 20 };
    pthread_t threads[N];
    start_waiters(threads, N);
    for (int i = 1; i <= N; i++) {
        OK(pthread_mutex_lock(&c.mutex));
        c.tickets++;
        OK(pthread_cond_signal(&c.cond));
        OK(pthread_mutex_unlock(&c.mutex));
        await_value(&c.done, i);
    }
    join_all(threads, N);
}
TEST(cond_signal__without_the_mutex, "20 waiters, 20 signals sent after unlock: all are woken") {
    enum { N = 20 };
    pthread_t threads[N];
    start_waiters(threads, N);
    for (int i = 1; i <= N; i++) {
        OK(pthread_mutex_lock(&c.mutex));
        c.tickets++;
        OK(pthread_mutex_unlock(&c.mutex));
        OK(pthread_cond_signal(&c.cond));
    }
    join_all(threads, N);
}
TEST(cond_signal__burst_wakes_as_many, "20 waiters, 20 signals in one section: all are woken") {
    enum { N = 20 };
    pthread_t threads[N];
    start_waiters(threads, N);
    OK(pthread_mutex_lock(&c.mutex));
    for (int i = 0; i < N; i++) {
        c.tickets++;
        OK(pthread_cond_signal(&c.cond));
    }
    OK(pthread_mutex_unlock(&c.mutex));
    join_all(threads, N);
}
TEST(cond_broadcast__wakes_all_waiters, "64 waiters, one broadcast under the mutex: all return") {
    enum { N = 64 };
    pthread_t threads[N];
    start_waiters(threads, N);
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = N;
    OK(pthread_cond_broadcast(&c.cond));
    OK(pthread_mutex_unlock(&c.mutex));
    join_all(threads, N);
    CHECK_INT(c.done, N);
}
TEST(cond_broadcast__without_the_mutex, "64 waiters, one broadcast after unlock: all return") {
    enum { N = 64 };
    pthread_t threads[N];
    start_waiters(threads, N);
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = N;
    OK(pthread_mutex_unlock(&c.mutex));
    OK(pthread_cond_broadcast(&c.cond));
    join_all(threads, N);
}
static void *do_broadcast(void *unused) {
    (void)unused;
    OK(pthread_cond_broadcast(&c.cond));
    return NULL;
}
TEST(cond_broadcast__while_another_thread_holds_the_mutex,
     "broadcast by a thread without the mutex while a third holds "
     "it: no waiter returns before it is free") {
    enum { N = 10 };
    pthread_t threads[N];
    start_waiters(threads, N);
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = N;
    pthread_t helper = thread_start(do_broadcast, NULL);
    thread_join(helper);
    let_threads_block();
    CHECK_INT(c.done, 0);
    OK(pthread_mutex_unlock(&c.mutex));
    join_all(threads, N);
}
TEST(cond_signal__without_waiters_has_no_effect, "signals and broadcasts before a wait do not end it: ETIMEDOUT") {
    for (int i = 0; i < 10; i++) {
        OK(pthread_cond_signal(&c.cond));
        OK(pthread_cond_broadcast(&c.cond));
    }
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    OK(pthread_mutex_lock(&c.mutex));
    CHECK_RC(pthread_cond_timedwait(&c.cond, &c.mutex, &end), ETIMEDOUT);
    OK(pthread_mutex_unlock(&c.mutex));
}
/* POSIX: a signal unblocks a thread that is blocked, and no later waiter. glibc's 2.25 algorithm ensures it. */
TEST(cond_signal__is_not_consumed_by_a_later_waiter,
     "the signaller itself waits right after: its wait times out and the "
     "earlier waiter returns, 20 times") {
    for (int round = 0; round < 20; round++) {
        pthread_t t;
        start_waiters(&t, 1);
        OK(pthread_mutex_lock(&c.mutex));
        c.tickets = 1;
        OK(pthread_cond_signal(&c.cond));
        struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS / 6);
        CHECK_RC(pthread_cond_timedwait(&c.cond, &c.mutex, &end), ETIMEDOUT);
        OK(pthread_mutex_unlock(&c.mutex));
        thread_join(t);
    }
    CHECK_INT(c.done, 20);
}

static struct {
    pthread_cond_t not_empty, not_full;
    int filled, produced, consumed;
} queue = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};
enum { QUEUE_SIZE = 3, QUEUE_ITEMS = 4000 };

static void *produce(void *unused) {
    (void)unused;
    for (int i = 0; i < QUEUE_ITEMS; i++) {
        OK(pthread_mutex_lock(&c.mutex));
        while (queue.filled == QUEUE_SIZE)
            OK(pthread_cond_wait(&queue.not_full, &c.mutex));
        queue.filled++;
        queue.produced++;
        OK(pthread_cond_signal(&queue.not_empty));
        OK(pthread_mutex_unlock(&c.mutex));
    }
    return NULL;
}
static void *consume(void *unused) {
    (void)unused;
    for (int i = 0; i < QUEUE_ITEMS; i++) {
        OK(pthread_mutex_lock(&c.mutex));
        while (queue.filled == 0)
            OK(pthread_cond_wait(&queue.not_empty, &c.mutex));
        CHECK(--queue.filled >= 0);
        queue.consumed++;
        OK(pthread_mutex_unlock(&c.mutex));
        OK(pthread_cond_signal(&queue.not_full));
    }
    return NULL;
}
TEST(cond_signal__no_wakeup_is_lost, "4 producers and 4 consumers, queue of 3, 4000 items each: all arrive") {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(i % 2 == 0 ? produce : consume, NULL);
    join_all(threads, 8);
    CHECK_INT(queue.produced, 4 * QUEUE_ITEMS);
    CHECK_INT(queue.consumed, 4 * QUEUE_ITEMS);
    CHECK_INT(queue.filled, 0);
}

static struct { int turn, n, rounds; } ring;
static void *take_turns(void *argument) {
    int self = (int)(long)argument;
    for (int i = 0; i < ring.rounds; i++) {
        OK(pthread_mutex_lock(&c.mutex));
        while (ring.turn % ring.n != self)
            OK(pthread_cond_wait(&c.cond, &c.mutex));
        ring.turn++;
        OK(pthread_cond_broadcast(&c.cond));
        OK(pthread_mutex_unlock(&c.mutex));
    }
    return NULL;
}
TEST(cond_broadcast__strict_turns, "8 threads take 300 turns each in strict order by broadcasts") {
    pthread_t threads[8];
    ring.n = 8;
    ring.rounds = 300;
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(take_turns, (void *)(long)i);
    join_all(threads, 8);
    CHECK_INT(ring.turn, 2400);
}

/* --- init and destroy --------------------------------------------------------------------------------------------- */
TEST(cond_init__null_attr_uses_realtime, "init with NULL over memory full of ones; a past REALTIME deadline is past") {
    memset(&c.cond, 0xff, sizeof c.cond);
    OK(pthread_cond_init(&c.cond, NULL));
    struct timespec end = time_in_ms(CLOCK_REALTIME, -1000);
    OK(pthread_mutex_lock(&c.mutex));
    CHECK_RC(pthread_cond_timedwait(&c.cond, &c.mutex, &end), ETIMEDOUT);
    end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_RC(pthread_cond_timedwait(&c.cond, &c.mutex, &end), ETIMEDOUT);
    CHECK(time_since_ms(CLOCK_REALTIME, end) >= -1);
    OK(pthread_mutex_unlock(&c.mutex));
    OK(pthread_cond_destroy(&c.cond));
}
TEST(cond_initializer__static, "PTHREAD_COND_INITIALIZER serves wait and signal without init") {
    static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    CHECK(memcmp(&cond, &c.cond, sizeof cond) == 0);
    pthread_t t;
    start_waiters(&t, 1);
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = 1;
    OK(pthread_mutex_unlock(&c.mutex));
    OK(pthread_cond_signal(&c.cond));
    thread_join(t);
}
TEST(cond_destroy__without_waiters, "destroy of unused, signalled and used conditions: 0; init again works") {
    pthread_cond_t cond;
    for (int i = 0; i < 3; i++) {
        OK(pthread_cond_init(&cond, NULL));
        if (i > 0)
            OK(pthread_cond_signal(&cond));
        if (i > 1) {
            OK(pthread_mutex_lock(&c.mutex));
            CHECK_RC(pthread_cond_timedwait(&cond, &c.mutex, &time_epoch), ETIMEDOUT);
            OK(pthread_mutex_unlock(&c.mutex));
        }
        OK(pthread_cond_destroy(&cond));
    }
}

struct heap_cond {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int waiting, go;
    atomic_int out;
};
static void *wait_in_heap(void *argument) {
    struct heap_cond *h = argument;
    OK(pthread_mutex_lock(&h->mutex));
    h->waiting++;
    while (!h->go)
        OK(pthread_cond_wait(&h->cond, &h->mutex));
    OK(pthread_mutex_unlock(&h->mutex));
    atomic_fetch_add(&h->out, 1);
    return NULL;
}
/* POSIX: "it shall be safe to destroy an initialized condition variable upon which no threads are currently blocked";
 * and its example destroys right after the broadcast. The memory is overwritten to catch a waiter that still looks at
 * it. */
TEST(cond_destroy__right_after_broadcast,
     "100 rounds: 4 waiters woken by broadcast while the condition is destroyed and "
     "its memory overwritten at once") {
    for (int round = 0; round < 100; round++) {
        struct heap_cond h = {.mutex = PTHREAD_MUTEX_INITIALIZER};
        pthread_t threads[4];
        OK(pthread_cond_init(&h.cond, NULL));
        for (int i = 0; i < 4; i++)
            threads[i] = thread_start(wait_in_heap, &h);
        for (bool all = false; !all;) {
            OK(pthread_mutex_lock(&h.mutex));
            all = h.waiting == 4;
            if (all) {
                h.go = 1;
                OK(pthread_cond_broadcast(&h.cond));
            }
            OK(pthread_mutex_unlock(&h.mutex));
        }
        OK(pthread_cond_destroy(&h.cond));
        memset(&h.cond, 0xa5, sizeof h.cond);
        join_all(threads, 4);
        CHECK_INT(atomic_load(&h.out), 4);
    }
}
TEST(cond_wait__with_another_mutex_later, "one condition with 3 mutexes, one after the other") {
    struct heap_cond h[3] = {{.mutex = PTHREAD_MUTEX_INITIALIZER},
                             {.mutex = PTHREAD_MUTEX_INITIALIZER},
                             {.mutex = PTHREAD_MUTEX_INITIALIZER}};
    for (int i = 0; i < 3; i++) {
        struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS / 2);
        OK(pthread_mutex_lock(&h[i].mutex));
        CHECK_RC(pthread_cond_timedwait(&c.cond, &h[i].mutex, &end), ETIMEDOUT);
        CHECK_RC(pthread_mutex_trylock(&h[i].mutex), EBUSY);
        OK(pthread_mutex_unlock(&h[i].mutex));
    }
    pthread_t t;
    start_waiters(&t, 1);
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = 1;
    OK(pthread_cond_broadcast(&c.cond));
    OK(pthread_mutex_unlock(&c.mutex));
    thread_join(t);
}

/* --- signals ------------------------------------------------------------------------------------------------------ */
TEST(cond_wait__never_returns_EINTR, "a waiter hit by 20 signals gets 0 from every wait and its ticket in the end") {
    signal_counter(SIGUSR1, false);
    pthread_t t;
    start_waiters(&t, 1);
    signal_thread(t, SIGUSR1, 20);
    OK(pthread_mutex_lock(&c.mutex));
    c.tickets = 1;
    OK(pthread_cond_signal(&c.cond));
    OK(pthread_mutex_unlock(&c.mutex));
    thread_join(t);
}
