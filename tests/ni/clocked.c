/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * clocked: what calls take by the clock, for a time scale. The script compares it with the model.
 *
 * clocked calls SCALE LOCK UNLOCK HANDED: prints the shortest lock of a free mutex, the shortest unlock, and the
 * shortest time from the call of an unlock to the return of the waiting thread's lock, in nanoseconds of the clock. The
 * calls begin at any time within a nanosecond of the model. The arguments are what the model says, in its nanoseconds.
 * A busy machine makes calls longer, and the shortest of many is the call that it has left alone: so calls are made
 * until each of the three takes less than a nanosecond of the model more, for half a minute at most.
 *
 * clocked all THREADS ROUNDS: each thread locks, unlocks, waits, broadcasts and meets the others; prints the sum of
 * what all calls took.
 */
#include "subject.h"

#include <semaphore.h>

#include "lib/asleep.h"

enum { LEAST_CALLS = 300, LEAST_HANDED = 60, MOST_SECONDS = 30 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t scale;

static int64_t clock_ns(void) {
    return now_ns(CLOCK_MONOTONIC);
}

/* Up to a nanosecond of the model. */
static void pass_a_part(void) {
    static uint64_t random = 1;
    random = random * UINT64_C(6364136223846793005) + 1;
    int64_t end = clock_ns() + (int64_t)((random >> 33) % (uint64_t)scale);
    while (clock_ns() < end)
        ;
}

static void keep_shortest(int64_t *shortest, int64_t from, int64_t to) {
    if (to - from < *shortest)
        *shortest = to - from;
}

static bool is_near(int64_t shortest, const char *model_ns) {
    return shortest < (atoll(model_ns) + 1) * scale;
}

/* ---- a lock of a free mutex, an unlock ---- */

static void pair(int64_t *lock, int64_t *unlock) {
    pass_a_part();
    int64_t begin = clock_ns();
    OK(pthread_mutex_lock(&mutex));
    keep_shortest(lock, begin, clock_ns());
    pass_a_part();
    begin = clock_ns();
    OK(pthread_mutex_unlock(&mutex));
    keep_shortest(unlock, begin, clock_ns());
}

/* ---- from an unlock to the waiting thread ---- */

static sem_t may_lock, has_locked;
static pid_t waiter;
static int64_t locked_ns;

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        ;
}

static void *lock_and_unlock(void *unused) {
    for (;;) {
        wait_for(&may_lock);
        asleep_from_here(&waiter);
        OK(pthread_mutex_lock(&mutex));
        locked_ns = clock_ns();
        OK(pthread_mutex_unlock(&mutex));
        sem_post(&has_locked);
    }
    return unused;
}

static void hand_over(int64_t *handed) {
    OK(pthread_mutex_lock(&mutex));
    __atomic_store_n(&waiter, 0, __ATOMIC_SEQ_CST);
    sem_post(&may_lock);
    await_asleep(&waiter); /* its request is ahead of the unlock */
    pass_a_part();
    int64_t begin = clock_ns();
    OK(pthread_mutex_unlock(&mutex));
    wait_for(&has_locked);
    keep_shortest(handed, begin, locked_ns);
}

static void time_calls(char **model) {
    int64_t lock = INT64_MAX, unlock = INT64_MAX, handed = INT64_MAX, end = clock_ns() + MOST_SECONDS * NS_PER_S;
    OK(pthread_mutex_lock(&mutex)); /* the first lock allocates */
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; clock_ns() < end && (i < LEAST_CALLS || !is_near(lock, model[0]) || !is_near(unlock, model[1]));
         i++)
        pair(&lock, &unlock);
    sem_init(&may_lock, 0, 0);
    sem_init(&has_locked, 0, 0);
    start(lock_and_unlock, NULL);
    for (int i = 0; clock_ns() < end && (i < LEAST_HANDED || !is_near(handed, model[2])); i++)
        hand_over(&handed);
    printf("%lld %lld %lld\n", (long long)lock, (long long)unlock, (long long)handed);
}

/* ---- the sum of all ---- */

static pthread_barrier_t barrier;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned n_threads, n_rounds, n_there;
static _Atomic int64_t all_ns;

#define TIMED(call)                                                                                                    \
    do {                                                                                                               \
        int64_t begin = clock_ns();                                                                                    \
        int result = (call);                                                                                           \
        all_ns += clock_ns() - begin;                                                                                  \
        CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);                                                 \
    } while (0)

static void *call_all(void *unused) {
    for (unsigned i = 1; i <= n_rounds; i++) {
        TIMED(pthread_barrier_wait(&barrier));
        TIMED(pthread_mutex_lock(&mutex));
        if (++n_there == i * n_threads)
            TIMED(pthread_cond_broadcast(&cond));
        while (n_there < i * n_threads)
            TIMED(pthread_cond_wait(&cond, &mutex));
        TIMED(pthread_mutex_unlock(&mutex));
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc == 6 && strcmp(argv[1], "calls") == 0) {
        scale = atoll(argv[2]);
        time_calls(&argv[3]);
        return 0;
    }
    CHECK(argc == 4 && strcmp(argv[1], "all") == 0);
    n_threads = argument(argc, argv, 2, 4);
    n_rounds = argument(argc, argv, 3, 20);
    OK(pthread_barrier_init(&barrier, NULL, n_threads));
    run_threads(n_threads, call_all);
    printf("%lld\n", (long long)all_ns);
    return 0;
}
