/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * child [ROUNDS] [raw]: forks (by _Fork with `raw`) while other threads are busy with every kind of object, held, free
 * and waited for, and the child goes on with what POSIX lets it know: what the forking thread holds it holds, what was
 * free is free. Then the child makes threads of its own and uses everything.
 */
#include "subject.h"

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, idle = PTHREAD_MUTEX_INITIALIZER,
                       busy[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                  PTHREAD_MUTEX_INITIALIZER},
                       wanted = PTHREAD_MUTEX_INITIALIZER, waited = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t pair, full;
static atomic_bool over;
static unsigned turn, n_rounds;

static void *lock_busily(void *which) {
    pthread_mutex_t *mine = &busy[(uintptr_t)which % 4];
    for (unsigned i = 0; !over; i++) {
        OK(pthread_mutex_lock(mine));
        OK(pthread_mutex_unlock(mine));
        pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER; /* allocations under way at any time */
        OK(pthread_mutex_lock(&fresh));
        OK(pthread_mutex_unlock(&fresh));
        OK(pthread_mutex_destroy(&fresh));
        if (i % 16 == 0)
            sleep_us(20); /* the child needs a core too */
    }
    return NULL;
}

static void *want(void *unused) { /* in the queue of a mutex that the forking thread holds */
    (void)unused;
    while (!over) {
        OK(pthread_mutex_lock(&wanted));
        OK(pthread_mutex_unlock(&wanted));
        sleep_us(20);
    }
    return NULL;
}

static void *wait_on(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&waited));
    while (!over)
        OK(pthread_cond_wait(&cond, &waited));
    OK(pthread_mutex_unlock(&waited));
    return NULL;
}

static void *meet_busily(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < n_rounds; i += 2)
        pthread_barrier_wait(&pair); /* waits while main does something else, until it comes in every second round */
    return NULL;
}

/* ---- in the child ---- */

static void *add(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        OK(pthread_mutex_lock(&idle));
        turn++;
        OK(pthread_mutex_unlock(&idle));
        pthread_barrier_wait(&full);
    }
    return NULL;
}

static void *wait_turn(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&waited));
    while (turn != 1)
        OK(pthread_cond_wait(&cond, &waited));
    OK(pthread_mutex_unlock(&waited));
    return NULL;
}

static void child(void) {
    alarm(300); /* a hang is the child's, and ends it */
    OK(pthread_mutex_trylock(&idle));
    OK(pthread_mutex_unlock(&idle));
    CHECK_RC(pthread_mutex_trylock(&held), EBUSY);
    OK(pthread_mutex_unlock(&held));
    OK(pthread_mutex_lock(&held));
    OK(pthread_mutex_unlock(&held));
    OK(pthread_mutex_unlock(&wanted)); /* its waiters are not here: free */
    OK(pthread_mutex_trylock(&wanted));
    OK(pthread_mutex_unlock(&wanted));
    OK(pthread_mutex_destroy(&wanted));
    OK(pthread_cond_signal(&cond)); /* no thread waits here */
    OK(pthread_cond_broadcast(&cond));
    struct timespec at = time_in_us(CLOCK_REALTIME, 300);
    int r;
    do
        r = pthread_cond_timedwait(&cond, &waited, &at); /* held since before the fork */
    while (r == 0);
    CHECK(r == ETIMEDOUT);
    OK(pthread_mutex_unlock(&waited));

    turn = 0;
    OK(pthread_barrier_init(&full, NULL, 3));
    run_threads(3, add);
    CHECK(turn == 60);
    turn = 0;
    pthread_t one = start(wait_turn, NULL), two = start(wait_turn, NULL);
    sleep_us(300);
    OK(pthread_mutex_lock(&waited));
    turn = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&waited));
    thread_join(one);
    thread_join(two);
    for (int i = 0; i < 100; i++) {
        pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
        pthread_barrier_t lonely;
        OK(pthread_mutex_lock(&fresh));
        OK(pthread_mutex_unlock(&fresh));
        OK(pthread_mutex_destroy(&fresh));
        OK(pthread_barrier_init(&lonely, NULL, 1));
        CHECK(pthread_barrier_wait(&lonely) == PTHREAD_BARRIER_SERIAL_THREAD);
        OK(pthread_barrier_destroy(&lonely));
    }
}

int main(int argc, char **argv) {
    n_rounds = argument(argc, argv, 1, 20);
    bool raw = argc > 2 && strcmp(argv[2], "raw") == 0;
    pthread_t threads[12];
    unsigned n = 0;
    OK(pthread_barrier_init(&pair, NULL, 2));
    for (uintptr_t i = 0; i < 4; i++)
        threads[n++] = start(lock_busily, (void *)i);
    for (int i = 0; i < 2; i++)
        threads[n++] = start(want, NULL);
    for (int i = 0; i < 3; i++)
        threads[n++] = start(wait_on, NULL);
    threads[n++] = start(meet_busily, NULL);
    for (unsigned i = 0; i < n_rounds; i++) {
        OK(pthread_mutex_lock(&held));
        OK(pthread_mutex_lock(&wanted));
        OK(pthread_mutex_lock(&waited));
        if (i % 2 == 0)
            pthread_barrier_wait(&pair);
        OK(pthread_mutex_lock(&idle));
        OK(pthread_mutex_unlock(&idle));
        pid_t pid = raw ? _Fork() : fork();
        SYS(pid);
        if (pid == 0) {
            child();
            _exit(0);
        }
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&waited));
        OK(pthread_mutex_unlock(&wanted));
        OK(pthread_mutex_unlock(&held));
        child_join(pid);
    }
    over = true;
    OK(pthread_mutex_lock(&waited));
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&waited));
    for (unsigned i = 0; i < n; i++)
        thread_join(threads[i]);
    return 0;
}
