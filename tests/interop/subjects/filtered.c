/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A little of everything that waits, in some milliseconds, for filters.c: it is started under a filter of system calls.
 * It makes no system call but by the C library's own functions of threads: an author of a filter, to which this
 * program is known, does not know Subutai's. Exit status 0, and the same text each time.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/threads.h"

#define N 4
#define ROUNDS 24
#define CHILD_SIGNALLED                                                                                                \
    100 /* the exit status, and the number of the signal that ended the child; filters.c has it too */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sems[N];
static long n_locked, n_written, n_taken;
static unsigned turn;

static void take_turn(unsigned id) {
    OK(pthread_mutex_lock(&mutex));
    while (turn % N != id)
        OK(pthread_cond_wait(&cond, &mutex));
    turn++;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
}

static void *work(void *number) {
    unsigned id = (unsigned)(long)number;
    for (int i = 0; i < 10 * ROUNDS; i++) {
        OK(pthread_mutex_lock(&mutex));
        n_locked++;
        OK(pthread_mutex_unlock(&mutex));
    }
    for (int i = 0; i < ROUNDS; i++) {
        int r = pthread_barrier_wait(&barrier);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    }
    for (int i = 0; i < ROUNDS; i++)
        take_turn(id);
    for (int i = 0; i < ROUNDS; i++) {
        OK_ERRNO(sem_wait(&sems[id]));
        n_taken++;
        OK_ERRNO(sem_post(&sems[(id + 1) % N]));
    }
    for (int i = 0; i < ROUNDS; i++) {
        bool writes = i % 4 == 0;
        OK(writes ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock));
        n_written += writes;
        OK(pthread_rwlock_unlock(&rwlock));
    }
    return number;
}

static void run_all(void) {
    pthread_t threads[N];
    OK(pthread_barrier_init(&barrier, NULL, N));
    for (unsigned i = 0; i < N; i++)
        OK_ERRNO(sem_init(&sems[i], 0, i == 0));
    for (long i = 0; i < N; i++)
        threads[i] = thread_start(work, (void *)i);
    for (int i = 0; i < N; i++)
        thread_join(threads[i]);
    printf("locked %ld, turns %u, taken %ld, written %ld\n", n_locked, turn, n_taken, n_written);
    fflush(stdout);
}

/* Waits that end by their deadlines, with another thread beside. */
static void *wait_in_vain(void *unused) {
    struct timespec soon = time_in_ms(CLOCK_REALTIME, 2);
    CHECK_RC(pthread_mutex_timedlock(&mutex, &soon), ETIMEDOUT);
    CHECK_ERRNO(sem_timedwait(&sems[1], &soon), ETIMEDOUT);
    CHECK_RC(pthread_rwlock_timedrdlock(&rwlock, &soon), ETIMEDOUT);
    return unused;
}

static void wait_for_deadlines(void) {
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_rwlock_wrlock(&rwlock));
    pthread_t thread = thread_start(wait_in_vain, NULL);
    struct timespec soon = time_in_ms(CLOCK_REALTIME, 2);
    OK(pthread_mutex_lock(&own));
    int r;
    while ((r = pthread_cond_timedwait(&never, &own, &soon)) == 0)
        ;
    CHECK_RC(r, ETIMEDOUT);
    OK(pthread_mutex_unlock(&own));
    thread_join(thread);
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_mutex_unlock(&mutex));
    puts("deadlines");
    fflush(stdout);
}

/* A thread that ends is the owner for good of what it holds. The next thread gets its memory, but is another. */
static pthread_mutex_t abandoned;

static void *abandon(void *unused) {
    OK(pthread_mutex_lock(&abandoned));
    return unused;
}

static void *find_abandoned(void *unused) {
    CHECK_RC(pthread_mutex_trylock(&abandoned), EBUSY);
    CHECK_RC(pthread_mutex_unlock(&abandoned), EPERM);
    return unused;
}

static void leave_to_others(void) {
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
    OK(pthread_mutex_init(&abandoned, &attr));
    thread_join(thread_start(abandon, NULL));
    thread_join(thread_start(find_abandoned, NULL));
    puts("owners");
    fflush(stdout);
}

static void fork_one(void) {
    int status = -1;
    pid_t child = fork();
    SYS(child);
    if (child == 0) {
        run_all();
        _exit(0);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        _exit(CHILD_SIGNALLED + WTERMSIG(status));
    printf("child %d\n", WEXITSTATUS(status));
}

int main(void) {
    run_all();
    wait_for_deadlines();
    leave_to_others();
    fork_one();
    return 0;
}
