/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* barrier: all threads meet in one barrier, round after round, with nothing in between. */
#include "rounds.h"

static pthread_barrier_t barrier;
static _Alignas(BENCH_LINE) uint64_t n_serial; /* only the round's serial thread writes; the next round orders them */

static void barrier_setup(struct bench *b) {
    bench_must(pthread_barrier_init(&barrier, NULL, (unsigned)b->threads), "pthread_barrier_init");
}

static void barrier_worker(struct bench *b, struct bench_worker *w) {
    uint64_t share = bench_share(b, 1);
    for (bool last = false; !last; w->ops++) {
        uint64_t round = w->ops;
        if (w->id == 0)
            bench_round_begin(b, round, share);
        int result = pthread_barrier_wait(&barrier);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD)
            n_serial++;
        else
            bench_must(result, "pthread_barrier_wait");
        last = bench_round_is_last(round);
    }
}

static uint64_t barrier_finish(struct bench *b) {
    for (int i = 0; i < b->n_workers; i++)
        bench_check_equal("a thread's number of rounds", b->workers[i].ops, n_serial);
    bench_must(pthread_barrier_destroy(&barrier), "pthread_barrier_destroy");
    return n_serial;
}

const struct bench_kind bench_barrier = {"barrier",      "round of all threads", 0, bench_n_threads, barrier_setup,
                                         barrier_worker, barrier_finish};
