/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small programs that synchronize as large ones do, for bench/validate: `workalike KIND THREADS`. The work does not
 * depend on the number of threads, and takes some 0.2 s on one core.
 *
 *   pipeline  items go through four stages with bounded queues
 *   tasks     a queue of small tasks, and a pool that empties it
 *   fluid     a grid of 100,000 cells with a mutex each; a step adds to a cell and its neighbour; barriers
 *   readers   a table under a read-write lock; one access in 50 writes
 *   idle      a pool with more threads than tasks: main hands out one task at a time and works itself
 *   memory    each thread reads its share of an array that no cache holds; barriers between rounds
 *   spin      a counter under a spin lock
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_THREADS = 1024,
    N_STAGES = 4,
    N_ITEMS = 10000, /* of a pipeline; three times as many tasks */
    QUEUE = 16,
    N_CELLS = 100000,
    N_STEPS = 15,
    N_ACCESSES = 800000,
    N_IDLE_TASKS = 4000,
    N_WORDS = 8 << 20, /* of 8 bytes: twice what a last-level cache holds */
    N_SWEEPS = 60,
};

static unsigned n_threads;
static pthread_barrier_t barrier;

/* Some 2 ns a round, without memory. Not inlined: a result that is not used would cost nothing. */
static __attribute__((noinline)) uint64_t compute(uint64_t seed, unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    __asm__ volatile("" : "+r"(seed));
    return seed;
}

static void failed(const char *what) {
    fprintf(stderr, "workalike: %s failed\n", what);
    exit(1);
}

/* ---- bounded queues ---- */

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    uint64_t items[QUEUE];
    unsigned first, n, n_writers; /* n_writers: that will still put items in */
};

static void queue_put(struct queue *q, uint64_t item) {
    pthread_mutex_lock(&q->mutex);
    while (q->n == QUEUE)
        pthread_cond_wait(&q->emptied, &q->mutex);
    q->items[(q->first + q->n++) % QUEUE] = item;
    pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->mutex);
}

/* 0: there will be no more. */
static int queue_take(struct queue *q, uint64_t *item) {
    pthread_mutex_lock(&q->mutex);
    while (q->n == 0 && q->n_writers > 0)
        pthread_cond_wait(&q->filled, &q->mutex);
    int there = q->n > 0;
    if (there) {
        *item = q->items[q->first];
        q->first = (q->first + 1) % QUEUE;
        q->n--;
        pthread_cond_signal(&q->emptied);
    }
    pthread_mutex_unlock(&q->mutex);
    return there;
}

static void queue_close(struct queue *q) {
    pthread_mutex_lock(&q->mutex);
    if (--q->n_writers == 0)
        pthread_cond_broadcast(&q->filled);
    pthread_mutex_unlock(&q->mutex);
}

static struct queue queues[N_STAGES + 1];

static void queue_open(struct queue *q, unsigned n_writers) {
    pthread_mutex_init(&q->mutex, NULL);
    pthread_cond_init(&q->filled, NULL);
    pthread_cond_init(&q->emptied, NULL);
    q->n_writers = n_writers;
}

/* ---- the kinds: each thread's part, its number as the argument; the result is checked ---- */

static uint64_t done[MAX_THREADS];

static unsigned stage_threads(unsigned stage) {
    unsigned n = n_threads / N_STAGES + (stage < n_threads % N_STAGES);
    return n > 0 ? n : 1;
}

static void *pipeline(void *argument) {
    uintptr_t me = (uintptr_t)argument;
    unsigned stage = 0;
    for (uintptr_t before = me; before >= stage_threads(stage); stage++)
        before -= stage_threads(stage);
    uint64_t item, n = 0;
    for (; queue_take(&queues[stage], &item); n++) {
        item = compute(item, 2500);
        if (stage + 1 < N_STAGES)
            queue_put(&queues[stage + 1], item);
    }
    if (stage + 1 < N_STAGES)
        queue_close(&queues[stage + 1]);
    else
        done[me] = n;
    return NULL;
}

static void *tasks(void *argument) {
    uint64_t item, n = 0;
    for (; queue_take(&queues[0], &item); n++)
        compute(item, 2000);
    done[(uintptr_t)argument] = n;
    return NULL;
}

static void *idle(void *argument) {
    uint64_t item, n = 0;
    for (; queue_take(&queues[0], &item); n++)
        compute(item, 2000);
    done[(uintptr_t)argument] = n;
    return NULL;
}

static struct {
    pthread_mutex_t mutex;
    uint64_t value;
} cells[N_CELLS];

static void add_to(unsigned cell) {
    pthread_mutex_lock(&cells[cell].mutex);
    cells[cell].value++;
    pthread_mutex_unlock(&cells[cell].mutex);
}

static void *fluid(void *argument) {
    uintptr_t me = (uintptr_t)argument;
    for (unsigned step = 0; step < N_STEPS; step++) {
        for (uintptr_t i = N_CELLS * me / n_threads; i < N_CELLS * (me + 1) / n_threads; i++) {
            compute(i + 1, 20);
            add_to((unsigned)i);
            compute(i + 1, 20);
            add_to((unsigned)((i + 300) % N_CELLS));
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t table;

static void *readers(void *argument) {
    uintptr_t me = (uintptr_t)argument;
    uint64_t seen = 0;
    for (uintptr_t i = me; i < N_ACCESSES; i += n_threads) {
        if (i % 50 == 0) {
            pthread_rwlock_wrlock(&table_lock);
            table++;
        } else {
            pthread_rwlock_rdlock(&table_lock);
            seen += table;
        }
        pthread_rwlock_unlock(&table_lock);
        seen = compute(seen | 1, 80);
    }
    done[me] = seen;
    return NULL;
}

static uint64_t *array;

static void *memory(void *argument) {
    uintptr_t me = (uintptr_t)argument;
    uint64_t sum = 0;
    for (unsigned sweep = 0; sweep < N_SWEEPS; sweep++) {
        for (uintptr_t i = N_WORDS * me / n_threads; i < N_WORDS * (me + 1) / n_threads; i++)
            sum += array[i];
        pthread_barrier_wait(&barrier);
    }
    done[me] = sum;
    return NULL;
}

static pthread_spinlock_t spin_lock;
static uint64_t spun;

static void *spin(void *argument) {
    uint64_t seed = (uintptr_t)argument + 1;
    for (uintptr_t i = (uintptr_t)argument; i < N_ACCESSES; i += n_threads) {
        seed = compute(seed, 80);
        pthread_spin_lock(&spin_lock);
        spun++;
        pthread_spin_unlock(&spin_lock);
    }
    done[(uintptr_t)argument] = seed;
    return NULL;
}

/* ---- main ---- */

static void produce(uint64_t n, unsigned own_rounds) {
    for (uint64_t i = 1; i <= n; i++) {
        compute(i, own_rounds);
        queue_put(&queues[0], i);
    }
    queue_close(&queues[0]);
}

static uint64_t sum_done(void) {
    uint64_t n = 0;
    for (unsigned i = 0; i < MAX_THREADS; i++)
        n += done[i];
    return n;
}

static uint64_t sum_cells(void) {
    uint64_t n = 0;
    for (unsigned i = 0; i < N_CELLS; i++)
        n += cells[i].value;
    return n;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void *(*thread)(void *);
    } kinds[] = {{"pipeline", pipeline}, {"tasks", tasks},   {"fluid", fluid}, {"readers", readers},
                 {"idle", idle},         {"memory", memory}, {"spin", spin}};
    pthread_t threads[MAX_THREADS];
    void *(*thread)(void *) = NULL;
    char *end = NULL;
    for (size_t i = 0; argc == 3 && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argv[1], kinds[i].name) == 0)
            thread = kinds[i].thread;
    unsigned long n = argc == 3 ? strtoul(argv[2], &end, 10) : 0;
    if (thread == NULL || *end != '\0' || n < 1 || n > MAX_THREADS - N_STAGES) {
        fprintf(stderr, "Usage: workalike pipeline|tasks|fluid|readers|idle|memory|spin THREADS (1 to %d)\n",
                MAX_THREADS - N_STAGES);
        return 2;
    }
    n_threads = (unsigned)n;
    unsigned n_created = n_threads;
    if (thread == pipeline)
        for (unsigned stage = n_created = 0; stage < N_STAGES; stage++)
            n_created += stage_threads(stage);
    for (unsigned i = 0; i <= N_STAGES; i++)
        queue_open(&queues[i], i == 0 ? 1 : stage_threads(i - 1));
    if (pthread_barrier_init(&barrier, NULL, n_threads) != 0 || pthread_spin_init(&spin_lock, 0) != 0)
        failed("initialization");
    if (thread == memory) {
        if ((array = malloc(N_WORDS * sizeof *array)) == NULL)
            failed("malloc");
        for (size_t i = 0; i < N_WORDS; i++)
            array[i] = 1;
    }
    for (unsigned i = 0; i < N_CELLS && thread == fluid; i++)
        pthread_mutex_init(&cells[i].mutex, NULL);
    for (uintptr_t i = 0; i < n_created; i++)
        if (pthread_create(&threads[i], NULL, thread, (void *)i) != 0)
            failed("pthread_create");
    uint64_t n_items = thread == pipeline ? N_ITEMS : thread == tasks ? N_ITEMS * 3 : N_IDLE_TASKS;
    if (thread == pipeline || thread == tasks || thread == idle)
        produce(n_items, thread == idle ? 15000 : 0);
    for (unsigned i = 0; i < n_created; i++)
        pthread_join(threads[i], NULL);
    if ((thread == pipeline || thread == tasks || thread == idle) && sum_done() != n_items)
        failed("an item was lost: a queue");
    if (thread == fluid && sum_cells() != UINT64_C(2) * N_CELLS * N_STEPS)
        failed("an addition was lost: a mutex");
    if (thread == readers && table != N_ACCESSES / 50)
        failed("a write was lost: a read-write lock");
    if (thread == memory && sum_done() != (uint64_t)N_WORDS * N_SWEEPS)
        failed("a sum");
    if (thread == spin && spun != N_ACCESSES)
        failed("an addition was lost: a spin lock");
    free(array);
    return 0;
}
