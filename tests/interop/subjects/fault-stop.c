/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kill -STOP and -CONT in the middle of heavy locking. A child process works on every kind of object, with counts that
 * must come out right; the parent stops and continues it at arbitrary moments, so that it is frozen with locks held,
 * waiters queued and timed waits running (their deadlines may pass meanwhile: that is a timeout, not an error).
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_THREADS = 6, N_STOPS = 60, MIN_ROUNDS = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static long counter, turn, pair[2], n_broken, n_serial;
static int inside;
static volatile sig_atomic_t finish;
static int last_round; /* written between two barriers by the serial thread */

static void on_term(int number) {
    (void)number;
    finish = 1;
}

static void broken_unless(int ok) {
    if (!ok)
        __atomic_fetch_add(&n_broken, 1, __ATOMIC_RELAXED);
}

static void take_turn(long me) {
    pthread_mutex_lock(&turn_lock);
    while (turn % N_THREADS != me) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_sec++;
        int error = pthread_cond_timedwait(&turned, &turn_lock, &soon);
        broken_unless(error == 0 || error == ETIMEDOUT);
    }
    turn++;
    pthread_cond_broadcast(&turned);
    pthread_mutex_unlock(&turn_lock);
}

static void *work(void *arg) {
    long me = (long)arg;
    for (int round = 0;; round++) {
        for (int i = 0; i < 20; i++) {
            pthread_mutex_lock(&lock);
            counter++;
            pthread_mutex_unlock(&lock);
            if (i % N_THREADS == me) {
                pthread_rwlock_wrlock(&rwlock);
                pair[0]++;
                pair[1]++;
            } else {
                pthread_rwlock_rdlock(&rwlock);
                broken_unless(pair[0] == pair[1]);
            }
            pthread_rwlock_unlock(&rwlock);
            while (sem_wait(&semaphore) != 0)
                broken_unless(errno == EINTR);
            broken_unless(__atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED) <= 2);
            __atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
            sem_post(&semaphore);
        }
        take_turn(me);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            n_serial++;
            last_round = finish && round >= MIN_ROUNDS;
            broken_unless(counter == (long)(round + 1) * 20 * N_THREADS && turn == (long)(round + 1) * N_THREADS);
        }
        pthread_barrier_wait(&barrier);
        if (last_round)
            break;
        pthread_barrier_wait(&barrier); /* no thread writes last_round before all have read it */
    }
    return NULL;
}

static int worker_process(int ready) {
    pthread_t thread[N_THREADS];
    signal(SIGTERM, on_term);
    pthread_barrier_init(&barrier, NULL, N_THREADS);
    sem_init(&semaphore, 0, 2);
    for (long i = 0; i < N_THREADS; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)i) != 0)
            return 2;
    if (write(ready, "", 1) != 1)
        return 2;
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(thread[i], NULL);
    return n_broken != 0 || n_serial <= MIN_ROUNDS;
}

int main(void) {
    int ready[2], status = -1, n_stopped = 0;
    char byte;
    if (pipe(ready) != 0)
        return 2;
    pid_t pid = fork();
    if (pid == 0)
        _exit(worker_process(ready[1]));
    if (pid < 0 || read(ready[0], &byte, 1) != 1)
        return 2;
    for (int i = 0; i < N_STOPS; i++) {
        struct timespec a_while = {0, 500000 + 370000L * (i % 17)};
        nanosleep(&a_while, NULL);
        kill(pid, SIGSTOP);
        if (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status))
            n_stopped++;
        nanosleep(&a_while, NULL);
        kill(pid, SIGCONT);
    }
    kill(pid, SIGTERM);
    if (waitpid(pid, &status, 0) != pid)
        return 2;
    printf("stopped and continued %d times; the program %s\n", n_stopped,
           WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "ended with all counts right" : "failed");
    return !(n_stopped == N_STOPS && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
