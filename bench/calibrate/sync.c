/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that no other thread disturbs, and the birth and end of threads, under whatever serves them.
 *
 * They are made in a thread that is not main, because main may have no fiber, while another thread exists and sleeps:
 * a C library that drops its atomics in single-threaded processes gains nothing from it here.
 */
#include "calibrate.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static _Alignas(CALIBRATE_LINE) pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(CALIBRATE_LINE) pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static _Alignas(CALIBRATE_LINE) pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static _Alignas(CALIBRATE_LINE) pthread_barrier_t barrier;
static _Alignas(CALIBRATE_LINE) pthread_spinlock_t spinlock;
static _Alignas(CALIBRATE_LINE) sem_t semaphore;

/* The results are looked at: a call that fails must not pass for a cheap one. */
#define BATCH(name, calls)                                                                                             \
    static void name(uint64_t n) {                                                                                     \
        int failed = 0;                                                                                                \
        for (; n > 0; n--)                                                                                             \
            failed |= (calls);                                                                                         \
        if (failed != 0)                                                                                               \
            fail("a call of %s failed", #name);                                                                        \
    }
BATCH(mutexes, pthread_mutex_lock(&mutex) | pthread_mutex_unlock(&mutex))
BATCH(signals, pthread_cond_signal(&cond))
BATCH(broadcasts, pthread_cond_broadcast(&cond))
BATCH(barriers, pthread_barrier_wait(&barrier) != PTHREAD_BARRIER_SERIAL_THREAD)
BATCH(read_locks, pthread_rwlock_rdlock(&rwlock) | pthread_rwlock_unlock(&rwlock))
BATCH(write_locks, pthread_rwlock_wrlock(&rwlock) | pthread_rwlock_unlock(&rwlock))
BATCH(semaphores, sem_post(&semaphore) | sem_wait(&semaphore))
BATCH(spinlocks, pthread_spin_lock(&spinlock) | pthread_spin_unlock(&spinlock))

/* The joiner is asleep by then, if it does sleep. */
#define LIFE_NS 100000

static struct { uint64_t begin_ns, end_ns; } life; /* of the thread that is joined next */

static void *live(void *unused) {
    life.begin_ns = now_ns();
    while ((life.end_ns = now_ns()) - life.begin_ns < LIFE_NS)
        ;
    return unused;
}

static void measure_threads(double seconds) {
    struct samples *spawn = samples_new("spawn_ns"), *latency = samples_new("spawn_latency_ns");
    struct samples *join = samples_new("join_ns");
    double clock_ns = clock_cost_ns();
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9);
    while (samples_wanted(spawn, end_ns)) {
        pthread_t thread;
        uint64_t begin = now_ns();
        must(pthread_create(&thread, NULL, live, NULL), "pthread_create");
        uint64_t created = now_ns();
        must(pthread_join(thread, NULL), "pthread_join");
        uint64_t joined = now_ns();
        samples_add(spawn, (double)(created - begin) - clock_ns);
        samples_add(latency, (double)(life.begin_ns - begin) - clock_ns);
        samples_add(join, (double)(joined - life.end_ns) - clock_ns);
    }
}

static double seconds_in_all;

static void *measure(void *unused) {
    static const struct {
        const char *key;
        void (*operate)(uint64_t n);
    } operations[] = {{"mutex_ns", mutexes},        {"cond_signal_ns", signals},  {"cond_broadcast_ns", broadcasts},
                      {"barrier_ns", barriers},     {"read_lock_ns", read_locks}, {"write_lock_ns", write_locks},
                      {"semaphore_ns", semaphores}, {"spinlock_ns", spinlocks}};
    size_t n = sizeof operations / sizeof *operations;
    for (size_t i = 0; i < n; i++)
        samples_of_batches(operations[i].key, seconds_in_all * 0.7 / (double)n, operations[i].operate);
    measure_threads(seconds_in_all * 0.3);
    return unused;
}

static int sleeper_pipe[2];

static void *sleep_in_read(void *unused) {
    char byte;
    if (read(sleeper_pipe[0], &byte, 1) != 1)
        fail("the sleeping thread was not released by its byte");
    return unused;
}

void measure_sync(double seconds) {
    pthread_t thread, sleeper;
    seconds_in_all = seconds;
    must(pthread_barrier_init(&barrier, NULL, 1), "pthread_barrier_init");
    must(pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE), "pthread_spin_init");
    must(sem_init(&semaphore, 0, 0) != 0 ? errno : 0, "sem_init");
    must(pipe(sleeper_pipe) != 0 ? errno : 0, "pipe");
    must(pthread_create(&sleeper, NULL, sleep_in_read, NULL), "pthread_create");
    must(pthread_create(&thread, NULL, measure, NULL), "pthread_create");
    must(pthread_join(thread, NULL), "pthread_join");
    if (write(sleeper_pipe[1], "", 1) != 1)
        fail("pipe failed");
    must(pthread_join(sleeper, NULL), "pthread_join");
}
