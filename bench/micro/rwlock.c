/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rwlock: all threads share one read-write lock; --write-percent of the locks are for writing, drawn per thread from
 * a fixed sequence. A writer increments two variables one after the other, so a reader beside a writer can see them
 * differ, and a second writer loses an increment.
 */
#include "bench.h"

static struct {
    _Alignas(BENCH_LINE) pthread_rwlock_t lock;
    volatile uint64_t a, b; /* protected by lock */
} shared = {.lock = PTHREAD_RWLOCK_INITIALIZER};
static uint64_t *n_writes; /* per worker */

static void rwlock_setup(struct bench *b) {
    n_writes = bench_alloc((size_t)b->n_workers, sizeof *n_writes);
}

static void rwlock_worker(struct bench *b, struct bench_worker *w) {
    uint64_t share = bench_share(b, (uint64_t)b->threads), ops = 0, writes = 0;
    uint64_t random = (uint64_t)w->id * 2654435761u + 12345;
    for (; bench_more(b, ops, share); ops++) {
        random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        if ((random >> 33) % 100 < b->write_percent) {
            bench_must(pthread_rwlock_wrlock(&shared.lock), "pthread_rwlock_wrlock");
            shared.a++;
            bench_busy_ns(b->cs_ns);
            shared.b++;
            writes++;
        } else {
            bench_must(pthread_rwlock_rdlock(&shared.lock), "pthread_rwlock_rdlock");
            uint64_t a = shared.a;
            bench_busy_ns(b->cs_ns);
            if (a != shared.b)
                bench_check_equal("what a reader sees", shared.b, a);
        }
        bench_must(pthread_rwlock_unlock(&shared.lock), "pthread_rwlock_unlock");
        bench_busy_ns(b->think_ns);
    }
    w->ops = ops;
    n_writes[w->id] = writes;
}

static uint64_t rwlock_finish(struct bench *b) {
    uint64_t total = 0;
    for (int i = 0; i < b->n_workers; i++)
        total += n_writes[i];
    bench_check_equal("the writers' first count", shared.a, total);
    bench_check_equal("the writers' second count", shared.b, total);
    bench_must(pthread_rwlock_destroy(&shared.lock), "pthread_rwlock_destroy");
    return bench_total_ops(b);
}

const struct bench_kind bench_rwlock = {"rwlock",
                                        "read or write lock, and unlock, of one read-write lock",
                                        BENCH_CS | BENCH_THINK | BENCH_WRITES | BENCH_FAIRNESS,
                                        bench_n_threads,
                                        rwlock_setup,
                                        rwlock_worker,
                                        rwlock_finish};
