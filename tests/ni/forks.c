/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * forks: forks while objects are in use, three generations deep. A mutex is held, threads wait for it, others wait at a
 * barrier and at a condition. Each process locks and unlocks other mutexes, and its own children go on from there.
 */
#include "subject.h"

#include "lib/asleep.h"

enum { N_MUTEXES = 5, N_PAIRS = 20, N_GENERATIONS = 3 };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, mutex[N_MUTEXES], guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pid_t waiter[3];
static bool over;

static void *wait_for_mutex(void *unused) {
    asleep_from_here(&waiter[0]);
    OK(pthread_mutex_lock(&held));
    OK(pthread_mutex_unlock(&held));
    return unused;
}

static void *wait_at_barrier(void *unused) {
    asleep_from_here(&waiter[1]);
    int r = pthread_barrier_wait(&barrier);
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    return unused;
}

static void *wait_at_condition(void *unused) {
    OK(pthread_mutex_lock(&guard));
    asleep_from_here(&waiter[2]);
    while (!over)
        OK(pthread_cond_wait(&cond, &guard));
    OK(pthread_mutex_unlock(&guard));
    return unused;
}

static void use(void) {
    for (int i = 0; i < N_PAIRS * N_MUTEXES; i++) {
        OK(pthread_mutex_lock(&mutex[i % N_MUTEXES]));
        OK(pthread_mutex_unlock(&mutex[i % N_MUTEXES]));
    }
}

static void live(int generation) {
    use();
    if (generation < N_GENERATIONS) {
        pid_t pid = fork();
        SYS(pid);
        if (pid == 0) {
            live(generation + 1);
            OK(pthread_mutex_unlock(&held)); /* its owner is this thread, in each process */
            OK(pthread_mutex_lock(&held));
            exit(0);
        }
        child_join(pid);
    }
    use();
}

int main(void) {
    void *(*const routine[3])(void *) = {wait_for_mutex, wait_at_barrier, wait_at_condition};
    pthread_t thread[3];
    OK(pthread_barrier_init(&barrier, NULL, 3));
    for (int i = 0; i < N_MUTEXES; i++)
        OK(pthread_mutex_init(&mutex[i], NULL));
    OK(pthread_mutex_lock(&held));
    for (int i = 0; i < 3; i++) {
        thread[i] = start(routine[i], NULL);
        await_asleep(&waiter[i]);
    }
    live(0);
    OK(pthread_mutex_unlock(&held));
    OK(pthread_mutex_lock(&guard));
    over = true;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&guard));
    thread_join(thread[0]);
    pthread_t second = start(wait_at_barrier, NULL);
    wait_at_barrier(NULL);
    thread_join(second);
    thread_join(thread[1]);
    thread_join(thread[2]);
    return 0;
}
