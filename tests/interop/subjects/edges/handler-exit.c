/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A signal stops threads that are blocked in a mutex, a read-write lock, a condition, a semaphore (argument 1): its
 * handler calls pthread_exit. Their stacks go, and whatever of a wait stood on them must
 * have left the object's queue: it must serve the threads that come later and those that stayed. In a condition the
 * clean-ups run with the mutex held, as after a cancellation.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>

#include "lib/asleep.h"
#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/threads.h"

enum { N_STOPPED = 4, N_SERVED = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static char object;
static pid_t tid[N_STOPPED + N_SERVED];
static int go, n_held, n_served;

static void stop(int number) {
    (void)number;
    pthread_exit(NULL);
}

static void release(void *arg) {
    (void)arg;
    n_held += pthread_mutex_trylock(&mutex) == EBUSY;
    pthread_mutex_unlock(&mutex);
}

static void served(void) {
    __atomic_add_fetch(&n_served, 1, __ATOMIC_SEQ_CST);
}

static void *blocked(void *arg) {
    struct timespec at = time_in_ms(CLOCK_REALTIME, 8000);
    pid_t *mine = arg;
    int stays = mine >= tid + N_STOPPED;
    if (object == 'm') {
        asleep_from_here(mine);
        if ((stays ? pthread_mutex_timedlock(&mutex, &at) : pthread_mutex_lock(&mutex)) == 0) {
            served();
            pthread_mutex_unlock(&mutex);
        }
    } else if (object == 'r') {
        asleep_from_here(mine);
        if ((stays ? pthread_rwlock_timedrdlock(&rwlock, &at) : pthread_rwlock_wrlock(&rwlock)) == 0) {
            served();
            pthread_rwlock_unlock(&rwlock);
        }
    } else if (object == 'c') {
        int result = 0;
        pthread_mutex_lock(&mutex);
        pthread_cleanup_push(release, NULL);
        asleep_from_here(mine);
        while (!go && result == 0)
            result = stays ? pthread_cond_timedwait(&cond, &mutex, &at) : pthread_cond_wait(&cond, &mutex);
        pthread_cleanup_pop(0);
        if (result == 0)
            served();
        pthread_mutex_unlock(&mutex);
    } else {
        asleep_from_here(mine);
        if ((stays ? sem_timedwait(&sem, &at) : sem_wait(&sem)) == 0)
            served();
    }
    return NULL;
}

/* The stacks of those that went are used again: nothing may come to lie where it was by chance. */
static void *blocked_deeper(void *arg) {
    volatile char filler[1000];
    for (size_t i = 0; i < sizeof filler; i++)
        filler[i] = (char)0xEE;
    void *result = blocked(arg);
    return filler[0] == filler[1] ? result : arg;
}

int main(int argc, char **argv) {
    pthread_t thread[N_STOPPED + N_SERVED];
    CHECK(argc == 2);
    object = argv[1][0];
    signal(SIGUSR1, stop);
    sem_init(&sem, 0, 0);
    if (object == 'm')
        pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);

    /* Head and middle of the queue go; one that stays is between them and the others come behind. */
    static const int order[] = {0, 1, N_STOPPED, 2, 3, N_STOPPED + 1, N_STOPPED + 2, N_STOPPED + 3};
    for (int i = 0; i < N_STOPPED + N_SERVED; i++) {
        int k = order[i];
        thread[k] = thread_start(k < N_STOPPED ? blocked : blocked_deeper, &tid[k]);
        await_asleep(&tid[k]);
        if (i == N_STOPPED) {
            for (int j = 0; j < N_STOPPED; j++)
                pthread_kill(thread[j], SIGUSR1);
            for (int j = 0; j < N_STOPPED; j++)
                thread_join(thread[j]);
        }
    }
    if (object == 'm') {
        pthread_mutex_unlock(&mutex);
    } else if (object == 'r') {
        pthread_rwlock_unlock(&rwlock);
    } else if (object == 'c') {
        pthread_mutex_lock(&mutex);
        go = 1;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    } else {
        for (int i = 0; i < N_SERVED; i++)
            sem_post(&sem);
    }
    for (int i = N_STOPPED; i < N_STOPPED + N_SERVED; i++)
        thread_join(thread[i]);
    printf("%c: served %d of %d, clean-ups with the mutex held %d\n", object, n_served, N_SERVED, n_held);
    return n_served != N_SERVED || n_held != (object == 'c' ? N_STOPPED : 0);
}
