/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Once: each initialiser runs to its end exactly once, all callers see what it wrote, an initialiser may use other
 * onces, and one that is cancelled leaves the once as it was.
 */
#include "objects.h"

#include <stdlib.h>
#include <string.h>

static pthread_once_t *onces;
static unsigned *values; /* plain: ordered by the once */
static unsigned n_onces;
static _Thread_local unsigned wanted;
static _Thread_local struct worker *me;

static void initialise(void) {
    unsigned at = wanted;
    if (at % 5 == 0 && at + 1 < n_onces) {
        wanted = at + 1;
        OK(pthread_once(&onces[at + 1], initialise)); /* always the next one: no cycle */
        CHECK_INT(values[at + 1], 1);
    }
    think(me);
    values[at]++;
    me->n[0]++;
}

static void once_body(struct worker *w) {
    me = w;
    unsigned start = rng_below(&w->rng, 8);
    for (unsigned i = 0; i < n_onces; i++) {
        /* All threads walk the same way, so that they meet. */
        unsigned at = (i + start) % n_onces;
        wanted = at;
        AT("once");
        OK(pthread_once(&onces[at], initialise));
        CHECK_INT(values[at], 1);
        DID();
    }
}

static void once_many(struct run *run) {
    uint64_t sums[4];
    n_onces = (unsigned)(run->ops / run->threads + 1);
    onces = calloc(n_onces, sizeof *onces);
    values = calloc(n_onces, sizeof *values);
    for (unsigned i = 0; i < n_onces; i++)
        onces[i] = (pthread_once_t)PTHREAD_ONCE_INIT;
    team_whole(run, run->threads, once_body, NULL, sums);
    CHECK_INT(sums[0], n_onces);
    torture_note("%u onces for %u threads, each ran once", n_onces, run->threads);
    free(onces);
    free(values);
}

/* ---- cancelled initialisers ---- */
static pthread_once_t shaky_once;
static atomic_uint shaky_starts, shaky_ends;
static unsigned shaky_failures, shaky_value;

static void shaky(void) {
    unsigned start = atomic_fetch_add_explicit(&shaky_starts, 1, memory_order_relaxed);
    think(me);
    if (start < shaky_failures) {
        pthread_cancel(pthread_self());
        pthread_testcancel();
        CHECK(!"the cancelled initialiser went on");
    }
    shaky_value++;
    atomic_fetch_add_explicit(&shaky_ends, 1, memory_order_relaxed);
}

static void shaky_body(struct worker *w) {
    me = w;
    meeting_wait(w->shared);
    AT("once with an initialiser that is cancelled");
    OK(pthread_once(&shaky_once, shaky));
    CHECK_INT(shaky_value, 1);
}

static void once_cancelled(struct run *run) {
    uint64_t rounds = run->ops / run->threads + 1, cancelled = 0;
    for (uint64_t round = 0; round < rounds && !run->stop; round++) {
        struct worker *workers = calloc(run->threads, sizeof *workers);
        struct meeting meeting;
        unsigned n_cancelled = 0;
        meeting_init(&meeting, run->threads);
        shaky_once = (pthread_once_t)PTHREAD_ONCE_INIT;
        shaky_value = 0;
        shaky_failures = (unsigned)(round % run->threads);
        atomic_store(&shaky_starts, 0);
        atomic_store(&shaky_ends, 0);
        for (unsigned i = 0; i < run->threads; i++) {
            workers[i] = (struct worker){.index = i, .run = run, .shared = &meeting, .body = shaky_body};
            rng_seed(&workers[i].rng, run->seed, round * 100 + i);
            worker_start(&workers[i]);
        }
        for (unsigned i = 0; i < run->threads; i++)
            n_cancelled += worker_join(&workers[i]) == PTHREAD_CANCELED;
        CHECK_INT(n_cancelled, shaky_failures);
        CHECK_INT(shaky_starts, shaky_failures + 1);
        CHECK_INT(shaky_ends, 1);
        cancelled += n_cancelled;
        free(workers);
        DID();
    }
    torture_note("%llu rounds, %llu initialisers cancelled", (unsigned long long)rounds, (unsigned long long)cancelled);
}

const struct torture once_tortures[] = {
    {"once-many", "each initialiser runs exactly once, before any thread passes", once_many, 8, 40000, 0},
    {"once-cancelled", "a cancelled initialiser leaves the once to the next", once_cancelled, 6, 1500, NEEDS_CANCEL},
    {0},
};
