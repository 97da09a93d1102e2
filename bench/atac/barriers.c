/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "barriers.h"

#include <stdio.h>
#include <stdlib.h>

#include "mutex.h"
#include "subutai/atac.h"

const char *barrier_name(enum barrier_kind kind) {
    static const char *const names[] = {"pthread", "sense-reversing", "vc", "server"};
    return names[kind];
}

/* Times of an episode. */
struct episode {
    uint64_t last_in, first_out, last_out;
};

struct loop {
    enum barrier_kind kind;
    uint32_t n_loops, n_threads, words;
    barrier_work *work;
    struct episode *episodes;
    BarrierMaster *master;
};

/* ---- glibc's, before 2.25 ---- */

enum { LOCK, LEFT, EVENT };

static void pthread_wait(struct sim_program *p, const struct loop *loop) {
    uint32_t words = loop->words;
    atac_mutex_lock(words + LOCK);
    if (sim_fetch_add(p, words + LEFT, (uint64_t)-1) == 1) {
        sim_fetch_add(p, words + EVENT, 1);
        sim_futex_wake(p, words + EVENT, UINT32_MAX);
    } else {
        uint64_t event = sim_load(p, words + EVENT);
        atac_mutex_unlock(words + LOCK);
        do
            sim_futex_wait(p, words + EVENT, event);
        while (sim_load(p, words + EVENT) == event);
    }
    /* The last one to leave lets the next episode begin. */
    if (sim_fetch_add(p, words + LEFT, 1) == loop->n_threads - 1)
        atac_mutex_unlock(words + LOCK);
}

/* ---- sense reversing ---- */

enum { COUNT, SENSE };

static void sense_wait(struct sim_program *p, const struct loop *loop, uint32_t number) {
    uint64_t sense = (number + 1) % 2; /* this thread's, reversed each time */
    if (sim_fetch_add(p, loop->words + COUNT, (uint64_t)-1) == 1) {
        sim_store(p, loop->words + COUNT, loop->n_threads);
        sim_store(p, loop->words + SENSE, sense);
        return;
    }
    sim_spin_while(p, loop->words + SENSE, 1 - sense);
}

/* ---- the loop ---- */

static void prepare(struct sim_program *p, void *argument) {
    struct loop *loop = argument;
    loop->words = sim_words(p, SIM_WORDS_OF_LINE);
    if (loop->kind == BARRIER_VC)
        loop->master = BarrierMaster_new((int)loop->n_threads);
}

static void begin(struct sim_program *p, struct loop *loop) {
    if (sim_self(p) == 0 && loop->kind != BARRIER_VC && loop->kind != BARRIER_SERVER)
        sim_store(p, loop->words + (loop->kind == BARRIER_PTHREAD ? (uint32_t)LEFT : (uint32_t)COUNT), loop->n_threads);
    sim_compute(p, 2000 - sim_cycles(p)); /* all threads are ready, as behind the thesis's rank_barrier */
}

static void body(struct sim_program *p, void *argument) {
    struct loop *loop = argument;
    Barrier *barrier = loop->kind == BARRIER_VC ? BarrierMaster_generate_barrier(loop->master) : NULL;
    begin(p, loop);
    for (uint32_t i = 0; i < loop->n_loops; i++) {
        struct episode *e = &loop->episodes[i];
        if (loop->work != NULL)
            sim_compute(p, loop->work(sim_self(p), loop->n_threads, i));
        uint64_t in = sim_cycles(p);
        e->last_in = in > e->last_in ? in : e->last_in;
        if (loop->kind == BARRIER_PTHREAD)
            pthread_wait(p, loop);
        else if (loop->kind == BARRIER_SENSE_REVERSING)
            sense_wait(p, loop, i);
        else if (loop->kind == BARRIER_SERVER)
            sim_server_barrier(p, loop->words, loop->n_threads);
        else
            Barrier_wait(barrier);
        uint64_t out = sim_cycles(p);
        e->first_out = e->first_out == 0 || out < e->first_out ? out : e->first_out;
        e->last_out = out > e->last_out ? out : e->last_out;
    }
    if (barrier != NULL)
        Barrier_delete(barrier);
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void *need(void *memory) {
    if (memory == NULL) {
        fprintf(stderr, "barriers: no memory\n");
        exit(1);
    }
    return memory;
}

struct barrier_loop barrier_program_run(const struct atac_config *config, enum barrier_kind kind, uint32_t n_loops,
                                        barrier_work *work) {
    struct loop loop = {.kind = kind, .n_loops = n_loops, .n_threads = config->chip.n_cores, .work = work};
    struct barrier_loop result = {0};
    struct sim_error error;
    uint64_t *exits = need(calloc(n_loops, sizeof *exits));
    loop.episodes = need(calloc(n_loops, sizeof *loop.episodes));
    if (atac_run(config, prepare, body, &loop, &result.cycles, &error) != SIM_OK) {
        fprintf(stderr, "barriers: %s: %s\n", barrier_name(kind), error.text);
        exit(1);
    }
    for (uint32_t i = 0; i < n_loops; i++) {
        result.n_overlapping += loop.episodes[i].first_out < loop.episodes[i].last_in;
        exits[i] = loop.episodes[i].last_out - loop.episodes[i].last_in;
    }
    qsort(exits, n_loops, sizeof *exits, ascending);
    result.median_exit = exits[n_loops / 2];
    if (loop.master != NULL)
        BarrierMaster_delete(loop.master);
    free(loop.episodes);
    free(exits);
    return result;
}

struct barrier_loop barrier_loop_run(const struct atac_config *config, enum barrier_kind kind, uint32_t n_loops) {
    return barrier_program_run(config, kind, n_loops, NULL);
}
