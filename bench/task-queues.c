/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small programs that share queues of tasks as those of Lozi's evaluation do, for bench/delegation: `task-queues KIND
 * THREADS`. The work does not depend on the number of threads.
 *
 *   radiosity  SPLASH-2's: one queue, and one list of free tasks; a task makes others, so each thread puts and takes
 *   raytrace   SPLASH-2's: a pool of tiles for each thread, and threads steal; each ray takes its number from a counter
 *   strings    Phoenix' string match: one queue of pieces of a text, and a list to which each piece adds what it found
 *
 * The first line of the output is the result, the same for each number of threads; the second is the time in seconds.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_THREADS = 1024,
    DEPTH = 15, /* of the tree of tasks */
    TASK_ROUNDS = 1500,
    TILES = 2048,
    RAYS = 64, /* of a tile */
    RAY_ROUNDS = 400,
    WORDS = 1 << 22,
    PIECE = 32, /* words */
    WORD = 8,   /* bytes */
    KEYS = 4,
    PRIME = 1000003
};

static unsigned n_threads;
static struct result { uint64_t n, sum; } results[MAX_THREADS];

/* Some 2 ns a round, without memory. Not inlined: a result that is not used would cost nothing. */
static __attribute__((noinline)) uint64_t compute(uint64_t seed, unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

static void failed(const char *what) {
    fprintf(stderr, "task-queues: %s failed\n", what);
    exit(1);
}

/* ---- radiosity ---- */

struct task {
    struct task *next;
    uint64_t number; /* in a binary tree, from 1 */
};

pthread_mutex_t task_lock = PTHREAD_MUTEX_INITIALIZER, free_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t task_queued = PTHREAD_COND_INITIALIZER;
static struct task *queue, *free_tasks;
static uint64_t n_open; /* tasks that are queued or under way */

static struct task *new_task(uint64_t number) {
    pthread_mutex_lock(&free_lock);
    struct task *t = free_tasks;
    if (t != NULL)
        free_tasks = t->next;
    pthread_mutex_unlock(&free_lock);
    if (t == NULL && (t = malloc(sizeof *t)) == NULL)
        failed("malloc");
    t->number = number;
    return t;
}

static void free_task(struct task *t) {
    pthread_mutex_lock(&free_lock);
    t->next = free_tasks;
    free_tasks = t;
    pthread_mutex_unlock(&free_lock);
}

static void put_task(uint64_t number) {
    struct task *t = new_task(number);
    pthread_mutex_lock(&task_lock);
    t->next = queue;
    queue = t;
    n_open++;
    pthread_cond_signal(&task_queued);
    pthread_mutex_unlock(&task_lock);
}

/* NULL: all are done. */
static struct task *take_task(void) {
    pthread_mutex_lock(&task_lock);
    while (queue == NULL && n_open != 0)
        pthread_cond_wait(&task_queued, &task_lock);
    struct task *t = queue;
    if (t != NULL)
        queue = t->next;
    pthread_mutex_unlock(&task_lock);
    return t;
}

static void end_task(struct task *t) {
    free_task(t);
    pthread_mutex_lock(&task_lock);
    if (--n_open == 0)
        pthread_cond_broadcast(&task_queued);
    pthread_mutex_unlock(&task_lock);
}

static void *radiosity(void *argument) {
    struct result *result = &results[(uintptr_t)argument], mine = {0, 0};
    for (struct task *t; (t = take_task()) != NULL; end_task(t)) {
        mine.n++;
        mine.sum += compute(t->number, TASK_ROUNDS) % PRIME;
        for (uint64_t child = 0; child < 2 && t->number < UINT64_C(1) << (DEPTH - 1); child++)
            put_task(2 * t->number + child);
    }
    *result = mine;
    return NULL;
}

/* ---- raytrace ---- */

static struct pool {
    pthread_mutex_t lock;
    uint64_t next, end; /* tiles */
} pools[MAX_THREADS];

pthread_mutex_t ray_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t n_rays;

static int take_tile(unsigned me, uint64_t *tile) {
    for (unsigned i = 0; i < n_threads; i++) {
        struct pool *p = &pools[(me + i) % n_threads];
        pthread_mutex_lock(&p->lock);
        int there = p->next < p->end;
        *tile = p->next;
        p->next += (uint64_t)there;
        pthread_mutex_unlock(&p->lock);
        if (there)
            return 1;
    }
    return 0;
}

/* The sum has the numbers of the rays, of which each is there once, and what each tile's rays see. */
static void *raytrace(void *argument) {
    struct result *result = &results[(uintptr_t)argument], mine = {0, 0};
    for (uint64_t tile; take_tile((unsigned)(uintptr_t)argument, &tile);) {
        for (uint64_t ray = 0; ray < RAYS; ray++) {
            pthread_mutex_lock(&ray_lock);
            uint64_t number = n_rays++;
            pthread_mutex_unlock(&ray_lock);
            mine.n++;
            mine.sum += number + compute(tile * RAYS + ray + 1, RAY_ROUNDS) % PRIME;
        }
    }
    *result = mine;
    return NULL;
}

/* ---- strings ---- */

static char *text;
static char keys[KEYS][WORD];
pthread_mutex_t piece_lock = PTHREAD_MUTEX_INITIALIZER, found_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_piece;
static struct result found;

static void make_word(char word[static WORD], uint64_t seed) {
    for (int i = 0; i < WORD; i++, seed /= 26)
        word[i] = (char)('a' + seed % 26);
}

static void make_text(void) {
    if ((text = malloc((size_t)WORDS * WORD)) == NULL)
        failed("malloc");
    for (uint64_t i = 0; i < WORDS; i++)
        make_word(text + i * WORD, compute(i + 1, 3) % 1000);
    for (uint64_t i = 0; i < KEYS; i++)
        make_word(keys[i], i * 100);
}

/* As Phoenix does, the word is encrypted before it is compared. */
static int is_key(const char *word) {
    char coded[WORD];
    for (int i = 0; i < WORD; i++)
        coded[i] = (char)(word[i] + 5);
    for (int k = 0; k < KEYS; k++) {
        int same = 1;
        for (int i = 0; i < WORD; i++)
            same &= coded[i] == (char)(keys[k][i] + 5);
        if (same)
            return 1;
    }
    return 0;
}

static void *strings(void *argument) {
    struct result *result = &results[(uintptr_t)argument];
    for (;;) {
        struct result piece = {0, 0};
        pthread_mutex_lock(&piece_lock);
        uint64_t at = next_piece++;
        pthread_mutex_unlock(&piece_lock);
        if (at >= WORDS / PIECE)
            return NULL;
        for (uint64_t i = at * PIECE; i < (at + 1) * PIECE; i++)
            if (is_key(text + i * WORD)) {
                piece.n++;
                piece.sum += i;
            }
        pthread_mutex_lock(&found_lock);
        found.n += piece.n;
        found.sum += piece.sum;
        pthread_mutex_unlock(&found_lock);
        result->n += piece.n;
        result->sum += piece.sum;
    }
}

/* ---- main ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct result run(void *(*thread)(void *)) {
    static pthread_t threads[MAX_THREADS];
    struct result all = {0, 0};
    for (uintptr_t i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, thread, (void *)i) != 0)
            failed("pthread_create");
    for (unsigned i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
        all.n += results[i].n;
        all.sum += results[i].sum;
    }
    return all;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name, *what;
        void *(*thread)(void *);
    } kinds[] = {{"radiosity", "tasks", radiosity}, {"raytrace", "rays", raytrace}, {"strings", "matches", strings}};
    char *end = NULL;
    size_t kind = 0;
    while (argc == 3 && kind < sizeof kinds / sizeof *kinds && strcmp(argv[1], kinds[kind].name) != 0)
        kind++;
    unsigned long n = argc == 3 ? strtoul(argv[2], &end, 10) : 0;
    if (kind == sizeof kinds / sizeof *kinds || end == NULL || *end != '\0' || n < 1 || n > MAX_THREADS) {
        fprintf(stderr, "Usage: task-queues radiosity|raytrace|strings THREADS (1 to %d)\n", MAX_THREADS);
        return 2;
    }
    n_threads = (unsigned)n;
    for (unsigned i = 0; i < n_threads; i++) {
        pthread_mutex_init(&pools[i].lock, NULL);
        pools[i].next = (uint64_t)TILES * i / n_threads;
        pools[i].end = (uint64_t)TILES * (i + 1) / n_threads;
    }
    make_text();
    double begin = now();
    put_task(1);
    struct result all = run(kinds[kind].thread);
    double seconds = now() - begin;
    if (kinds[kind].thread == radiosity && all.n != (UINT64_C(1) << DEPTH) - 1)
        failed("a task was lost: a mutex");
    if (kinds[kind].thread == raytrace && (all.n != (uint64_t)TILES * RAYS || n_rays != all.n))
        failed("a ray was lost: a mutex");
    if (kinds[kind].thread == strings && (all.n != found.n || all.sum != found.sum))
        failed("a match was lost: a mutex");
    printf("%s: %llu %s, sum %016llx\n%.6f\n", argv[1], (unsigned long long)all.n, kinds[kind].what,
           (unsigned long long)all.sum, seconds);
    free(text);
    return 0;
}
