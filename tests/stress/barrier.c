/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barriers: no thread passes before all have come, exactly one serial thread per round, and a barrier may be destroyed
 * as soon as one's own wait has returned. The phases are plain data: the barrier alone orders them.
 */
#include "objects.h"

#include <stdlib.h>
#include <string.h>

struct rounds {
    pthread_barrier_t barrier;
    unsigned n;
    uint64_t (*phase)[2]; /* [thread][round & 1]: written before the barrier, read by all after it */
    atomic_uint serial[4];
};

static void rounds_body(struct worker *w) {
    struct rounds *r = w->shared;
    uint64_t rounds = w->left;
    for (uint64_t i = 0; i < rounds; i++) {
        if (rng_chance(&w->rng, 5))
            think(w);
        r->phase[w->index][i & 1] = i + 1;
        AT("barrier_wait");
        int result = pthread_barrier_wait(&r->barrier);
        CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD)
            atomic_fetch_add_explicit(&r->serial[i % 4], 1, memory_order_relaxed);
        for (unsigned k = 0; k < r->n; k++)
            CHECK_INT(r->phase[k][i & 1], i + 1);
        /* All have counted round i - 1 before they came to the barrier of round i. */
        if (i > 0 && w->index == i % r->n)
            CHECK_INT(atomic_exchange_explicit(&r->serial[(i - 1) % 4], 0, memory_order_relaxed), 1);
        w->n[0]++;
        DID();
    }
}

static void barrier_rounds(struct run *run) {
    static const unsigned sizes[] = {2, 3, 4, 7, 16, 33, 70};
    uint64_t waits = 0, ops = run->ops / 7;
    for (unsigned i = 0; i < 7 && !run->stop; i++) {
        struct rounds r = {.n = sizes[i]};
        uint64_t sums[4];
        r.phase = calloc(r.n, sizeof *r.phase);
        OK(pthread_barrier_init(&r.barrier, NULL, r.n));
        run->ops = ops;
        team_whole(run, r.n, rounds_body, &r, sums);
        OK(pthread_barrier_destroy(&r.barrier));
        free(r.phase);
        waits += sums[0];
    }
    torture_note("%llu waits in barriers of 2 to 70 threads", (unsigned long long)waits);
}

/* ---- one barrier per round, destroyed and unmapped by a thread that has just passed it ---- */
struct fleeting {
    struct meeting meeting;
    pthread_barrier_t *barrier;
    unsigned n;
    atomic_uint n_serial;
};

static void fleeting_body(struct worker *w) {
    struct fleeting *f = w->shared;
    uint64_t rounds = w->left;
    for (uint64_t i = 0; i < rounds; i++) {
        if (w->index == 0) {
            f->barrier = page_map();
            memset(f->barrier, (int)rng_below(&w->rng, 256), sizeof *f->barrier);
            OK(pthread_barrier_init(f->barrier, NULL, f->n));
        }
        meeting_wait(&f->meeting);
        pthread_barrier_t *barrier = f->barrier;
        unsigned uses = 1 + (unsigned)(i % 3);
        int result = 0;
        for (unsigned k = 0; k < uses; k++) {
            AT("barrier_wait, then gone");
            result = pthread_barrier_wait(barrier);
            if (result == PTHREAD_BARRIER_SERIAL_THREAD)
                w->n[0]++;
        }
        /* Either the serial thread or another one; the others are perhaps still inside wait. */
        if (i & 1 ? result == PTHREAD_BARRIER_SERIAL_THREAD : w->index == i % f->n) {
            AT("barrier_destroy");
            OK(pthread_barrier_destroy(barrier));
            page_unmap(barrier, &w->rng);
        }
        w->n[1] += uses;
        meeting_wait(&f->meeting);
        DID();
    }
}

static void barrier_fleeting(struct run *run) {
    static const unsigned sizes[] = {2, 3, 8, 24};
    uint64_t rounds = 0, ops = run->ops / 4;
    for (unsigned i = 0; i < 4 && !run->stop; i++) {
        struct fleeting f = {.n = sizes[i]};
        uint64_t sums[4];
        meeting_init(&f.meeting, f.n);
        run->ops = ops;
        team_whole(run, f.n, fleeting_body, &f, sums);
        CHECK_INT(sums[0] * f.n, sums[1]); /* one serial thread for each n waits */
        rounds += sums[0];
        pages_flush();
    }
    torture_note("%llu rounds, each barrier destroyed and unmapped at once", (unsigned long long)rounds);
}

const struct torture barrier_tortures[] = {
    {"barrier-rounds", "no thread passes early, one serial thread a round", barrier_rounds, 70, 70000, 0},
    {"barrier-fleeting", "destroyed and unmapped right after wait", barrier_fleeting, 24, 8000, NEEDS_EARLY_DESTROY},
    {0},
};
