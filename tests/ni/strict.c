/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * strict [THREADS] [ROUNDS]: the paper's errors. A lock, a wait or a barrier that finds no queue element is EAGAIN, and
 * then has not happened: a mutex is not held, or still held. Prints how often each of them was.
 */
#include "subject.h"

static unsigned n_threads, n_rounds;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t pairs[512]; /* of two threads: they need one element, whatever the number of threads */
static struct inside inside;
static atomic_uint n_lock, n_wait, n_barrier, n_locked, n_serial;

static void lock(void) {
    int r;
    while ((r = pthread_mutex_lock(&mutex)) == EAGAIN) {
        atomic_fetch_add(&n_lock, 1);
        sched_yield();
    }
    OK(r);
    atomic_fetch_add(&n_locked, 1);
    go_in(&inside);
}

static void unlock(void) {
    go_out(&inside);
    OK(pthread_mutex_unlock(&mutex));
}

static void *worker(void *which) {
    pthread_barrier_t *barrier = &pairs[(uintptr_t)which / 2];
    for (unsigned i = 0; i < n_rounds; i++) {
        lock();
        if (i % 4 == 0) {
            sched_yield(); /* let the queue fill */
        } else if (i % 4 == 1) {
            struct timespec at = time_in_us(CLOCK_REALTIME, 100);
            go_out(&inside);
            int r = pthread_cond_timedwait(&cond, &mutex, &at);
            CHECK(r == 0 || r == ETIMEDOUT || r == EAGAIN);
            atomic_fetch_add(&n_wait, r == EAGAIN);
            atomic_fetch_add(&n_locked, 1);
            go_in(&inside);
        } else {
            OK(pthread_cond_signal(&cond));
        }
        unlock();
    }
    for (unsigned i = 0; i < n_rounds; i++) {
        int r;
        while ((r = pthread_barrier_wait(barrier)) == EAGAIN) {
            atomic_fetch_add(&n_barrier, 1);
            sched_yield();
        }
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
        atomic_fetch_add(&n_serial, r != 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    n_threads = argument(argc, argv, 1, 32);
    n_rounds = argument(argc, argv, 2, 100);
    CHECK(n_threads % 2 == 0);
    for (unsigned i = 0; i < n_threads / 2; i++)
        OK(pthread_barrier_init(&pairs[i], NULL, 2));
    run_threads(n_threads, worker);
    CHECK(inside.entered == n_locked);
    CHECK(n_serial == n_threads * n_rounds / 2);
    printf("lock %u wait %u barrier %u\n", n_lock, n_wait, n_barrier);
    return 0;
}
