/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * waiters [THREADS]: so many wait for one mutex at once, by timed and untimed locks, and then on one condition. What
 * the engine does for each of them must not depend on how many the others are: the script counts it.
 *
 * waiters THREADS late: so many wait for one mutex, and the time of all is up at once. Each takes its request back, so
 * the mailboxes are full for a while. Threads that look into a full mailbox all the time leave the server no core, so
 * this counts how often a thread has given its core up.
 */
#include <sys/resource.h>

#include "subject.h"

#define SWITCHES_MOST 60 /* for each thread on the average; about 8 are needed */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static struct inside inside;
static atomic_uint n_coming;
static unsigned n_in;
static bool open;

static void *come_and_wait(void *which) {
    bool timed = (uintptr_t)which % 2 != 0;
    struct timespec at = time_in_us(CLOCK_REALTIME, 300000000);
    atomic_fetch_add(&n_coming, 1);
    OK(timed ? pthread_mutex_timedlock(&mutex, &at) : pthread_mutex_lock(&mutex));
    go_in(&inside);
    n_in++;
    go_out(&inside);
    while (!open)
        OK(pthread_cond_wait(&opened, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static bool all_are_in(unsigned n) {
    OK(pthread_mutex_lock(&mutex));
    bool all = n_in == n;
    OK(pthread_mutex_unlock(&mutex));
    return all;
}

static struct timespec late;

static void *come_and_be_late(void *unused) {
    (void)unused;
    atomic_fetch_add(&n_coming, 1);
    CHECK_INT(pthread_mutex_timedlock(&mutex, &late), ETIMEDOUT);
    return NULL;
}

static void start_all(pthread_t *threads, unsigned n, void *(*routine)(void *)) {
    for (uintptr_t i = 0; i < n; i++)
        threads[i] = start(routine, (void *)i);
    while (atomic_load(&n_coming) < n)
        sleep_us(1000);
    sleep_us(50000); /* from saying so to waiting */
}

static int all_late(pthread_t *threads, unsigned n) {
    struct rusage used;
    late = time_in_us(CLOCK_REALTIME, 1500000);
    OK(pthread_mutex_lock(&mutex));
    start_all(threads, n, come_and_be_late);
    for (unsigned i = 0; i < n; i++)
        thread_join(threads[i]);
    OK(pthread_mutex_unlock(&mutex));
    CHECK(getrusage(RUSAGE_SELF, &used) == 0);
    CHECK(used.ru_nvcsw < (long)n * SWITCHES_MOST);
    return 0;
}

int main(int argc, char **argv) {
    unsigned n = argument(argc, argv, 1, 1000);
    pthread_t *threads = calloc(n, sizeof *threads);
    CHECK(threads != NULL);
    if (argc > 2)
        return all_late(threads, n);
    OK(pthread_mutex_lock(&mutex));
    start_all(threads, n, come_and_wait);
    OK(pthread_mutex_unlock(&mutex));
    while (!all_are_in(n))
        sleep_us(1000);
    OK(pthread_mutex_lock(&mutex));
    open = true;
    OK(pthread_cond_broadcast(&opened));
    OK(pthread_mutex_unlock(&mutex));
    for (unsigned i = 0; i < n; i++)
        thread_join(threads[i]);
    free(threads);
    return 0;
}
