/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 256
#define MOST_ITEMS 1000000

uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ b) + 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* Each step needs the one before, so a round takes as long on each core of a kind. */
uint64_t compute(uint64_t seed, unsigned rounds) {
    uint64_t x = seed | 1;
    for (unsigned i = 0; i < rounds * 5; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

uint64_t compute_about(uint64_t seed, unsigned mean_us) {
    unsigned rounds = mean_us * ROUNDS_IN_US;
    return compute(seed, rounds / 2 + (unsigned)(mix(seed, mean_us) % (rounds + 1)));
}

static unsigned number(const char *text, const char *what, unsigned most) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || n < 1 || n > most) {
        fprintf(stderr, "'%s' is no number of %s (legal: 1 to %u)\n", text, what, most);
        exit(2);
    }
    return (unsigned)n;
}

struct amounts amounts_of(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s THREADS ITEMS\n", argv[0]);
        exit(2);
    }
    return (struct amounts){number(argv[1], "threads", MOST_THREADS), number(argv[2], "items", MOST_ITEMS)};
}

static void must(int error, const char *what) {
    if (error == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    exit(1);
}

void begin(pthread_t *threads, unsigned n, void *(*routine)(void *)) {
    for (unsigned i = 0; i < n; i++)
        must(pthread_create(&threads[i], NULL, routine, (void *)(uintptr_t)i), "pthread_create");
}

void finish(const pthread_t *threads, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        must(pthread_join(threads[i], NULL), "pthread_join");
}

/* ---- queues ---- */

void queue_begin(struct queue *q, unsigned n_writers) {
    *q = (struct queue){.mutex = PTHREAD_MUTEX_INITIALIZER,
                        .filled = PTHREAD_COND_INITIALIZER,
                        .emptied = PTHREAD_COND_INITIALIZER,
                        .n_writers = n_writers};
}

static SITE void tell_filled(pthread_cond_t *cond) {
    pthread_cond_signal(cond);
}

static SITE void leave_put(pthread_mutex_t *mutex) {
    pthread_mutex_unlock(mutex);
}

void queue_put(struct queue *q, void *item) {
    pthread_mutex_lock(&q->mutex);
    while (q->n == QUEUE_ITEMS)
        pthread_cond_wait(&q->emptied, &q->mutex);
    q->items[(q->first + q->n++) % QUEUE_ITEMS] = item;
    tell_filled(&q->filled);
    leave_put(&q->mutex);
}

void queue_close(struct queue *q) {
    pthread_mutex_lock(&q->mutex);
    q->n_writers--;
    if (q->n_writers == 0)
        pthread_cond_broadcast(&q->filled);
    pthread_mutex_unlock(&q->mutex);
}

SITE void queue_leave(pthread_mutex_t *mutex) {
    pthread_mutex_unlock(mutex);
}

void *queue_take(struct queue *q, void (*leave)(pthread_mutex_t *)) {
    void *item = NULL;
    pthread_mutex_lock(&q->mutex);
    while (q->n == 0 && q->n_writers != 0)
        pthread_cond_wait(&q->filled, &q->mutex);
    if (q->n != 0) {
        item = q->items[q->first];
        q->first = (q->first + 1) % QUEUE_ITEMS;
        q->n--;
        pthread_cond_signal(&q->emptied);
    }
    leave(&q->mutex);
    return item;
}
