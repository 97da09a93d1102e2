/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the programs of bench/lbdr share: computation that takes time and nothing else, and queues between stages. */
#ifndef BENCH_LBDR_WORK_H
#define BENCH_LBDR_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A call site of its own, for hints: the compiler neither merges it with another function nor makes it a jump. */
#ifdef __clang__
#define SITE __attribute__((noinline, disable_tail_calls))
#else
#define SITE __attribute__((noipa, optimize("no-optimize-sibling-calls")))
#endif

/* A digest of both numbers. */
uint64_t mix(uint64_t a, uint64_t b);
/* Some 10 ns a round. The result depends on the seed and on the number of rounds alone. */
uint64_t compute(uint64_t seed, unsigned rounds);
#define ROUNDS_IN_US 100
/* From half of the mean to one and a half, by the seed. Some microseconds, and a digest. */
uint64_t compute_about(uint64_t seed, unsigned mean_us);

/* "PROGRAM THREADS ITEMS": the threads of each parallel stage, and items of work. Exits with a line if they are bad. */
struct amounts {
    unsigned n_threads, n_items;
};
struct amounts amounts_of(int argc, char **argv);

/* pthread_create and pthread_join, or exit with a line. */
void begin(pthread_t *threads, unsigned n, void *(*routine)(void *));
void finish(const pthread_t *threads, unsigned n);

/* ---- queues ---- */

#define QUEUE_ITEMS 20

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    void *items[QUEUE_ITEMS];
    unsigned first, n, n_writers; /* n_writers: threads that will still put items in */
};

void queue_begin(struct queue *q, unsigned n_writers);
/* Waits while the queue is full. */
void queue_put(struct queue *q, void *item);
/* A writer has put its last item in. */
void queue_close(struct queue *q);
/*
 * Waits for an item; NULL: there will be none. The mutex is given up by `leave`, so that a hint can be at that call:
 * what the thread does with the item begins there.
 */
void *queue_take(struct queue *q, void (*leave)(pthread_mutex_t *));
/* For `leave`: no place of interest. */
void queue_leave(pthread_mutex_t *mutex);

#endif
