/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process-shared condition with a private mutex, which POSIX allows between threads of one process. A library that
 * gives shared objects to the C library and serves private ones itself has two owners in one wait: the mutex must be
 * released and taken again by the functions that the program uses for it. Threads take turns; an overlap means that
 * two were let in, a hang that one was lost.
 */
#include <pthread.h>
#include <stdio.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/threads.h"

enum { N_THREADS = 4, N_ROUNDS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond;
static int turn, inside, n_overlaps;
static long n_sections;

static void look(void) {
    if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) != 1)
        n_overlaps++;
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
}

static void *take_turns(void *arg) {
    int me = (int)(long)arg;
    for (int i = 0; i < N_ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        look();
        while (turn != me) {
            OK(pthread_cond_wait(&cond, &lock));
            look();
        }
        n_sections++;
        turn = (turn + 1) % N_THREADS;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t thread[N_THREADS];
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&cond, &attr);

    struct timespec at = time_in_ms(CLOCK_REALTIME, -1000);
    pthread_mutex_lock(&lock);
    CHECK(pthread_cond_timedwait(&cond, &lock, &at) != 0);
    CHECK(pthread_mutex_trylock(&lock) != 0);
    pthread_mutex_unlock(&lock);

    for (long i = 0; i < N_THREADS; i++)
        thread[i] = thread_start(take_turns, (void *)i);
    for (int i = 0; i < N_THREADS; i++)
        thread_join(thread[i]);
    printf("sections %ld of %d, overlaps %d\n", n_sections, N_THREADS * N_ROUNDS, n_overlaps);
    return n_sections != N_THREADS * N_ROUNDS || n_overlaps != 0;
}
