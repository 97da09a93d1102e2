/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * locks: the custom microbenchmark of Lozi's thesis on Remote Core Locking. All threads run sections under one lock of
 * bench/locks (--lock), --think-ns apart; a section reads and writes --lines shared cache lines. What a section costs
 * is then the way of the lock and the way of the lines from core to core.
 *
 * Where the machine has a counter of cache misses, those of the user's part of the program are counted: of all of it,
 * from the first section to the last. Where it has none, as most virtual machines, the figure is null.
 */
#include "bench.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "json_file.h"
#include "locks/locks.h"
#include "locks/wait.h"

static struct {
    _Alignas(BENCH_LINE) uint64_t count; /* protected by the lock, incremented in two halves */
} lines[BENCH_MOST_LINES];

static const struct lock_kind *kind;
static void *lock;
static unsigned char *nodes;
static size_t node_stride;
static int counter = -1; /* of perf_event_open */
static uint64_t n_misses;

static int open_counter(void) {
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_HW_CACHE_MISSES,
        .inherit = 1, /* the workers are created after this */
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* "mcs", "mcs+yield" */
static const struct lock_kind *find(const char *text) {
    char name[32] = "", legal[256] = "";
    size_t n = strcspn(text, "+");
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    const struct lock_kind *found = lock_find(name);
    lock_yields = text[n] == '+';
    if (found != NULL && (!lock_yields || (strcmp(text + n, "+yield") == 0 && found != &lock_posix &&
                                           found != &lock_rcl && !found->alone)))
        return found;
    for (size_t i = 0; lock_kinds[i] != NULL; i++) {
        strcat(legal, lock_kinds[i]->name);
        strcat(legal, ", ");
    }
    bench_refuse("unknown lock '%s' (legal: %sand the spinning ones with +yield)", text, legal);
}

static void put(const struct bench *b, struct json *j) {
    json_text(j, "lock", b->lock);
    json_uint(j, "lines", b->lines);
    if (counter >= 0)
        json_real(j, "misses_per_op", (double)n_misses / (double)bench_total_ops(b), 3);
    else
        json_text(j, "misses_per_op", NULL);
}

static void setup(struct bench *b) {
    b->put = put;
    kind = find(b->lock);
    lock = bench_alloc(1, kind->bytes);
    kind->init(lock);
    node_stride = (kind->node_bytes + BENCH_LINE - 1) / BENCH_LINE * BENCH_LINE;
    nodes = bench_alloc((size_t)b->threads, node_stride + BENCH_LINE);
    for (int i = 0; i < b->threads; i++)
        kind->node_init(lock, nodes + (size_t)i * node_stride);
    counter = open_counter();
}

/*
 * Read before, write after: a second thread inside loses an increment. The compiler's barriers keep vectors out: a load
 * of two words that have just been stored apart waits for the cache, longer than all lines take.
 */
static void section(void *context) {
    const struct bench *b = context;
    uint64_t seen[BENCH_MOST_LINES];
    for (unsigned i = 0; i < b->lines; i++)
        seen[i] = lines[i].count;
    bench_busy_ns(b->cs_ns);
    for (unsigned i = 0; i < b->lines; i++) {
        __asm__ volatile("" ::: "memory");
        lines[i].count = seen[i] + 1;
    }
}

static void worker(struct bench *b, struct bench_worker *w) {
    void *node = nodes + (size_t)w->id * node_stride;
    uint64_t share = bench_share(b, kind->alone ? 1 : (uint64_t)b->threads), ops = 0;
    for (; (w->id == 0 || !kind->alone) && bench_more(b, ops, share); ops++) {
        kind->execute(lock, node, section, b);
        bench_busy_ns(b->think_ns);
    }
    w->ops = ops;
}

static uint64_t finish(struct bench *b) {
    if (counter >= 0 && read(counter, &n_misses, sizeof n_misses) != (ssize_t)sizeof n_misses)
        bench_fail("the counter of cache misses cannot be read");
    for (unsigned i = 0; i < b->lines; i++)
        bench_check_equal("the count in a shared line", lines[i].count, bench_total_ops(b));
    return bench_total_ops(b);
}

const struct bench_kind bench_locks = {
    .name = "locks",
    .operation = "section under a lock of --lock's, over --lines shared cache lines",
    .uses = BENCH_CS | BENCH_THINK | BENCH_FAIRNESS | BENCH_LOCKS,
    .n_workers = bench_n_threads,
    .setup = setup,
    .worker = worker,
    .finish = finish,
};
