/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Data parallelism: an array is worked on in rounds. THREADS threads have a part each; they add up what they have found
 * under a lock, and meet at a barrier.
 *
 * usage: parts THREADS ROUNDS    prints a digest that depends on the number of rounds alone
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum { CELLS = 64, CELL_US = 25 };

static struct amounts amounts;
static uint64_t cells[CELLS], round_sum, sum;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

/* A round begins: the place of hints. */
static SITE void meet(void) {
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        sum = mix(sum, round_sum);
        round_sum = 0;
    }
}

static SITE void begin_round(void) {
    pthread_barrier_wait(&barrier);
}

static void *work(void *number) {
    unsigned first = (unsigned)((uintptr_t)number * CELLS / amounts.n_threads);
    unsigned end = (unsigned)(((uintptr_t)number + 1) * CELLS / amounts.n_threads);
    for (unsigned i = 0; i < amounts.n_items; i++) {
        uint64_t own = 0;
        begin_round();
        for (unsigned k = first; k < end; k++)
            own += cells[k] = compute_about(mix(cells[k], k), CELL_US);
        pthread_mutex_lock(&mutex);
        round_sum += own;
        pthread_mutex_unlock(&mutex);
        meet();
    }
    return NULL;
}

int main(int argc, char **argv) {
    amounts = amounts_of(argc, argv);
    pthread_t *threads = calloc(amounts.n_threads, sizeof *threads);
    if (threads == NULL || pthread_barrier_init(&barrier, NULL, amounts.n_threads) != 0)
        return 1;
    begin(threads, amounts.n_threads, work);
    finish(threads, amounts.n_threads);
    printf("%016" PRIx64 "\n", sum);
    free(threads);
    return 0;
}
