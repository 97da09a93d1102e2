/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs with very many free locks, for `bench/recorder --profile`:
 *   grid      a fluid's grid of 900,000 cells, each with a mutex; each thread goes through its part, adds to each cell
 *             and to a neighbour in the next plane, and meets the others at a barrier after each step
 *   dedup     a pipeline of three stages over two bounded queues; each of 134,000 items has a mutex of its own, which
 *             is made with it, taken by each stage and destroyed by the last
 * Prints nothing; the exit status says whether every addition was made.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_CELLS = 900000,
    N_STEPS = 47, /* 85 million locks */
    PLANE = 9000, /* cells of a plane of the grid */
    N_ITEMS = 134000,
    QUEUE = 64,
    MAX_THREADS = 64,
    CELL_ROUNDS = 60,   /* of computing for a cell, some 2 ns each: 25 M locks a second on two cores */
    ITEM_ROUNDS = 5000, /* the same for an item in a stage */
};

static unsigned n_threads;

static void must(int r) {
    if (r != 0) {
        fprintf(stderr, "profile-load: a call failed\n");
        exit(1);
    }
}

static __attribute__((noinline)) uint64_t compute(uint64_t seed, unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    __asm__ volatile("" : "+r"(seed)); /* a result that is not used would cost nothing */
    return seed;
}

/* ---- grid ---- */

static struct {
    pthread_mutex_t mutex;
    uint64_t sum;
} * cells;
static pthread_barrier_t barrier;

static void add_to(unsigned cell, uint64_t n) {
    pthread_mutex_lock(&cells[cell].mutex);
    cells[cell].sum += n;
    pthread_mutex_unlock(&cells[cell].mutex);
}

static void *grid(void *argument) {
    uint64_t me = (uintptr_t)argument;
    for (unsigned step = 0; step < N_STEPS; step++) {
        for (uint64_t i = N_CELLS * me / n_threads; i < N_CELLS * (me + 1) / n_threads; i++) {
            compute(i + 1, CELL_ROUNDS);
            add_to((unsigned)i, 1);
            compute(i + 1, CELL_ROUNDS);
            add_to((unsigned)((i + PLANE) % N_CELLS), 1);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static int run_grid(void) {
    pthread_t threads[MAX_THREADS];
    uint64_t sum = 0;
    cells = calloc(N_CELLS, sizeof *cells);
    must(cells == NULL);
    must(pthread_barrier_init(&barrier, NULL, n_threads));
    for (unsigned i = 0; i < N_CELLS; i++)
        must(pthread_mutex_init(&cells[i].mutex, NULL));
    for (uintptr_t i = 0; i < n_threads; i++)
        must(pthread_create(&threads[i], NULL, grid, (void *)i));
    for (unsigned i = 0; i < n_threads; i++)
        must(pthread_join(threads[i], NULL));
    for (unsigned i = 0; i < N_CELLS; i++)
        sum += cells[i].sum;
    return sum != UINT64_C(2) * N_CELLS * N_STEPS;
}

/* ---- dedup ---- */

struct item {
    pthread_mutex_t mutex;
    uint64_t value;
};

static struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    struct item *items[QUEUE];
    unsigned first, n;
} queues[2] = {
    {.mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .emptied = PTHREAD_COND_INITIALIZER},
    {.mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .emptied = PTHREAD_COND_INITIALIZER}};
static uint64_t n_done;

static void put(struct queue *q, struct item *item) {
    must(pthread_mutex_lock(&q->mutex));
    while (q->n == QUEUE)
        must(pthread_cond_wait(&q->emptied, &q->mutex));
    q->items[(q->first + q->n++) % QUEUE] = item;
    must(pthread_cond_signal(&q->filled));
    must(pthread_mutex_unlock(&q->mutex));
}

static struct item *get(struct queue *q) {
    must(pthread_mutex_lock(&q->mutex));
    while (q->n == 0)
        must(pthread_cond_wait(&q->filled, &q->mutex));
    struct item *item = q->items[q->first++ % QUEUE];
    q->n--;
    must(pthread_cond_signal(&q->emptied));
    must(pthread_mutex_unlock(&q->mutex));
    return item;
}

static void work_on(struct item *item) {
    must(pthread_mutex_lock(&item->mutex));
    item->value = compute(item->value | 1, ITEM_ROUNDS);
    must(pthread_mutex_unlock(&item->mutex));
}

/* Takes items until NULL comes, which it leaves for the other threads of its stage. */
static void *compress(void *unused) {
    for (struct item *item; (item = get(&queues[0])) != NULL;) {
        work_on(item);
        put(&queues[1], item);
    }
    put(&queues[0], NULL);
    return unused;
}

static void *finish(void *unused) {
    for (struct item *item; (item = get(&queues[1])) != NULL; n_done++) {
        work_on(item);
        must(pthread_mutex_destroy(&item->mutex));
        free(item);
    }
    return unused;
}

static int run_dedup(void) {
    pthread_t threads[MAX_THREADS], last;
    for (unsigned i = 0; i < n_threads; i++)
        must(pthread_create(&threads[i], NULL, compress, NULL));
    must(pthread_create(&last, NULL, finish, NULL));
    for (uint64_t i = 0; i < N_ITEMS; i++) {
        struct item *item = malloc(sizeof *item);
        must(item == NULL || pthread_mutex_init(&item->mutex, NULL) != 0);
        item->value = i;
        work_on(item);
        put(&queues[0], item);
    }
    put(&queues[0], NULL);
    for (unsigned i = 0; i < n_threads; i++)
        must(pthread_join(threads[i], NULL));
    put(&queues[1], NULL);
    must(pthread_join(last, NULL));
    return n_done != N_ITEMS;
}

int main(int argc, char **argv) {
    char *end = "x";
    unsigned long n = argc == 3 ? strtoul(argv[2], &end, 10) : 0;
    if (*end == '\0' && n >= 1 && n <= MAX_THREADS) {
        n_threads = (unsigned)n;
        if (strcmp(argv[1], "grid") == 0)
            return run_grid();
        if (strcmp(argv[1], "dedup") == 0)
            return run_dedup();
    }
    fprintf(stderr, "Usage: profile-load grid|dedup THREADS (1 to %d)\n", MAX_THREADS);
    return 2;
}
