/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ferret's shape: pictures go through six stages. The first, one thread, reads them with many short locked sections;
 * four stages of THREADS threads each compute for long, ranking for longest; the last, one thread, adds up.
 *
 *     read -> segment -> extract -> vectorize -> rank -> add up
 *
 * usage: ferret THREADS PICTURES    prints a digest that depends on the number of pictures alone
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum { ROWS = 200, SEGMENT_US = 40, EXTRACT_US = 5, VECTORIZE_US = 150, RANK_US = 750, ADD_UP_US = 1 };

struct picture {
    uint64_t digest;
};

static struct amounts amounts;
static struct picture *pictures;
static struct queue to_segment, to_extract, to_vectorize, to_rank, to_add_up;
static uint64_t sum;
static pthread_mutex_t stream = PTHREAD_MUTEX_INITIALIZER; /* as a library has one for what is read */

/* Here begins what a thread computes for a picture. Ranking has a place of its own: a soft barrier needs one stage. */
static SITE void leave_take(pthread_mutex_t *mutex) {
    pthread_mutex_unlock(mutex);
}

static SITE void leave_take_to_rank(pthread_mutex_t *mutex) {
    pthread_mutex_unlock(mutex);
}

static void *read_pictures(void *unused) {
    for (unsigned i = 0; i < amounts.n_items; i++) {
        uint64_t digest = i;
        for (unsigned row = 0; row < ROWS; row++) {
            pthread_mutex_lock(&stream);
            digest = compute(mix(digest, row), 5);
            pthread_mutex_unlock(&stream);
        }
        pictures[i].digest = digest;
        queue_put(&to_segment, &pictures[i]);
    }
    queue_close(&to_segment);
    return unused;
}

static void stage(struct queue *from, struct queue *to, unsigned us, void (*leave)(pthread_mutex_t *)) {
    for (struct picture *p; (p = queue_take(from, leave)) != NULL;) {
        p->digest = mix(p->digest, compute_about(p->digest, us));
        queue_put(to, p);
    }
    queue_close(to);
}

static void *segment(void *unused) {
    stage(&to_segment, &to_extract, SEGMENT_US, leave_take);
    return unused;
}

static void *extract(void *unused) {
    stage(&to_extract, &to_vectorize, EXTRACT_US, leave_take);
    return unused;
}

static void *vectorize(void *unused) {
    stage(&to_vectorize, &to_rank, VECTORIZE_US, leave_take);
    return unused;
}

static void *rank(void *unused) {
    stage(&to_rank, &to_add_up, RANK_US, leave_take_to_rank);
    return unused;
}

/* The pictures come in any order. */
static void *add_up(void *unused) {
    for (const struct picture *p; (p = queue_take(&to_add_up, queue_leave)) != NULL;)
        sum += compute_about(p->digest, ADD_UP_US);
    return unused;
}

int main(int argc, char **argv) {
    void *(*const parallel[])(void *) = {segment, extract, vectorize, rank};
    enum { N_PARALLEL = sizeof parallel / sizeof *parallel };
    pthread_t reader, adder;
    amounts = amounts_of(argc, argv);
    pictures = calloc(amounts.n_items, sizeof *pictures);
    pthread_t *workers = calloc((size_t)amounts.n_threads * N_PARALLEL, sizeof *workers);
    if (pictures == NULL || workers == NULL)
        return 1;
    queue_begin(&to_segment, 1);
    queue_begin(&to_extract, amounts.n_threads);
    queue_begin(&to_vectorize, amounts.n_threads);
    queue_begin(&to_rank, amounts.n_threads);
    queue_begin(&to_add_up, amounts.n_threads);
    begin(&reader, 1, read_pictures);
    for (unsigned i = 0; i < N_PARALLEL; i++)
        begin(workers + (size_t)i * amounts.n_threads, amounts.n_threads, parallel[i]);
    begin(&adder, 1, add_up);
    finish(&reader, 1);
    finish(workers, amounts.n_threads * N_PARALLEL);
    finish(&adder, 1);
    printf("%016" PRIx64 "\n", sum);
    free(workers);
    free(pictures);
    return 0;
}
