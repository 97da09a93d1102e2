/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * semaphore: a buffer of one place between half of the threads and the other half, kept by two semaphores. With two
 * threads this is ping-pong. The place itself is a plain variable: two threads inside lose or double an item.
 */
#include "bench.h"

#include <errno.h>
#include <semaphore.h>

static struct {
    _Alignas(BENCH_LINE) sem_t free;
    _Alignas(BENCH_LINE) sem_t filled;
    uint64_t item;
} buffer;
static atomic_int n_producing;
static uint64_t *sums; /* per worker */

#define NO_MORE UINT64_MAX /* item that sends one consumer home */

static void semaphore_setup(struct bench *b) {
    bench_must(sem_init(&buffer.free, 0, 1), "sem_init");
    bench_must(sem_init(&buffer.filled, 0, 0), "sem_init");
    atomic_store(&n_producing, bench_n_producers(b));
    sums = bench_alloc((size_t)b->n_workers, sizeof *sums);
}

static void wait_for(sem_t *s) {
    while (sem_wait(s) != 0)
        if (errno != EINTR)
            bench_fail("sem_wait: error %d", errno);
}

static void put(uint64_t item) {
    wait_for(&buffer.free);
    buffer.item = item;
    bench_must(sem_post(&buffer.filled), "sem_post");
}

static void semaphore_worker(struct bench *b, struct bench_worker *w) {
    uint64_t sum = 0;
    if (w->id < bench_n_producers(b)) {
        uint64_t share = bench_share(b, (uint64_t)bench_n_producers(b));
        while (bench_more(b, w->ops, share)) {
            uint64_t item = ((uint64_t)w->id << 40) + w->ops++;
            sum += item;
            bench_busy_ns(b->think_ns);
            put(item);
        }
        /* The one place is filled in turn, so the last producer's farewells come after every item. */
        if (atomic_fetch_sub(&n_producing, 1) == 1)
            for (int i = bench_n_producers(b); i < b->n_workers; i++)
                put(NO_MORE);
    } else {
        for (;;) {
            wait_for(&buffer.filled);
            uint64_t item = buffer.item;
            bench_must(sem_post(&buffer.free), "sem_post");
            if (item == NO_MORE)
                break;
            sum += item;
            w->ops++;
            bench_busy_ns(b->think_ns);
        }
    }
    sums[w->id] = sum;
}

static uint64_t semaphore_finish(struct bench *b) {
    uint64_t n_taken = bench_items_taken(b, sums);
    bench_must(sem_destroy(&buffer.free), "sem_destroy");
    bench_must(sem_destroy(&buffer.filled), "sem_destroy");
    return n_taken;
}

const struct bench_kind bench_semaphore = {"semaphore",     "item that went through a buffer of one place",
                                           BENCH_THINK,     bench_at_least_two,
                                           semaphore_setup, semaphore_worker,
                                           semaphore_finish};
