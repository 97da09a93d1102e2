/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory behind the caches: the latency of a load that misses them all, and how much cores read of it.
 *
 * Latency: a chain through all lines of the buffer in random order; each load has the address of the next. Bandwidth:
 * sums over the buffer, by one core, and by one thread a core, each with its own piece. The buffer is four times the
 * caches of the highest level. It is made of huge pages if the kernel has some to give: otherwise misses of the TLB
 * are part of the latency.
 */
#include "calibrate.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHAIN_A_SAMPLE = 20000 };
#define LEAST_BYTES (UINT64_C(64) << 20)
#define MOST_BYTES (UINT64_C(1) << 30)

struct line {
    _Alignas(64) struct line *next;
};

static struct line *lines;
static size_t n_lines;

static uint64_t random_next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
    return *state >> 33;
}

static void get_buffer(void) {
    struct caches c = caches_of_cpu(cpus_usable()->cpu[0]);
    uint64_t level = c.l3_bytes > 0 ? c.l3_bytes : c.l2_bytes > 0 ? c.l2_bytes : c.l1d_bytes;
    uint64_t bytes = 4 * level * ((uint64_t)cpus_usable()->n / (uint64_t)c.last_level_cpus);
    uint64_t free_bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes > MOST_BYTES ? MOST_BYTES : bytes;
    bytes = bytes > free_bytes / 2 ? free_bytes / 2 : bytes;
    if (bytes < 2 * level)
        refuse("%ju MiB of memory are free; %ju MiB are needed, twice the cache", (uintmax_t)(free_bytes >> 20),
               (uintmax_t)(4 * level >> 20));
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap: %s", strerror(errno));
    (void)madvise(memory, bytes, MADV_HUGEPAGE); /* refused by kernels without huge pages */
    lines = memory;
    n_lines = bytes / sizeof *lines;
}

/* Sattolo's shuffle: a single cycle through all lines. */
static void chain_lines(void) {
    uint64_t state = 12345;
    for (size_t i = 0; i < n_lines; i++)
        lines[i].next = &lines[i];
    for (size_t i = n_lines - 1; i > 0; i--) {
        size_t k = random_next(&state) % i;
        struct line *next = lines[i].next;
        lines[i].next = lines[k].next;
        lines[k].next = next;
    }
}

static void measure_latency(double seconds) {
    struct samples *s = samples_new("latency_ns");
    struct line *at = lines;
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9);
    while (samples_wanted(s, end_ns)) {
        uint64_t begin = now_ns();
        for (int i = 0; i < CHAIN_A_SAMPLE; i++)
            at = at->next;
        __asm__ volatile("" : : "r"(at));
        samples_add(s, (double)(now_ns() - begin) / CHAIN_A_SAMPLE);
    }
}

static void read_bytes(const uint64_t *words, size_t bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        sum += words[i];
    __asm__ volatile("" : : "r"(sum));
}

/* A round begins when `round` changes, and ends when all readers have counted themselves in `n_done`. */
static struct {
    _Alignas(CALIBRATE_LINE) _Atomic uint32_t round;
    _Alignas(CALIBRATE_LINE) _Atomic int n_done;
} shared;
static size_t bytes_each;

static void *reader(void *number) {
    const char *piece = (const char *)lines + (size_t)(intptr_t)number * bytes_each;
    pin_to(cpus_usable()->core[(intptr_t)number]);
    for (uint32_t round = 1;; round++) {
        uint32_t now;
        while ((now = atomic_load(&shared.round)) < round)
            look_again();
        if (now == UINT32_MAX)
            return NULL;
        read_bytes((const uint64_t *)piece, bytes_each);
        atomic_fetch_add(&shared.n_done, 1);
    }
}

static void measure_all(double seconds) {
    struct samples *s = samples_new("all_bytes_per_ns");
    int n = cpus_usable()->n_cores;
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    if (threads == NULL)
        fail("out of memory");
    bytes_each = n_lines * sizeof *lines / (size_t)n / sizeof *lines * sizeof *lines;
    /* This thread is the first core's reader. */
    for (intptr_t i = 1; i < n; i++)
        must(pthread_create(&threads[i], NULL, reader, (void *)i), "pthread_create");
    uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9);
    for (uint32_t round = 1; samples_wanted(s, end_ns); round++) {
        atomic_store(&shared.n_done, 0);
        uint64_t begin = now_ns();
        atomic_store(&shared.round, round);
        read_bytes((const uint64_t *)lines, bytes_each);
        while (atomic_load(&shared.n_done) < n - 1)
            look_again();
        if (round > 1) /* the others may have been on their way in the first */
            samples_add(s, (double)bytes_each * n / (double)(now_ns() - begin));
    }
    atomic_store(&shared.round, UINT32_MAX);
    for (int i = 1; i < n; i++)
        must(pthread_join(threads[i], NULL), "pthread_join");
    free(threads);
}

void measure_memory(double seconds) {
    int pair[2];
    cpus_pair(pair);
    pin_to(pair[0]);
    get_buffer();
    chain_lines();
    measure_latency(seconds / 3);
    struct samples *one = samples_new("core_bytes_per_ns");
    uint64_t end_ns = now_ns() + (uint64_t)(seconds / 3 * 1e9);
    while (samples_wanted(one, end_ns)) {
        uint64_t begin = now_ns();
        read_bytes((const uint64_t *)lines, n_lines * sizeof *lines);
        samples_add(one, (double)(n_lines * sizeof *lines) / (double)(now_ns() - begin));
    }
    measure_all(seconds / 3);
}
