/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The programs of disease.c, changed as the report advises: cured NAME. bench/advice compares what that brings with
 * what the report predicts. All else is as there.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "disease.h"
#include "pool.h"

/* ---- a hot lock: four in its place ---- */

enum { PARTS = 4 };
static pthread_mutex_t parts[PARTS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                       PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t cold = PTHREAD_MUTEX_INITIALIZER;

static void *split_thread(void *argument) {
    for (int i = 0; i < 100; i++) {
        pthread_mutex_t *part = &parts[((long)argument + i) % PARTS];
        pthread_mutex_lock(part);
        compute(200);
        pthread_mutex_unlock(part);
        pthread_mutex_lock(&cold);
        pthread_mutex_unlock(&cold);
        compute(20);
    }
    return NULL;
}

static void hot_lock(void) {
    run(4, split_thread);
}

/* ---- a lock over input and output: that comes behind the section ---- */

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;

static void *journal_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 40; i++) {
        compute(100);
        pthread_mutex_lock(&journal);
        pthread_mutex_unlock(&journal);
        pause_us(1000);
    }
    return NULL;
}

static void lock_over_io(void) {
    run(4, journal_thread);
}

/* ---- a lock that is polled: threads wait for it ---- */

static pthread_mutex_t polled = PTHREAD_MUTEX_INITIALIZER;

static void *waiting_thread(void *argument) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&polled);
        compute(argument == NULL ? 3000 : 1000);
        pthread_mutex_unlock(&polled);
        compute(10);
    }
    return NULL;
}

static void false_spin(void) {
    run(3, waiting_thread);
}

/* ---- many locks: one of ten is taken ---- */

enum { CELLS = 4000, BATCH = 10 };
static pthread_mutex_t *cells;

static void *grid_thread(void *argument) {
    unsigned state = (unsigned)(long)argument + 1;
    for (int i = 0; i < 100000; i++) {
        state = state * 1103515245u + 12345u;
        pthread_mutex_t *cell = &cells[state / 65536 % CELLS];
        if (i % BATCH != 0)
            continue;
        pthread_mutex_lock(cell);
        pthread_mutex_unlock(cell);
    }
    return NULL;
}

static void many_locks(void) {
    cells = malloc(CELLS * sizeof *cells);
    for (int i = 0; cells != NULL && i < CELLS; i++)
        pthread_mutex_init(&cells[i], NULL);
    run(2, grid_thread);
}

/* ---- an uneven barrier: the same work, shared evenly ---- */

static pthread_barrier_t meeting;

static void *even_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 30; i++) {
        pause_us((5000 + 3 * 1000) / 4);
        pthread_barrier_wait(&meeting);
    }
    return NULL;
}

static void barrier_imbalance(void) {
    pthread_barrier_init(&meeting, NULL, 4);
    run(4, even_thread);
}

/* ---- broadcasts: a signal for each task ---- */

static void *signalled_thread(void *argument) {
    take_tasks(10);
    return argument;
}

static void broadcast_storm(void) {
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, signalled_thread, NULL);
    for (int i = 0; i < 400;) {
        pthread_mutex_lock(&pool_lock);
        if (n_got == i) {
            n_tasks++;
            i++;
            pthread_cond_signal(&work_there);
        }
        pthread_mutex_unlock(&pool_lock);
        pause_us(20);
    }
    finish(threads, 16);
}

/* ---- an idle pool: two threads of six ---- */

static void *pool_thread(void *argument) {
    take_tasks(200);
    return argument;
}

static void idle_pool(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, pool_thread, NULL);
    for (int i = 0; i < 40; i++) {
        compute(3000);
        pthread_mutex_lock(&pool_lock);
        n_tasks++;
        pthread_mutex_unlock(&pool_lock);
        pthread_cond_signal(&work_there);
    }
    finish(threads, 2);
}

/* ---- wake-ups in vain: a signal when all are there; too many threads: a quarter of them ---- */

static void futile_wakeups(void) {
    gather(GATHERED_AT_ONCE);
}

static void too_many_threads(void) {
    share_ledger(4);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cured[] = {
        {"hot-lock", hot_lock},     {"lock-over-io", lock_over_io},           {"false-spin", false_spin},
        {"many-locks", many_locks}, {"barrier-imbalance", barrier_imbalance}, {"broadcast-storm", broadcast_storm},
        {"idle-pool", idle_pool},   {"futile-wakeups", futile_wakeups},       {"too-many-threads", too_many_threads}};
    for (size_t i = 0; argc == 2 && i < sizeof cured / sizeof *cured; i++)
        if (strcmp(argv[1], cured[i].name) == 0) {
            cured[i].run();
            return 0;
        }
    return 2;
}
