/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state machine: for every state of Table III the best and the worst case, built as requests and compared with the
 * paper's formulas for several c and m; then what each answer means, and that refused requests change nothing.
 */
#include "hw_check.h"

#include <string.h>

struct cost {
    uint32_t m, c; /* accesses, cycles */
};

static const struct cost nothing = {0, 0};

static const struct { uint32_t m, c; } timings[] = {{2, 1}, {1, 1}, {3, 1}, {1, 5}, {7, 3}};
enum { N_TIMINGS = sizeof timings / sizeof *timings };

static struct hw_config config_for(uint32_t timing) {
    struct hw_config config = hw_config_default();
    config.timing.memory_cycles = timings[timing].m;
    config.timing.fsm_cycles = timings[timing].c;
    return config;
}

static uint32_t cycles(const struct bench_ni *b, struct cost cost) {
    return cost.m * b->ni.timing.memory_cycles + cost.c * b->ni.timing.fsm_cycles;
}

/* The last step took `response` and, if it is not nothing, injected its first packet after `injection`. */
static void ck_cost(const struct bench_ni *b, struct cost response, struct cost injection) {
    ck_assert_int_eq(b->step.status, HW_STATUS_DONE);
    ck_assert_uint_eq(b->step.n_accesses, response.m);
    ck_assert_uint_eq(b->step.n_cycles, response.c);
    ck_assert_uint_eq(b->step.response_cycles, 4 + cycles(b, response) + 1);
    if (injection.m + injection.c == 0)
        ck_assert_uint_eq(b->step.n_outputs, 0);
    else
        ck_assert_uint_eq(b->outputs[0].at_cycles, 4 + cycles(b, injection));
}

/* ---- Table III ---- */

/* 4m + c and n*m + 3m + c; injected at n*m + m + c, n the elements looked at. */
TEST_EACH(allocation, N_TIMINGS) {
    struct hw_config config = config_for((uint32_t)number);
    struct bench_ni b;
    bench_open(&b, &config, 0);
    for (uint32_t n = 1; n <= config.n_control; n++) {
        bench_do(&b, HW_OP_ALLOC_MUTEX, 0, 0, 0);
        ck_cost(&b, (struct cost){n + 3, 1}, (struct cost){n + 1, 1});
    }
    bench_do(&b, HW_OP_ALLOC_MUTEX, 0, 9, 5);
    ck_cost(&b, (struct cost){config.n_control, 1}, (struct cost){config.n_control, 1});
    ck_answer(&b, 0, HW_OP_NO_SPACE, 0, 9, 5);
    ck_assert_uint_eq(b.ni.stats.n_no_space, 1);
    ck_assert_uint_eq(b.ni.stats.max_control, config.n_control);
    bench_close(&b);
}

/* 3m, whatever it is. */
TEST_EACH(deallocation, N_TIMINGS) {
    struct hw_config config = config_for((uint32_t)number);
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t ids[] = {bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0), 0, bench_alloc(&b, HW_OP_ALLOC_BARRIER, 7)};
    ids[1] = bench_alloc(&b, HW_OP_ALLOC_CONDITION, ids[0]);
    for (uint32_t i = 0; i < 3; i++) {
        bench_do(&b, HW_OP_DEALLOC, ids[i], 0, 0);
        ck_cost(&b, (struct cost){3, 0}, nothing);
    }
    ck_assert_uint_eq(b.ni.spm.n_reserved, 0);
    bench_close(&b);
}

/* 2m + c when free; queued 11m at worst (not the first waiter, not the last element). */
TEST_EACH(mutex_lock, N_TIMINGS) {
    struct hw_config config = config_for((uint32_t)number);
    config.n_queue = 4;
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    bench_do(&b, HW_OP_LOCK, id, 1, 2);
    ck_cost(&b, (struct cost){2, 1}, (struct cost){2, 1});
    ck_answer(&b, 0, HW_OP_GRANT, id, 1, 2);
    const uint32_t queued[] = {8, 11, 11, 9};
    for (uint32_t i = 0; i < 4; i++) {
        bench_do(&b, HW_OP_LOCK, id, i, 2);
        ck_cost(&b, (struct cost){queued[i], 0}, nothing);
    }
    bench_close(&b);
}

/* 2m; with a waiter 10m + c, injected at 2m + c. */
TEST_EACH(mutex_unlock, N_TIMINGS) {
    struct hw_config config = config_for((uint32_t)number);
    struct bench_ni b;
    bench_open(&b, &config, 7);
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    for (uint32_t i = 0; i < 4; i++)
        bench_do(&b, HW_OP_LOCK, id, i, i);
    for (uint32_t i = 1; i < 4; i++) {
        bench_do(&b, HW_OP_UNLOCK, id, i - 1, i - 1);
        ck_cost(&b, (struct cost){10, 1}, (struct cost){2, 1});
        ck_answer(&b, 0, HW_OP_GRANT, id, i, i);
        ck_assert_uint_eq(hw_spm_peek(&b.ni.spm, 2), (i << 8 | i) << 16 | 1); /* its new owner */
    }
    bench_do(&b, HW_OP_UNLOCK, id, 3, 3);
    ck_cost(&b, (struct cost){2, 0}, nothing);
    ck_assert(b.step.made_room);
    bench_close(&b);
}

/* 7m at best; the last of 64: m + c + 63(11m + 3c), packets at m + c and every 11m + 3c. */
TEST_EACH(barrier_wait, N_TIMINGS) {
    struct hw_config config = config_for((uint32_t)number);
    struct bench_ni b;
    config.n_queue = 63;
    bench_open(&b, &config, 0);
    enum { N = 64 };
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_BARRIER, N);
    for (uint32_t generation = 0; generation < 3; generation++) {
        for (uint32_t i = 0; i + 1 < N; i++) {
            bench_do(&b, HW_OP_BARRIER_WAIT, id, i, generation);
            ck_cost(&b, (struct cost){i == 0 ? 9 : i < N - 2 ? 12 : 10, 0}, nothing);
        }
        bench_do(&b, HW_OP_BARRIER_WAIT, id, N - 1, generation);
        ck_cost(&b, (struct cost){1 + 63 * 11, 1 + 63 * 3}, (struct cost){1, 1});
        ck_assert_uint_eq(b.step.n_outputs, N);
        ck_answer(&b, 0, HW_OP_RELEASE, id, N - 1, generation);
        ck_assert_uint_eq(bench_output(&b, 0).argument, 1);
        for (uint32_t i = 1; i < N; i++) {
            ck_answer(&b, i, HW_OP_RELEASE, id, i - 1, generation);
            ck_assert_uint_eq(bench_output(&b, i).argument, 0);
            ck_assert_uint_eq(b.outputs[i].at_cycles, 4 + cycles(&b, (struct cost){1 + 11 * i, 1 + 3 * i}));
        }
    }
    bench_close(&b);
    /* Best: the first waiter takes the last element. */
    config.n_queue = 1;
    bench_open(&b, &config, 0);
    id = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 2);
    bench_do(&b, HW_OP_BARRIER_WAIT, id, 0, 0);
    ck_cost(&b, (struct cost){7, 0}, nothing);
    bench_close(&b);
}

/* 5m + c + Unlock at best, 10m + c + Unlock at worst. Its only packet is the Unlock's. */
TEST_EACH(condition_wait, N_TIMINGS) {
    struct hw_config config = config_for((uint32_t)number);
    config.n_queue = 1;
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0), id = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    bench_do(&b, HW_OP_LOCK, mutex, 0, 0);
    bench_do(&b, HW_OP_COND_WAIT, id, 0, 0);
    ck_cost(&b, (struct cost){5 + 2, 1}, nothing);
    bench_close(&b);
    config.n_queue = 122;
    bench_open(&b, &config, 0);
    mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0), id = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    for (uint32_t i = 0; i < 3; i++)
        bench_do(&b, HW_OP_LOCK, mutex, i, 0);
    bench_do(&b, HW_OP_COND_WAIT, id, 0, 0);
    bench_do(&b, HW_OP_COND_WAIT, id, 1, 0);
    ck_cost(&b, (struct cost){10 + 10, 2}, (struct cost){10 + 2, 2});
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 2, 0);
    bench_close(&b);
}

static void three_waiters(struct bench_ni *b, const struct hw_config *config, uint32_t *mutex, uint32_t *id) {
    bench_open(b, config, 0);
    *mutex = bench_alloc(b, HW_OP_ALLOC_MUTEX, 0);
    *id = bench_alloc(b, HW_OP_ALLOC_CONDITION, *mutex);
    for (uint32_t i = 0; i < 3; i++) {
        bench_do(b, HW_OP_LOCK, *mutex, i, i);
        bench_do(b, HW_OP_COND_WAIT, *id, i, i);
    }
}

/* m without a waiter; 18m + c with the mutex free, injected at 11m + c. */
TEST_EACH(condition_broadcast, N_TIMINGS) {
    struct hw_config config = config_for((uint32_t)number);
    struct bench_ni b;
    uint32_t mutex, id;
    three_waiters(&b, &config, &mutex, &id);
    bench_do(&b, HW_OP_BROADCAST, id, 9, 9);
    ck_cost(&b, (struct cost){18, 1}, (struct cost){11, 1});
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 0, 0);
    ck_assert_uint_eq(b.step.n_outputs, 1);
    ck_assert_uint_eq(hw_spm_n_waiting(&b.ni.spm, 0), 2);
    bench_do(&b, HW_OP_BROADCAST, id, 9, 9);
    ck_cost(&b, (struct cost){1, 0}, nothing);
    bench_do(&b, HW_OP_UNLOCK, mutex, 0, 0);
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 1, 1);
    bench_close(&b);
    /* The mutex is held, as it mostly is: all move behind those that wait for it, and no packet leaves. */
    three_waiters(&b, &config, &mutex, &id);
    bench_do(&b, HW_OP_LOCK, mutex, 9, 9);
    bench_do(&b, HW_OP_LOCK, mutex, 8, 8);
    bench_do(&b, HW_OP_BROADCAST, id, 9, 9);
    ck_cost(&b, (struct cost){9, 0}, nothing);
    for (uint32_t i = 0, order[] = {8, 0, 1, 2}; i < 4; i++) {
        bench_do(&b, HW_OP_UNLOCK, mutex, 9, 9);
        ck_answer(&b, 0, HW_OP_GRANT, mutex, order[i], order[i]);
    }
    bench_close(&b);
}

/* m without a waiter; 11m + c with the mutex free; with it held never more than the paper's bound 29m + 2c. */
TEST_EACH(condition_signal, N_TIMINGS) {
    struct hw_config config = config_for((uint32_t)number);
    struct bench_ni b;
    uint32_t mutex, id;
    three_waiters(&b, &config, &mutex, &id);
    bench_do(&b, HW_OP_SIGNAL, id, 9, 9);
    ck_cost(&b, (struct cost){11, 1}, (struct cost){11, 1});
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 0, 0);
    const uint32_t held[] = {17, 20};
    for (uint32_t i = 0; i < 2; i++) {
        bench_do(&b, HW_OP_SIGNAL, id, 9, 9);
        ck_cost(&b, (struct cost){held[i], 1}, nothing);
        ck_assert_uint_le(b.step.n_accesses, 29);
        ck_assert_uint_le(b.step.n_cycles, 2);
    }
    bench_do(&b, HW_OP_SIGNAL, id, 9, 9);
    ck_cost(&b, (struct cost){1, 0}, nothing);
    for (uint32_t i = 1; i < 3; i++) {
        bench_do(&b, HW_OP_UNLOCK, mutex, 9, 9);
        ck_answer(&b, 0, HW_OP_GRANT, mutex, i, i);
    }
    bench_close(&b);
}

/* ---- ours ---- */

TEST_EACH(trylock, N_TIMINGS) {
    struct hw_config config = config_for((uint32_t)number);
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    bench_do(&b, HW_OP_TRYLOCK, id, 1, 1);
    ck_cost(&b, (struct cost){2, 1}, (struct cost){2, 1});
    ck_answer(&b, 0, HW_OP_GRANT, id, 1, 1);
    bench_do(&b, HW_OP_TRYLOCK, id, 2, 2);
    ck_cost(&b, (struct cost){1, 1}, (struct cost){1, 1});
    ck_answer(&b, 0, HW_OP_BUSY, id, 2, 2);
    bench_do(&b, HW_OP_UNLOCK, id, 1, 1);
    bench_do(&b, HW_OP_TRYLOCK, id, 2, 2);
    ck_answer(&b, 0, HW_OP_GRANT, id, 2, 2);
    bench_close(&b);
}

/* A waiter leaves a mutex, a condition, and the mutex's queue after a signal, where it is too late. */
TEST(withdraw) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    uint32_t mutex, id;
    three_waiters(&b, &config, &mutex, &id);
    bench_do(&b, HW_OP_LOCK, mutex, 9, 9);
    bench_do(&b, HW_OP_LOCK, mutex, 8, 8);
    bench_do(&b, HW_OP_WITHDRAW, mutex, 8, 8);
    ck_answer(&b, 0, HW_OP_WITHDRAWN, mutex, 8, 8);
    ck_cost(&b, (struct cost){1 + 2 + 1 + 3, 1}, (struct cost){1 + 2 + 1 + 3, 1});
    bench_do(&b, HW_OP_WITHDRAW, mutex, 8, 8);
    ck_answer(&b, 0, HW_OP_GONE, mutex, 8, 8);
    ck_cost(&b, (struct cost){1, 1}, (struct cost){1, 1});
    bench_do(&b, HW_OP_WITHDRAW, id, 1, 1);
    ck_answer(&b, 0, HW_OP_WITHDRAWN, id, 1, 1);
    ck_cost(&b, (struct cost){1 + 4 + 4 + 3, 1}, (struct cost){1 + 4 + 4 + 3, 1});
    bench_do(&b, HW_OP_SIGNAL, id, 9, 9);
    bench_do(&b, HW_OP_WITHDRAW, id, 0, 0);
    ck_answer(&b, 0, HW_OP_GONE, id, 0, 0);
    bench_do(&b, HW_OP_UNLOCK, mutex, 9, 9);
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 0, 0);
    bench_do(&b, HW_OP_WITHDRAW, id, 2, 2);
    ck_answer(&b, 0, HW_OP_WITHDRAWN, id, 2, 2);
    ck_assert_uint_eq(b.ni.spm.n_free, config.n_queue);
    bench_close(&b);
}

/* Only what is idle is evicted, and its old ID is stale from then on. */
TEST(evict) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0), id = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    uint32_t barrier = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 2);
    bench_do(&b, HW_OP_EVICT, mutex, 3, 3);
    ck_answer(&b, 0, HW_OP_BUSY, mutex, 3, 3); /* a condition is bound to it */
    ck_cost(&b, (struct cost){0, 1}, (struct cost){0, 1});
    bench_do(&b, HW_OP_LOCK, mutex, 3, 3);
    bench_do(&b, HW_OP_COND_WAIT, id, 3, 3);
    bench_do(&b, HW_OP_BARRIER_WAIT, barrier, 4, 4);
    bench_do(&b, HW_OP_EVICT, id, 3, 3);
    ck_answer(&b, 0, HW_OP_BUSY, id, 3, 3);
    bench_do(&b, HW_OP_EVICT, barrier, 3, 3);
    ck_answer(&b, 0, HW_OP_BUSY, barrier, 3, 3);
    bench_do(&b, HW_OP_SIGNAL, id, 3, 3);
    bench_do(&b, HW_OP_EVICT, id, 3, 3);
    ck_answer(&b, 0, HW_OP_EVICTED, id, 3, 3);
    ck_cost(&b, (struct cost){3, 1}, (struct cost){3, 1});
    bench_do(&b, HW_OP_EVICT, mutex, 3, 3);
    ck_answer(&b, 0, HW_OP_BUSY, mutex, 3, 3); /* held */
    bench_do(&b, HW_OP_UNLOCK, mutex, 3, 3);
    bench_do(&b, HW_OP_EVICT, mutex, 3, 3);
    ck_answer(&b, 0, HW_OP_EVICTED, mutex, 3, 3);
    bench_do(&b, HW_OP_LOCK, mutex, 3, 3);
    ck_nack(&b, HW_OP_LOCK, HW_REASON_STALE);
    bench_close(&b);
}

/* A freed element's old IDs stay stale for as many allocations as the generation can count. */
TEST(stale_ids) {
    struct hw_config config = hw_config_default();
    config.n_tiles = 1024;
    config.n_control = 64;
    struct bench_ni b;
    bench_open(&b, &config, 1000);
    uint32_t n_generations = 1u << b.ni.spm.layout.generation_bits;
    ck_assert_uint_eq(n_generations, 128);
    uint32_t old = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    bench_do(&b, HW_OP_DEALLOC, old, 0, 0);
    for (uint32_t i = 1; i < n_generations; i++) {
        uint32_t id = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
        bench_do(&b, HW_OP_LOCK, old, 0, 0);
        ck_nack(&b, HW_OP_LOCK, HW_REASON_STALE);
        bench_do(&b, HW_OP_DEALLOC, id, 0, 0);
    }
    bench_close(&b);
}

/* Whatever is refused leaves every byte as it was and costs no access, or those that found it busy. */
TEST(refused) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    bench_open(&b, &config, 5);
    uint32_t mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0), id = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    uint32_t barrier = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 3);
    bench_do(&b, HW_OP_LOCK, mutex, 1, 1);
    bench_do(&b, HW_OP_LOCK, mutex, 2, 2);
    bench_do(&b, HW_OP_COND_WAIT, id, 1, 1);
    bench_do(&b, HW_OP_BARRIER_WAIT, barrier, 4, 4);
    uint8_t before[1024];
    memcpy(before, b.bytes, sizeof before);
    static const enum hw_op on_mutex[] = {HW_OP_COND_WAIT, HW_OP_SIGNAL, HW_OP_BROADCAST, HW_OP_BARRIER_WAIT};
    static const enum hw_op on_condition[] = {HW_OP_LOCK, HW_OP_UNLOCK, HW_OP_TRYLOCK, HW_OP_BARRIER_WAIT,
                                              HW_OP_ALLOC_CONDITION};
    static const enum hw_op on_barrier[] = {HW_OP_LOCK,   HW_OP_UNLOCK,    HW_OP_TRYLOCK,  HW_OP_COND_WAIT,
                                            HW_OP_SIGNAL, HW_OP_BROADCAST, HW_OP_WITHDRAW, HW_OP_ALLOC_CONDITION};
    for (size_t i = 0; i < 4; i++) {
        bench_do(&b, on_mutex[i], mutex, 9, 9);
        ck_nack(&b, on_mutex[i], HW_REASON_KIND);
        ck_assert_uint_eq(b.step.n_accesses, 0);
        ck_assert_uint_eq(b.step.response_cycles, 6);
    }
    for (size_t i = 0; i < 5; i++) {
        bench_do(&b, on_condition[i], id, 9, 9);
        ck_nack(&b, on_condition[i], HW_REASON_KIND);
    }
    for (size_t i = 0; i < 8; i++) {
        bench_do(&b, on_barrier[i], barrier, 9, 9);
        ck_nack(&b, on_barrier[i], HW_REASON_KIND);
    }
    for (uint32_t i = 0; i < 3; i++) {
        bench_do(&b, HW_OP_DEALLOC, i == 0 ? mutex : i == 1 ? id : barrier, 9, 9);
        ck_nack(&b, HW_OP_DEALLOC, HW_REASON_BUSY);
    }
    bench_do(&b, HW_OP_LOCK, mutex + 1, 9, 9);
    ck_nack(&b, HW_OP_LOCK, HW_REASON_STALE);
    bench_do(&b, HW_OP_LOCK, 0x05000000, 9, 9); /* no F */
    ck_nack(&b, HW_OP_LOCK, HW_REASON_STALE);
    bench_do(&b, HW_OP_LOCK, 0, 9, 9);
    ck_nack(&b, HW_OP_LOCK, HW_REASON_MALFORMED);
    bench_do(&b, (enum hw_op)31, mutex, 9, 9);
    ck_nack(&b, HW_OP_NONE, HW_REASON_MALFORMED);
    ck_assert_uint_eq(bench_output(&b, 0).destination, 9);
    bench_do(&b, HW_OP_LOCK, mutex, 200, 9); /* no such core */
    ck_assert_int_eq(b.step.status, HW_STATUS_DROPPED);
    ck_assert_uint_eq(b.step.n_outputs, 0);
    ck_assert_mem_eq(before, b.bytes, sizeof before);
    bench_close(&b);
}

/* A condition that outlives its mutex is refused, not spliced onto whatever took its place. */
TEST(condition_without_mutex) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    uint32_t mutex, id;
    three_waiters(&b, &config, &mutex, &id);
    bench_do(&b, HW_OP_DEALLOC, mutex, 0, 0);
    uint32_t barrier = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 5);
    ck_assert_uint_eq(hw_id_index(&b.ni.spm.layout, barrier), 0);
    static const enum hw_op ops[] = {HW_OP_COND_WAIT, HW_OP_SIGNAL, HW_OP_BROADCAST};
    for (size_t i = 0; i < 3; i++) {
        bench_do(&b, ops[i], id, 7, 7);
        ck_nack(&b, ops[i], HW_REASON_UNBOUND);
    }
    for (uint32_t i = 0; i < 3; i++) {
        bench_do(&b, HW_OP_WITHDRAW, id, i, i);
        ck_answer(&b, 0, HW_OP_WITHDRAWN, id, i, i);
    }
    bench_do(&b, HW_OP_DEALLOC, id, 0, 0);
    ck_assert_int_eq(b.step.status, HW_STATUS_DONE);
    bench_close(&b);
}

/* No element: a lock is held back until there is one, or told to try again as in the paper. */
TEST(queue_full_lock) {
    for (int full = HW_FULL_HOLD; full <= HW_FULL_AGAIN; full++) {
        struct hw_config config = hw_config_default();
        config.n_queue = 1;
        config.full = (enum hw_full)full;
        struct bench_ni b;
        bench_open(&b, &config, 0);
        uint32_t id = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
        bench_do(&b, HW_OP_LOCK, id, 0, 0);
        bench_do(&b, HW_OP_LOCK, id, 1, 1);
        bench_do(&b, HW_OP_LOCK, id, 2, 2);
        ck_assert_uint_eq(b.step.n_accesses, 1);
        ck_assert(!b.step.made_room);
        ck_assert_uint_eq(b.ni.stats.n_again, full == HW_FULL_AGAIN);
        ck_assert_uint_eq(b.ni.stats.n_held, full == HW_FULL_HOLD);
        if (full == HW_FULL_AGAIN) {
            ck_answer(&b, 0, HW_OP_AGAIN, id, 2, 2);
        } else {
            ck_assert_int_eq(b.step.status, HW_STATUS_HELD);
            ck_assert_uint_eq(b.step.n_outputs, 0);
        }
        bench_do(&b, HW_OP_UNLOCK, id, 0, 0);
        ck_assert(b.step.made_room);
        bench_do(&b, HW_OP_LOCK, id, 2, 2);
        ck_assert_int_eq(b.step.status, HW_STATUS_DONE);
        ck_assert_uint_eq(b.step.n_outputs, 0);
        bench_close(&b);
    }
}

/* No element for a condition wait: its mutex is let go all the same. */
TEST(queue_full_wait) {
    struct hw_config config = hw_config_default();
    config.n_queue = 1;
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0), id = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    bench_do(&b, HW_OP_LOCK, mutex, 0, 0);
    bench_do(&b, HW_OP_LOCK, mutex, 1, 1);
    bench_do(&b, HW_OP_COND_WAIT, id, 0, 0); /* takes the element that its unlock frees */
    ck_assert_uint_eq(b.step.n_outputs, 1);
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 1, 1);
    bench_do(&b, HW_OP_COND_WAIT, id, 1, 1); /* no thread waits for the mutex */
    ck_assert_uint_eq(b.step.n_outputs, 1);
    ck_answer(&b, 0, HW_OP_WOKEN, id, 1, 1);
    ck_assert_uint_eq(b.ni.stats.n_woken, 1);
    ck_assert(b.step.made_room);
    bench_do(&b, HW_OP_LOCK, mutex, 1, 1);
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 1, 1);
    bench_do(&b, HW_OP_SIGNAL, id, 1, 1); /* its own element is the one it needs */
    bench_do(&b, HW_OP_UNLOCK, mutex, 1, 1);
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 0, 0);
    bench_close(&b);
}

/* Barriers never meet a full queue: the elements that they will need are theirs from the start, and no other's. */
TEST(barriers_reserve) {
    struct hw_config config = hw_config_default();
    config.n_queue = 5;
    struct bench_ni b;
    bench_open(&b, &config, 0);
    bench_do(&b, HW_OP_ALLOC_BARRIER, 7, 0, 0);
    ck_answer(&b, 0, HW_OP_NO_SPACE, 7, 0, 0);
    ck_assert_uint_eq(bench_output(&b, 0).argument, HW_SPACE_QUEUE);
    ck_assert_uint_eq(b.ni.stats.n_no_space, 1);
    uint32_t barrier = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 5), mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    bench_do(&b, HW_OP_LOCK, mutex, 9, 9);
    bench_do(&b, HW_OP_LOCK, mutex, 10, 10);
    bench_do(&b, HW_OP_LOCK, mutex, 11, 11);
    ck_assert_int_eq(b.step.status, HW_STATUS_HELD);
    for (uint32_t i = 0; i < 5; i++)
        bench_do(&b, HW_OP_BARRIER_WAIT, barrier, i, i);
    ck_assert_uint_eq(b.step.n_outputs, 5);
    bench_do(&b, HW_OP_LOCK, mutex, 11, 11);
    ck_assert_int_eq(b.step.status, HW_STATUS_HELD);
    bench_do(&b, HW_OP_DEALLOC, barrier, 0, 0);
    ck_assert(b.step.made_room);
    bench_do(&b, HW_OP_LOCK, mutex, 11, 11);
    ck_assert_int_eq(b.step.status, HW_STATUS_DONE);
    bench_close(&b);
}

TEST(barrier_of_one) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 1);
    for (uint32_t i = 0; i < 3; i++) {
        bench_do(&b, HW_OP_BARRIER_WAIT, id, 6, 6);
        ck_cost(&b, (struct cost){1, 1}, (struct cost){1, 1});
        ck_answer(&b, 0, HW_OP_RELEASE, id, 6, 6);
    }
    bench_close(&b);
}

/* 1024 cores: the wide layout, a barrier of all of them, 16-bit threads. */
TEST(wide_machine) {
    struct hw_config config = hw_config_default();
    config.n_tiles = 1024;
    config.n_queue = 1023;
    struct bench_ni b;
    bench_open(&b, &config, 777);
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 1024);
    ck_assert_uint_eq(hw_id_ni(&b.ni.spm.layout, id), 777);
    for (uint32_t i = 0; i < 1024; i++)
        bench_do(&b, HW_OP_BARRIER_WAIT, id, i, 65535 - i);
    ck_assert_uint_eq(b.step.n_outputs, 1024);
    for (uint32_t i = 1; i < 1024; i++)
        ck_answer(&b, i, HW_OP_RELEASE, id, i - 1, 65535 - (i - 1));
    bench_close(&b);
}

TEST(statistics) {
    struct hw_config config = hw_config_default();
    config.n_queue = 2;
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    const struct hw_ni_stats *stats = &b.ni.stats;
    for (uint32_t i = 0; i < 4; i++) {
        bench_do(&b, HW_OP_LOCK, id, i, i);
        ck_assert_uint_eq(stats->max_queue, i < 2 ? i : 2); /* the owner takes no element, and the last one is held */
    }
    bench_do(&b, HW_OP_LOCK, id + 1, 0, 0);
    ck_assert_uint_eq(stats->n_steps[HW_STATE_ALLOCATION], 1);
    ck_assert_uint_eq(stats->n_steps[HW_STATE_MUTEX_LOCK], 3);
    ck_assert_uint_eq(stats->n_steps[HW_STATE_REFUSE], 1);
    ck_assert_uint_eq(stats->n_held, 1);
    ck_assert_uint_eq(stats->max_control, 1);
    /* Allocation 14, lock 10, queued with 8 and 9 accesses, held after 1, refused 6. */
    ck_assert_uint_eq(stats->busy_cycles, 14 + 10 + (5 + 16) + (5 + 18) + (5 + 2) + 6);
    bench_close(&b);
}
