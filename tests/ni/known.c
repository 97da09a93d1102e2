/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * known: does an exact number of everything, which the statistics must tell. Semaphores are not the hardware's.
 *
 *   1000 locks and unlocks without contention
 *   7 barrier rounds of 5 threads
 *   10 signals, each of which finds a waiter: 10 waits, 11 locks and unlocks of each side
 *   3 broadcasts, each of which finds 4 waiters: 12 waits, 4 * 4 + 3 locks and unlocks
 *
 * known pair N: nothing but N locks and unlocks, by the second thread if N is negative, while main does nothing.
 * known turns N: one pair by each of N threads, one after the other.
 * known fork: 20 by the parent, 5 by a forked child that ends by exit, 10 more by the parent.
 */
#include "subject.h"

#include <semaphore.h>
#include <sys/wait.h>

enum { N_PAIRS = 1000, N_MEETING = 5, N_MEETINGS = 7, N_SIGNALS = 10, N_BROADCASTS = 3, N_CROWD = 4 };

static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t about_to_wait;
static unsigned turn;

/* With a pause, so that none finds the state machine still at the unlock before it. */
static void pairs(int n) {
    for (int i = 0; i < n; i++) {
        struct timespec begin, now;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 1000);
        MUST(pthread_mutex_lock(&alone));
        MUST(pthread_mutex_unlock(&alone));
    }
}

static void *pairs_of(void *n) {
    pairs((int)(intptr_t)n);
    return NULL;
}

static void *meet(void *unused) {
    (void)unused;
    for (int i = 0; i < N_MEETINGS; i++) {
        int r = pthread_barrier_wait(&barrier);
        EXPECT(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    }
    return NULL;
}

static void wait_for(unsigned wanted) {
    MUST(pthread_mutex_lock(&mutex));
    EXPECT(turn == wanted - 1);
    sem_post(&about_to_wait);
    MUST(pthread_cond_wait(&cond, &mutex)); /* once: the hardware knows no spurious wake-up while there are elements */
    EXPECT(turn == wanted);
    MUST(pthread_mutex_unlock(&mutex));
}

static void *wait_all(void *n) {
    for (unsigned i = 1; i <= (unsigned)(uintptr_t)n; i++)
        wait_for(i);
    MUST(pthread_mutex_lock(&mutex));
    MUST(pthread_mutex_unlock(&mutex));
    return NULL;
}

static void give_turn(unsigned n_waiters, int (*wake)(pthread_cond_t *)) {
    for (unsigned i = 0; i < n_waiters; i++)
        while (sem_wait(&about_to_wait) != 0)
            ;
    MUST(pthread_mutex_lock(&mutex)); /* when the last of them has let it go: by waiting */
    turn++;
    MUST(wake(&cond));
    MUST(pthread_mutex_unlock(&mutex));
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "pair") == 0) {
        int n = atoi(argv[2]);
        if (n >= 0)
            pairs(n);
        else
            MUST(pthread_join(start(pairs_of, (void *)(intptr_t)-n), NULL));
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "turns") == 0) {
        for (int i = 0; i < atoi(argv[2]); i++)
            MUST(pthread_join(start(pairs_of, (void *)(intptr_t)1), NULL));
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        int status;
        pairs(20);
        pid_t pid = fork();
        EXPECT(pid >= 0);
        pairs(pid == 0 ? 5 : 10);
        EXPECT(pid == 0 || (waitpid(pid, &status, 0) == pid && status == 0));
        return 0;
    }
    pthread_t threads[N_CROWD];
    sem_init(&about_to_wait, 0, 0);
    pairs(N_PAIRS);

    MUST(pthread_barrier_init(&barrier, NULL, N_MEETING));
    run_threads(N_MEETING, meet);

    threads[0] = start(wait_all, (void *)(uintptr_t)N_SIGNALS);
    for (int i = 0; i < N_SIGNALS; i++)
        give_turn(1, pthread_cond_signal);
    MUST(pthread_mutex_lock(&mutex));
    MUST(pthread_mutex_unlock(&mutex));
    MUST(pthread_join(threads[0], NULL));

    turn = 0;
    for (unsigned i = 0; i < N_CROWD; i++)
        threads[i] = start(wait_all, (void *)(uintptr_t)N_BROADCASTS);
    for (int i = 0; i < N_BROADCASTS; i++)
        give_turn(N_CROWD, pthread_cond_broadcast);
    for (unsigned i = 0; i < N_CROWD; i++)
        MUST(pthread_join(threads[i], NULL));
    return 0;
}
