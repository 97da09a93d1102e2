/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The optical network: its log, and what is certain beyond the present. */
#include "optical_bench.h"

/* ---- the log ---- */

/* A core that has passed all, and looks often while messages are under way: the walk back through the log is made once.
 */
TEST(a_look, "remembers which message comes next, also if none has arrived") {
    struct bench b;
    struct hw_optical_config config = small(3);
    config.transport_cycles = 1000;
    open_net(&b, &config, true);
    for (int round = 0; round < 2; round++) {
        uint64_t now = round == 0 ? 0 : 5000;
        for (int i = 0; i < 20; i++)
            ck_assert_int_eq(send(&b, 0, 1, now), HW_OPTICAL_OK);
        hw_optical_advance(&b.net, 1, now);
        uint32_t next = b.net.cores[1].next;
        ck_assert_uint_ne(next, HW_OPTICAL_NONE);
        for (int i = 0; i < 20; i++)
            ck_assert_int_eq(send(&b, 0, 1, now), HW_OPTICAL_OK);
        hw_optical_advance(&b.net, 1, now + 999);
        ck_assert_uint_eq(b.net.cores[1].next, next);
        for (uint32_t core = 0; core < 3; core++)
            hw_optical_advance(&b.net, core, now + 4000);
        for (int i = 0; i < 40; i++) {
            struct hw_optical_received r;
            ck_assert(hw_optical_receive(&b.net, 1, 0, now + 4000, &r));
            ck_assert(hw_optical_receive(&b.net, 2, 0, now + 4000, &r));
        }
    }
    close_net(&b);
}

/* ---- beyond the present ---- */

static uint64_t draw(uint64_t *random, uint32_t n) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*random >> 33) % n;
}

static void ck_same_counts(const struct bench *a, const struct bench *b) {
    for (uint32_t core = 0; core < a->net.config.n_cores; core++) {
        struct hw_optical_counts x = a->net.cores[core].counts, y = b->net.cores[core].counts;
        x.max_buffer = y.max_buffer = 0; /* nothing is retrieved until the end */
        ck_assert_mem_eq(&x, &y, sizeof x);
    }
}

/*
 * The same messages in two networks. One's cores are advanced to the present; the other's, at random, beyond it, where
 * that is certain. How often is the answer: a test in which it never is proves nothing.
 */
static uint32_t ahead(uint32_t n_cores, uint32_t transport, uint32_t controller, uint32_t gap, uint64_t random) {
    struct bench present, early;
    struct hw_optical_config config = small(n_cores);
    struct hw_optical_received a, b;
    uint32_t n_ahead = 0;
    uint64_t at = 0;
    config.transport_cycles = transport;
    config.controller_cycles = controller;
    open_net(&present, &config, true);
    open_net(&early, &config, true);
    for (uint32_t i = 0; i < N_SLOTS; i++) {
        uint32_t from = (uint32_t)draw(&random, n_cores), core = (uint32_t)draw(&random, n_cores);
        uint32_t signature = draw(&random, 8) != 0;
        at += draw(&random, gap);
        ck_assert_int_eq(send(&present, from, signature, at), HW_OPTICAL_OK);
        ck_assert_int_eq(send(&early, from, signature, at), HW_OPTICAL_OK);
        hw_optical_advance(&present.net, core, at);
        uint64_t known = at + transport - 1, until = at + draw(&random, 4 * controller);
        hw_optical_advance(&early.net, core, known);
        if (!hw_optical_is_certain(&early.net, core, known, until))
            continue;
        hw_optical_advance(&early.net, core, until);
        n_ahead += until > known;
    }
    for (uint32_t core = 0; core < n_cores; core++) {
        hw_optical_advance(&early.net, core, UINT32_MAX);
        hw_optical_advance(&present.net, core, UINT32_MAX);
        bool more = true;
        while (more) {
            more = hw_optical_receive(&present.net, core, 0, UINT32_MAX, &a);
            ck_assert(hw_optical_receive(&early.net, core, 0, UINT32_MAX, &b) == more);
            if (more)
                ck_assert(a.message.wavelength == b.message.wavelength && a.sent_cycles == b.sent_cycles &&
                          a.available_cycles == b.available_cycles);
        }
    }
    ck_same_counts(&present, &early);
    close_net(&present);
    close_net(&early);
    return n_ahead;
}

TEST(what_is_certain_is_what_happens) {
    uint32_t n_ahead = 0;
    for (uint64_t seed = 0; seed < 3000; seed++)
        n_ahead += ahead(2 + (uint32_t)(seed % 7), 1 + (uint32_t)(seed / 7 % 6), 1 + (uint32_t)(seed / 42 % 12),
                         1 + (uint32_t)(seed / 504 % 8), seed * 2 + 1);
    ck_assert_uint_gt(n_ahead, 3000);
}

/* Core 1 of four, and messages of 0 and of 2 at 5: 0's is moved until 15, then 2's is next, for 1 is the core itself.
 */
static void certain_for(uint32_t n_of_2, uint64_t from_then_on) {
    struct bench b;
    struct hw_optical_config config = small(4);
    open_net(&b, &config, true);
    ck_assert(!hw_optical_is_certain(&b.net, 1, 4, 4));
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    for (uint32_t i = 0; i < n_of_2; i++)
        ck_assert_int_eq(send(&b, 2, 1, 0), HW_OPTICAL_OK);
    hw_optical_advance(&b.net, 1, 5);
    for (uint64_t until = 5; until < 60; until++)
        ck_assert(hw_optical_is_certain(&b.net, 1, 9, until) == (until < from_then_on));
    free_net(&b);
}

TEST(certain__while_one_is_left, "the only one is moved from 15 on, of two the second from 25 on") {
    certain_for(0, 0);
    certain_for(1, 15);
    certain_for(2, 25);
}

TEST(certain__while_no_queue_is_passed_over, "at 25 one of 3 would come before 2's second") {
    certain_for(3, 25);
    certain_for(5, 25);
}

TEST(certain__only_with_a_lookahead) {
    struct bench b;
    struct hw_optical_config config = small(4);
    config.transport_cycles = 0;
    open_net(&b, &config, true);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 2, 1, 0), HW_OPTICAL_OK);
    hw_optical_advance(&b.net, 1, 0);
    ck_assert(!hw_optical_is_certain(&b.net, 1, 0, 1));
    free_net(&b);
}
