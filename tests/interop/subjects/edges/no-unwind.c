/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Built without unwind tables, as C programs may be: a cancelled wait cannot rely on the unwinder reaching the frames
 * below the program's. Every clean-up of the program runs, those of a condition with the mutex held, and mutex,
 * condition and semaphore serve the next thread.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "lib/asleep.h"
#include "lib/checks.h"
#include "lib/threads.h"

enum { N_ROUNDS = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static pid_t tid;
static int n_cleaned, n_held;

static void release(void *arg) {
    (void)arg;
    n_cleaned++;
    n_held += pthread_mutex_trylock(&lock) == EBUSY;
    pthread_mutex_unlock(&lock);
}

static void note(void *arg) {
    (void)arg;
    n_cleaned++;
}

static void *wait_for_ever(void *arg) {
    if (arg != NULL) {
        pthread_mutex_lock(&lock);
        pthread_cleanup_push(release, NULL);
        asleep_from_here(&tid);
        for (;;)
            pthread_cond_wait(&cond, &lock);
        pthread_cleanup_pop(0);
    } else {
        pthread_cleanup_push(note, NULL);
        asleep_from_here(&tid);
        for (;;)
            sem_wait(&sem);
        pthread_cleanup_pop(0);
    }
    return NULL;
}

int main(void) {
    sem_init(&sem, 0, 0);
    for (long i = 0; i < 2 * N_ROUNDS; i++) {
        tid = 0;
        pthread_t thread = thread_start(wait_for_ever, (void *)(i % 2));
        await_asleep(&tid);
        pthread_cancel(thread);
        thread_join_cancelled(thread);
    }
    OK(pthread_mutex_trylock(&lock));
    sem_post(&sem);
    OK_ERRNO(sem_trywait(&sem));
    printf("cleaned %d of %d, mutex held %d of %d\n", n_cleaned, 2 * N_ROUNDS, n_held, N_ROUNDS);
    return n_cleaned != 2 * N_ROUNDS || n_held != N_ROUNDS;
}
