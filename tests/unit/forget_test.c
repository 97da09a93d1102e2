/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hw_ni_forget_waiters: what a forked child does with its copy of an NI. The copy may have caught a step half done, so
 * beside whole ones it gets every mixture of what the scratchpad's words were before a step and after it.
 */
#include "hw_check.h"

#include <string.h>

enum { MAX_CHANGED = 10, N_SAMPLES = 1 << MAX_CHANGED };

static void forget(struct bench_ni *b) {
    const char *why = "";
    uint64_t n_reads = b->ni.spm.n_reads, n_writes = b->ni.spm.n_writes;
    hw_ni_forget_waiters(&b->ni);
    ck_assert_msg(hw_spm_is_valid(&b->ni.spm, &why), "%s", why);
    ck_assert_uint_eq(b->ni.spm.n_reads, n_reads);
    ck_assert_uint_eq(b->ni.spm.n_writes, n_writes);
    uint32_t n_used = 0;
    for (uint32_t i = 0; i < b->ni.spm.n_control; i++) {
        uint32_t tag = hw_spm_tag(&b->ni.spm, i);
        n_used += (tag & HW_ID_IN_USE) != 0;
        if (hw_id_kind(&b->ni.spm.layout, tag) != HW_KIND_BARRIER)
            ck_assert_uint_eq(hw_spm_n_waiting(&b->ni.spm, i), 0);
    }
    ck_assert_uint_eq(b->ni.n_control_used, n_used);
}

/* ---- whole copies ---- */

TEST(mutexes) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    bench_open(&b, &config, 5);
    uint32_t held = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0), idle = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    for (uint32_t i = 0; i < 4; i++)
        bench_do(&b, HW_OP_LOCK, held, i, 7);
    uint32_t owner = hw_spm_peek(&b.ni.spm, hw_control_word(0, 2));
    forget(&b);
    ck_assert_uint_eq(b.ni.spm.n_free, config.n_queue);
    ck_assert_uint_eq(hw_spm_peek(&b.ni.spm, hw_control_word(0, 2)), owner);
    for (uint32_t i = 0; i < HW_N_STATES; i++)
        ck_assert_uint_eq(b.ni.stats.n_steps[i], 0);
    ck_assert_uint_eq(b.ni.stats.busy_cycles + b.ni.stats.max_queue + b.ni.stats.max_control, 0);

    bench_do(&b, HW_OP_LOCK, held, 9, 9); /* still held: it queues */
    ck_assert_uint_eq(b.step.n_outputs, 0);
    bench_do(&b, HW_OP_UNLOCK, held, 0, 7);
    ck_answer(&b, 0, HW_OP_GRANT, held, 9, 9); /* and is the first of all */
    bench_do(&b, HW_OP_LOCK, idle, 3, 3);
    ck_answer(&b, 0, HW_OP_GRANT, idle, 3, 3);
    bench_close(&b);
}

TEST(conditions) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0), condition = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    for (uint32_t i = 0; i < 3; i++) {
        bench_do(&b, HW_OP_LOCK, mutex, i, i);
        bench_do(&b, HW_OP_COND_WAIT, condition, i, i);
    }
    forget(&b);
    bench_do(&b, HW_OP_BROADCAST, condition, 8, 8);
    ck_assert_uint_eq(b.step.n_outputs, 0);
    bench_do(&b, HW_OP_LOCK, mutex, 4, 4);
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 4, 4);
    bench_do(&b, HW_OP_COND_WAIT, condition, 4, 4);
    bench_do(&b, HW_OP_SIGNAL, condition, 8, 8);
    ck_answer(&b, 0, HW_OP_GRANT, mutex, 4, 4);
    bench_close(&b);
}

/* An arrival still counts, but its thread is gone; what was promised to the barrier stays so. */
TEST_EACH(barriers, 2) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    config.n_queue = 5;
    config.reserve = number != 0;
    bench_open(&b, &config, 6);
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 5);
    for (uint32_t i = 0; i < 3; i++)
        bench_do(&b, HW_OP_BARRIER_WAIT, id, i, i);
    forget(&b);
    ck_assert_uint_eq(hw_spm_n_waiting(&b.ni.spm, 0), 3);
    ck_assert_uint_eq(b.ni.spm.n_free, 2);
    ck_assert_uint_eq(b.ni.spm.n_reserved, config.reserve ? 1 : 0);
    bench_do(&b, HW_OP_BARRIER_WAIT, id, 10, 10);
    ck_assert_uint_eq(b.step.n_outputs, 0);
    bench_do(&b, HW_OP_BARRIER_WAIT, id, 11, 11);
    ck_assert_uint_eq(b.step.n_outputs, 5);
    ck_answer(&b, 0, HW_OP_RELEASE, id, 11, 11);
    for (uint32_t i = 1; i < 4; i++)
        ck_answer(&b, i, HW_OP_RELEASE, id, 6, HW_NO_THREAD);
    ck_answer(&b, 4, HW_OP_RELEASE, id, 10, 10);
    for (uint32_t i = 0; i < 5; i++) /* the next round is all theirs */
        bench_do(&b, HW_OP_BARRIER_WAIT, id, i, i);
    ck_assert_uint_eq(b.step.n_outputs, 5);
    bench_do(&b, HW_OP_DEALLOC, id, 0, 0);
    ck_assert_int_eq(b.step.status, HW_STATUS_DONE);
    ck_assert_uint_eq(b.ni.spm.n_reserved, 0);
    bench_close(&b);
}

/* ---- generations ---- */

static uint32_t renew(struct bench_ni *b, uint32_t id) {
    bench_do(b, HW_OP_DEALLOC, id, 0, 0);
    ck_assert_int_eq(b->step.status, HW_STATUS_DONE);
    return bench_alloc(b, HW_OP_ALLOC_MUTEX, 0);
}

/* An ID that the parent dealt out after the fork is stale in the child, and the other way round. */
TEST_EACH(generations_differ, 5) {
    static const uint32_t machines[][2] = {{64, 4}, {64, 256}, {1024, 4}, {1024, 256}, {1, 1}};
    enum { N_FORKS = 3 };
    struct hw_config config = hw_config_default();
    config.n_tiles = machines[number][0];
    config.n_control = machines[number][1];
    struct bench_ni b;
    bench_open(&b, &config, 0);
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    for (uint32_t fork = 0; fork < N_FORKS; fork++) {
        struct bench_ni parent;
        bench_open(&parent, &config, 0);
        memcpy(parent.bytes, b.bytes, hw_config_spm_bytes(&config));
        uint8_t *bytes = parent.bytes;
        parent.ni = b.ni;
        parent.ni.spm.bytes = bytes;
        uint32_t theirs = id;
        forget(&b);
        bench_do(&b, HW_OP_TRYLOCK, id, 0, 1); /* what there was is both's */
        ck_answer(&b, 0, HW_OP_GRANT, id, 0, 1);
        bench_do(&b, HW_OP_UNLOCK, id, 0, 1);
        uint32_t ours = renew(&b, id);
        for (uint32_t i = 0; i < (b.ni.spm.layout.generation_bits > 10 ? 100 : 1); i++) {
            theirs = renew(&parent, theirs);
            ck_assert_uint_ne(theirs, ours);
            bench_do(&b, HW_OP_LOCK, theirs, 0, 1);
            ck_nack(&b, HW_OP_LOCK, HW_REASON_STALE);
        }
        bench_do(&parent, HW_OP_LOCK, ours, 0, 1);
        ck_nack(&parent, HW_OP_LOCK, HW_REASON_STALE);
        id = ours;
        bench_close(&parent);
    }
    bench_close(&b);
}

/* However many forks: an ID comes round again after all others have been, and not before. */
TEST(generations_all_used) {
    struct hw_config config = hw_config_default();
    config.n_tiles = 1024;
    config.n_control = 64; /* 7 bits */
    struct bench_ni b;
    bench_open(&b, &config, 0);
    ck_assert_uint_eq(b.ni.spm.layout.generation_bits, 7);
    uint32_t id = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    for (uint32_t fork = 0; fork < 9; fork++) {
        bool seen[128] = {false};
        for (uint32_t i = 0; i < 128; i++) {
            uint32_t generation = hw_id_generation(&b.ni.spm.layout, id);
            ck_assert(!seen[generation]);
            seen[generation] = true;
            id = renew(&b, id);
        }
        forget(&b);
    }
    bench_close(&b);
}

/* ---- copies of half a step ---- */

/* Everything there is can be used and be got rid of. A thread of the parent's may hold a mutex. */
static void use_all(struct bench_ni *b) {
    const struct hw_layout *layout = &b->ni.spm.layout;
    for (uint32_t i = 0; i < b->ni.spm.n_control; i++) {
        uint32_t id = hw_spm_tag(&b->ni.spm, i);
        if (hw_id_kind(layout, id) == HW_KIND_MUTEX) {
            bench_do(b, HW_OP_UNLOCK, id, 1, 1);
            bench_do(b, HW_OP_LOCK, id, 2, 2);
            ck_answer(b, 0, HW_OP_GRANT, id, 2, 2);
            bench_do(b, HW_OP_LOCK, id, 3, 3);
            ck_assert_int_eq(b->step.status, HW_STATUS_DONE);
            bench_do(b, HW_OP_UNLOCK, id, 2, 2);
            ck_answer(b, 0, HW_OP_GRANT, id, 3, 3);
            bench_do(b, HW_OP_UNLOCK, id, 3, 3);
        } else if (hw_id_kind(layout, id) == HW_KIND_BARRIER) {
            uint32_t state = hw_spm_peek(&b->ni.spm, hw_control_word(i, 2));
            for (uint32_t n = hw_high(state); n < hw_low(state); n++)
                bench_do(b, HW_OP_BARRIER_WAIT, id, n, n);
            ck_assert_uint_eq(b->step.n_outputs, hw_low(state));
        } else if (hw_id_kind(layout, id) == HW_KIND_CONDITION) {
            bench_do(b, HW_OP_SIGNAL, id, 1, 1);
            ck_assert_uint_eq(b->step.n_outputs, 0);
        }
    }
    for (uint32_t i = 0; i < b->ni.spm.n_control; i++)
        if (hw_spm_tag(&b->ni.spm, i) & HW_ID_IN_USE) {
            bench_do(b, HW_OP_DEALLOC, hw_spm_tag(&b->ni.spm, i), 1, 1);
            ck_assert_int_eq(b->step.status, HW_STATUS_DONE);
        }
    ck_assert_uint_eq(b->ni.n_control_used, 0);
    ck_assert_uint_eq(b->ni.spm.n_free, b->ni.spm.n_queue);
    ck_assert_uint_eq(b->ni.spm.n_reserved, 0);
}

/* Words that a step has changed. */
static uint32_t changed(const uint8_t *before, const uint8_t *after, uint32_t n_words, uint32_t *words) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_words; i++)
        if (memcmp(before + 4 * i, after + 4 * i, 4) != 0)
            words[n++] = i;
    return n;
}

/* Does the request, and forgets every mixture of before and after, or a sample if there are too many. */
static uint32_t tear(const struct bench_ni *start, enum hw_op op, uint32_t flit1, uint32_t core) {
    uint32_t n_bytes = (uint32_t)hw_spm_n_bytes(start->ni.spm.n_control, start->ni.spm.n_queue);
    uint32_t words[256], n_torn = 0, random = 1;
    uint8_t before[1024], after[1024];
    struct bench_ni b = *start;
    memcpy(before, start->bytes, n_bytes);
    bench_do(&b, op, flit1, core, core);
    memcpy(after, start->bytes, n_bytes);
    uint32_t n = changed(before, after, n_bytes / 4, words);
    bool all = n <= MAX_CHANGED;
    for (uint32_t i = 0; i < (all ? 1u << n : N_SAMPLES); i++) {
        for (uint32_t registers = 0; registers < 2; registers++, n_torn++) {
            struct bench_ni torn = registers ? b : *start;
            memcpy(start->bytes, before, n_bytes);
            for (uint32_t k = 0; k < n; k++) {
                random = random * 1664525 + 1013904223;
                if (all ? i >> k & 1 : random >> 31)
                    memcpy(start->bytes + 4 * words[k], after + 4 * words[k], 4);
            }
            forget(&torn);
            use_all(&torn);
        }
    }
    memcpy(start->bytes, before, n_bytes);
    return n_torn;
}

TEST_EACH(torn_steps, 2) {
    struct hw_config config = hw_config_default();
    struct bench_ni b;
    config.n_control = 5;
    config.n_queue = 8;
    config.reserve = number != 0;
    bench_open(&b, &config, 0);
    uint32_t n_torn = 0;
    /* One element's last user was a barrier: its words say so until the next allocation is complete. */
    uint32_t gone = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 7);
    bench_do(&b, HW_OP_DEALLOC, gone, 0, 0);
    uint32_t first = hw_id_index(&b.ni.spm.layout, gone);
    ck_assert_uint_eq(first, 0);
    n_torn += tear(&b, HW_OP_ALLOC_MUTEX, 0, 1);
    n_torn += tear(&b, HW_OP_ALLOC_BARRIER, 3, 1);
    uint32_t barrier = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 4), mutex = bench_alloc(&b, HW_OP_ALLOC_MUTEX, 0);
    uint32_t condition = bench_alloc(&b, HW_OP_ALLOC_CONDITION, mutex);
    uint32_t other = bench_alloc(&b, HW_OP_ALLOC_BARRIER, 3);
    n_torn += tear(&b, HW_OP_DEALLOC, other, 1);
    n_torn += tear(&b, HW_OP_DEALLOC, barrier, 1);
    bench_do(&b, HW_OP_DEALLOC, other, 0, 0);
    n_torn += tear(&b, HW_OP_ALLOC_CONDITION, mutex, 1);
    n_torn += tear(&b, HW_OP_ALLOC_BARRIER, 2, 1);
    for (uint32_t i = 0; i < 4; i++) {
        n_torn += tear(&b, HW_OP_LOCK, mutex, i);
        n_torn += tear(&b, HW_OP_TRYLOCK, mutex, i);
        bench_do(&b, HW_OP_LOCK, mutex, i, i);
        n_torn += tear(&b, HW_OP_WITHDRAW, mutex, i);
        n_torn += tear(&b, HW_OP_UNLOCK, mutex, 0);
    }
    for (uint32_t i = 0; i < 3; i++) { /* the waiters become owners, one by one, and wait for the condition */
        n_torn += tear(&b, HW_OP_COND_WAIT, condition, i);
        bench_do(&b, HW_OP_COND_WAIT, condition, i, i);
        n_torn += tear(&b, HW_OP_WITHDRAW, condition, i);
        n_torn += tear(&b, HW_OP_SIGNAL, condition, 9);
        n_torn += tear(&b, HW_OP_BROADCAST, condition, 9);
    }
    bench_do(&b, HW_OP_UNLOCK, mutex, 3, 3); /* now with the mutex free */
    n_torn += tear(&b, HW_OP_SIGNAL, condition, 9);
    n_torn += tear(&b, HW_OP_BROADCAST, condition, 9);
    for (uint32_t i = 0; i < 4; i++) {
        n_torn += tear(&b, HW_OP_BARRIER_WAIT, barrier, i);
        bench_do(&b, HW_OP_BARRIER_WAIT, barrier, i, i);
    }
    ck_assert_uint_gt(n_torn, 4000);
    bench_close(&b);
}
