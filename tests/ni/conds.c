/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * conds [ROUNDS]: a condition lives where its mutex is. What becomes of it when the mutex is another one, is made anew
 * at the same place, or is one that the hardware does not have.
 */
#include "subject.h"

#include <semaphore.h>

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t about_to_wait;
static unsigned turn;

/* One wait for `turn` to become `wanted`; a thread that changes it holds the mutex. */
struct wait {
    pthread_mutex_t *mutex;
    unsigned wanted;
    unsigned depth; /* of a recursive mutex */
};

static void *wait(void *argument_of_it) {
    struct wait *w = argument_of_it;
    for (unsigned i = 0; i < w->depth; i++)
        OK(pthread_mutex_lock(w->mutex));
    sem_post(&about_to_wait);
    while (turn != w->wanted)
        OK(pthread_cond_wait(&cond, w->mutex));
    for (unsigned i = 0; i < w->depth; i++)
        OK(pthread_mutex_unlock(w->mutex));
    return NULL;
}

static void exchange(pthread_mutex_t *mutex, bool broadcast) {
    pthread_t threads[3];
    struct wait w = {mutex, turn + 1, 1};
    unsigned n = broadcast ? 3 : 1;
    for (unsigned i = 0; i < n; i++)
        threads[i] = start(wait, &w);
    for (unsigned i = 0; i < n; i++)
        while (sem_wait(&about_to_wait) != 0)
            ;
    OK(pthread_mutex_lock(mutex));
    turn++;
    OK(broadcast ? pthread_cond_broadcast(&cond) : pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(mutex));
    for (unsigned i = 0; i < n; i++)
        thread_join(threads[i]);
}

static void times_out(pthread_mutex_t *mutex) {
    struct timespec at = time_in_us(CLOCK_REALTIME, 500);
    int r;
    do
        r = pthread_cond_timedwait(&cond, mutex, &at);
    while (r == 0); /* a spurious wake-up */
    CHECK(r == ETIMEDOUT);
}

static void two_mutexes(unsigned n_rounds) {
    static pthread_mutex_t mutexes[5];
    for (unsigned i = 0; i < n_rounds; i++)
        exchange(&mutexes[i % 5 * 3 % 5], i % 3 == 0);
    for (unsigned i = 0; i < 5; i++) {
        OK(pthread_mutex_lock(&mutexes[i]));
        times_out(&mutexes[i]);
        OK(pthread_mutex_unlock(&mutexes[i]));
    }
}

static void made_anew(unsigned n_rounds) {
    pthread_mutex_t mutex;
    for (unsigned i = 0; i < n_rounds; i++) {
        OK(pthread_mutex_init(&mutex, NULL));
        exchange(&mutex, i % 2 == 0);
        OK(pthread_mutex_destroy(&mutex));
    }
    /* And without destroy: its memory was another object meanwhile. */
    for (unsigned i = 0; i < n_rounds; i++) {
        memset(&mutex, 0xAA, sizeof mutex);
        OK(pthread_mutex_init(&mutex, NULL));
        exchange(&mutex, i % 2 == 0);
    }
}

static void *try_it(void *mutex) {
    return (void *)(intptr_t)pthread_mutex_trylock(mutex);
}

static int tried_by_another(pthread_mutex_t *mutex) {
    return (int)(intptr_t)thread_join(start(try_it, mutex));
}

/* A wait at depth 2 gives up one level, as in the C library: the mutex stays held, and the wait can only time out. */
static void recursive(unsigned n_rounds) {
    pthread_mutex_t mutex;
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    OK(pthread_mutex_init(&mutex, &attr));
    for (unsigned i = 0; i < n_rounds; i++)
        exchange(&mutex, i % 2 == 0);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_lock(&mutex));
    times_out(&mutex);
    CHECK(tried_by_another(&mutex) == EBUSY);
    OK(pthread_mutex_unlock(&mutex));
    CHECK(tried_by_another(&mutex) == EBUSY);
    times_out(&mutex); /* depth 1 */
    OK(pthread_mutex_unlock(&mutex));
    CHECK_RC(pthread_mutex_unlock(&mutex), EPERM);
    OK(pthread_mutex_destroy(&mutex));
    OK(pthread_mutexattr_destroy(&attr));
}

/* The C library's own mutexes, and ours again on the same condition. */
static void theirs(unsigned n_rounds, bool robust) {
    pthread_mutex_t mutex, ours = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    if (robust)
        OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    else
        OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
    OK(pthread_mutex_init(&mutex, &attr));
    for (unsigned i = 0; i < n_rounds; i++) {
        exchange(&mutex, i % 2 == 0);
        exchange(&ours, i % 3 == 0);
    }
    OK(pthread_mutex_lock(&mutex));
    times_out(&mutex);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_mutex_destroy(&mutex));
    OK(pthread_mutexattr_destroy(&attr));
}

int main(int argc, char **argv) {
    unsigned n_rounds = argument(argc, argv, 1, 50);
    sem_init(&about_to_wait, 0, 0);
    two_mutexes(n_rounds);
    made_anew(n_rounds);
    recursive(n_rounds);
    theirs(n_rounds, true);
    theirs(n_rounds, false);
    OK(pthread_cond_destroy(&cond));
    return 0;
}
