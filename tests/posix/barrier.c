/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barriers. Source: POSIX.1-2017 pthread_barrier_init, _wait, _destroy. Not a cancellation point: cancel_not.c.
 */
#include "topic.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_barrier_t barrier;
    atomic_int arrived, serial, passed;
    int rounds, n;
    int plain[64];
} b;

static void *one_round(void *unused) {
    (void)unused;
    atomic_fetch_add(&b.arrived, 1);
    int rc = pthread_barrier_wait(&b.barrier);
    CHECK(rc == 0 || rc == PTHREAD_BARRIER_SERIAL_THREAD);
    atomic_fetch_add(&b.serial, rc == PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK(atomic_load(&b.arrived) >= b.n);
    atomic_fetch_add(&b.passed, 1);
    return NULL;
}
static void run_threads(int n_threads, void *(*routine)(void *)) {
    pthread_t threads[256];
    CHECK(n_threads <= 256);
    for (int i = 0; i < n_threads; i++)
        threads[i] = thread_start(routine, (void *)(long)i);
    for (int i = 0; i < n_threads; i++)
        thread_join(threads[i]);
}

TEST(barrier_init__count_zero_returns_EINVAL, "count 0: EINVAL") {
    CHECK_RC(pthread_barrier_init(&b.barrier, NULL, 0), EINVAL);
}
/* glibc's limit; POSIX knows only EAGAIN for a lack of resources. */
TEST(barrier_init__count_beyond_limit_returns_EINVAL, "counts from INT_MAX on: EINVAL (glibc); INT_MAX - 1: 0") {
    CHECK_RC(pthread_barrier_init(&b.barrier, NULL, INT_MAX), EINVAL);
    CHECK_RC(pthread_barrier_init(&b.barrier, NULL, UINT_MAX), EINVAL);
    OK(pthread_barrier_init(&b.barrier, NULL, INT_MAX - 1));
    OK(pthread_barrier_destroy(&b.barrier));
}
TEST(barrier_wait__count_one_is_always_serial, "a barrier for 1 returns SERIAL_THREAD at once, 1000 times") {
    OK(pthread_barrier_init(&b.barrier, NULL, 1));
    for (int i = 0; i < 1000; i++)
        CHECK_INT(pthread_barrier_wait(&b.barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    OK(pthread_barrier_destroy(&b.barrier));
}
TEST(barrier_wait__blocks_until_all_have_arrived, "3 of 4 stay in until the 4th arrives") {
    pthread_t threads[3];
    b.n = 4;
    OK(pthread_barrier_init(&b.barrier, NULL, 4));
    for (int i = 0; i < 3; i++)
        threads[i] = thread_start(one_round, NULL);
    await(&b.arrived, 3);
    let_threads_block();
    CHECK_INT(atomic_load(&b.passed), 0);
    one_round(NULL);
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
    CHECK_INT(atomic_load(&b.passed), 4);
}
TEST(barrier_wait__exactly_one_serial_thread, "of 16 threads exactly one gets SERIAL_THREAD and 15 get 0") {
    b.n = 16;
    OK(pthread_barrier_init(&b.barrier, NULL, 16));
    run_threads(16, one_round);
    CHECK_INT(atomic_load(&b.serial), 1);
    OK(pthread_barrier_destroy(&b.barrier));
}
TEST(barrier_wait__more_threads_than_count, "48 threads at a barrier for 16: 3 rounds, 3 serial threads") {
    b.n = 16;
    OK(pthread_barrier_init(&b.barrier, NULL, 16));
    run_threads(48, one_round);
    CHECK_INT(atomic_load(&b.serial), 3);
    CHECK_INT(atomic_load(&b.passed), 48);
}

static void *many_rounds(void *unused) {
    (void)unused;
    for (int i = 1; i <= b.rounds; i++) {
        atomic_fetch_add(&b.arrived, 1);
        int rc = pthread_barrier_wait(&b.barrier);
        atomic_fetch_add(&b.serial, rc == PTHREAD_BARRIER_SERIAL_THREAD);
        int arrived = atomic_load(&b.arrived);
        if (arrived < i * b.n || arrived > (i + 1) * b.n)
            FAIL("%d arrivals after round %d of %d threads", arrived, i, b.n);
    }
    return NULL;
}
static void reuse(int n_threads, int rounds) {
    b.n = n_threads;
    b.rounds = rounds;
    OK(pthread_barrier_init(&b.barrier, NULL, (unsigned)n_threads));
    run_threads(n_threads, many_rounds);
    CHECK_INT(atomic_load(&b.serial), rounds);
    CHECK_INT(atomic_load(&b.arrived), n_threads * rounds);
    OK(pthread_barrier_destroy(&b.barrier));
}
TEST(barrier_wait__is_reset_for_the_next_round_2, "2 threads, 5000 rounds: no thread runs ahead, one serial each") {
    reuse(2, 5000);
}
TEST(barrier_wait__is_reset_for_the_next_round_16, "16 threads, 500 rounds: no thread runs ahead, one serial each") {
    reuse(16, 500);
}
TEST(barrier_wait__is_reset_for_the_next_round_200, "200 threads, 10 rounds: no thread runs ahead, one serial each") {
    reuse(200, 10);
}

static void *write_then_read_neighbour(void *argument) {
    int self = (int)(long)argument;
    for (int i = 1; i <= b.rounds; i++) {
        b.plain[self] = i;
        pthread_barrier_wait(&b.barrier);
        CHECK_INT(b.plain[(self + 1) % b.n], i);
        pthread_barrier_wait(&b.barrier);
    }
    return NULL;
}
TEST(barrier_wait__makes_writes_visible, "8 threads, 1000 rounds: each sees what its neighbour wrote before") {
    b.n = 8;
    b.rounds = 1000;
    OK(pthread_barrier_init(&b.barrier, NULL, 8));
    run_threads(8, write_then_read_neighbour);
}

/* glibc makes destroy wait for those on their way out, which POSIX's own example relies on. */
struct heap_barrier {
    pthread_barrier_t barrier;
};
static void *serial_destroys(void *argument) {
    struct heap_barrier *h = argument;
    if (pthread_barrier_wait(&h->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        OK(pthread_barrier_destroy(&h->barrier));
        memset(h, 0xa5, sizeof *h);
        free(h);
    }
    return NULL;
}
TEST(barrier_destroy__right_after_wait_by_one_thread,
     "200 rounds: the serial thread destroys and frees the barrier while "
     "the others may still be on their way out") {
    for (int round = 0; round < 200; round++) {
        struct heap_barrier *h = malloc(sizeof *h);
        pthread_t threads[4];
        CHECK(h != NULL);
        OK(pthread_barrier_init(&h->barrier, NULL, 4));
        for (int i = 0; i < 4; i++)
            threads[i] = thread_start(serial_destroys, h);
        for (int i = 0; i < 4; i++)
            thread_join(threads[i]);
    }
}
TEST(barrier_init__again_with_another_count, "destroyed and initialised for 2, 3, 4, 5 threads in turn") {
    for (b.n = 2; b.n <= 5; b.n++) {
        atomic_store(&b.arrived, 0);
        OK(pthread_barrier_init(&b.barrier, NULL, (unsigned)b.n));
        run_threads(b.n, one_round);
        OK(pthread_barrier_destroy(&b.barrier));
    }
    CHECK_INT(atomic_load(&b.serial), 4);
    CHECK_INT(atomic_load(&b.passed), 2 + 3 + 4 + 5);
}
TEST(barrier_destroy__unused, "destroy of a barrier that no thread has waited at: 0") {
    OK(pthread_barrier_init(&b.barrier, NULL, 7));
    OK(pthread_barrier_destroy(&b.barrier));
}
TEST(barrier_wait__never_returns_EINTR, "a waiter hit by 20 signals stays in and is let go by the last arrival") {
    signal_counter(SIGUSR1, false);
    b.n = 2;
    OK(pthread_barrier_init(&b.barrier, NULL, 2));
    pthread_t other = thread_start(one_round, NULL);
    await(&b.arrived, 1);
    let_threads_block();
    signal_thread(other, SIGUSR1, 20);
    CHECK_INT(atomic_load(&b.passed), 0);
    one_round(NULL);
    thread_join(other);
    CHECK_INT(atomic_load(&b.serial), 1);
}
/* POSIX: a thread in a signal handler does not keep others from passing once the count is reached. */
static atomic_int in_handler, leave_handler;
static void linger(int signo) {
    (void)signo;
    atomic_store(&in_handler, 1);
    while (atomic_load(&leave_handler) == 0)
        ;
}
TEST(barrier_wait__handler_of_one_waiter_does_not_stop_others,
     "the last arrival passes while a waiter is in a handler") {
    struct sigaction action = {.sa_handler = linger};
    SYS(sigaction(SIGUSR2, &action, NULL));
    b.n = 2;
    OK(pthread_barrier_init(&b.barrier, NULL, 2));
    pthread_t other = thread_start(one_round, NULL);
    await(&b.arrived, 1);
    let_threads_block();
    OK(pthread_kill(other, SIGUSR2));
    await(&in_handler, 1);
    one_round(NULL);
    CHECK_INT(atomic_load(&b.passed), 1);
    atomic_store(&leave_handler, 1);
    thread_join(other);
    CHECK_INT(atomic_load(&b.passed), 2);
}
