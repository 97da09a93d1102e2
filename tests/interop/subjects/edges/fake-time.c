/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Under fake-time-lib.c or libfaketime: a deadline that the program computes from the time it is shown is reached after
 * as long as the program means, neither at once nor years later, and a wait that is ended before that ends well.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/threads.h"

enum { WAIT_MS = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int go;

static int wait_cond(const struct timespec *at) {
    int r = 0;
    pthread_mutex_lock(&lock);
    while (!go && r == 0)
        r = pthread_cond_timedwait(&cond, &lock, at);
    pthread_mutex_unlock(&lock);
    return r;
}

static int wait_sem(const struct timespec *at) {
    return sem_timedwait(&sem, at) == 0 ? 0 : errno;
}

static void times_out(int (*wait)(const struct timespec *)) {
    struct timespec begin = time_now(CLOCK_MONOTONIC); /* first: the thread may lose its core in between */
    struct timespec at = time_in_ms(CLOCK_REALTIME, WAIT_MS), past = time_in_ms(CLOCK_REALTIME, -1000);
    CHECK_RC(wait(&at), ETIMEDOUT);
    CHECK(time_since_ms(CLOCK_MONOTONIC, begin) >= WAIT_MS - 1); /* years later is what the test's limit finds */
    CHECK_RC(wait(&past), ETIMEDOUT);
}

static void *end_waits(void *arg) {
    sleep_ms(50);
    pthread_mutex_lock(&lock);
    go = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
    sleep_ms(50);
    sem_post(&sem);
    return arg;
}

int main(void) {
    sem_init(&sem, 0, 0);
    times_out(wait_cond);
    times_out(wait_sem);
    pthread_t thread = thread_start(end_waits, NULL);
    struct timespec later = time_in_ms(CLOCK_REALTIME, 100000);
    CHECK(wait_cond(&later) == 0 && wait_sem(&later) == 0);
    thread_join(thread);
    puts("waits end when they should");
    return 0;
}
