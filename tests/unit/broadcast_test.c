/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The optical network of the engine ni: when threads go on, by hand. 300 to send, 15 on the way, 303 to retrieve. */
#include <stdlib.h>

#include "engine/ni/broadcast.h"
#include "engine/ni/stats.h"
#include "lib/suite.h"
#include "os/lock.h"
#include "os/memory.h"

/* ---- what is below ---- */

struct ni_machine ni_machine;
bool sbt_fence_asymmetric;
static uint64_t n_waits, waited_cycles, taken_cycles;

void *ni_get_memory(size_t bytes) {
    return sbt_memory_map(bytes);
}

void ni_stats_add_barrier(const struct ni_cycles *cycles) {
    n_waits++;
    waited_cycles += cycles->waited;
    taken_cycles += cycles->handover + cycles->network + cycles->fsm;
}

void sbt_lock_take_slow(struct sbt_lock *g) {
    (void)g;
    ck_abort_msg("the network's lock is taken twice");
}

void sbt_lock_wake(struct sbt_lock *g) {
    (void)g;
}

static void begin(uint32_t n_tiles) {
    struct sbt_options options = {0};
    options.value[SBT_OPT_NETWORK].u = SBT_NETWORK_ATAC;
    ni_machine.n_tiles = n_tiles;
    ni_machine.timed = true;
    ni_machine.config.n_control = 4;
    ck_assert(hw_layout_init(&ni_machine.layout, n_tiles, 4));
    ck_assert_int_eq(ni_broadcast_start(&options), 0);
}

/* ---- barriers ---- */

TEST(two_threads) {
    uint32_t word = 0;
    begin(4);
    struct ni_arrival a = ni_broadcast_arrive(0, &word, 2, 1000), b = ni_broadcast_arrive(1, &word, 2, 1000);
    ck_assert_uint_eq(ni_broadcast_leave(0, &a), 1618);
    ck_assert_uint_eq(ni_broadcast_leave(1, &b), 1618);
    ck_assert_uint_eq(n_waits, 2);
    ck_assert_uint_eq(waited_cycles, 0);
    ck_assert_uint_eq(taken_cycles, 2 * 618);
}

TEST(the_late_one_finds_the_message) {
    uint32_t word = 0;
    begin(4);
    struct ni_arrival a = ni_broadcast_arrive(0, &word, 2, 0), b = ni_broadcast_arrive(1, &word, 2, 5000);
    ck_assert_uint_eq(ni_broadcast_leave(1, &b), 5603);
    ck_assert_uint_eq(ni_broadcast_leave(0, &a), 5618);
    ck_assert_uint_eq(waited_cycles, 5000); /* the early one's; the late one needs 15 less than a wait alone */
}

TEST(sixty_four_threads, "63 messages, one after another; the controller is quicker") {
    uint32_t word = 0;
    struct ni_arrival arrivals[64];
    begin(64);
    for (uint64_t episode = 0; episode < 5; episode++) {
        uint64_t from = episode * 100000, gone = from + 300 + 15 + 63 * UINT64_C(303);
        for (uint32_t i = 0; i < 64; i++)
            arrivals[i] = ni_broadcast_arrive(i, &word, 64, from);
        for (uint32_t i = 0; i < 64; i++)
            ck_assert_uint_eq(ni_broadcast_leave(i, &arrivals[i]), gone);
    }
    struct ni_broadcast_counts counts = ni_broadcast_sum(true);
    ck_assert_uint_eq(counts.n_messages, 5 * 64);
    ck_assert_uint_eq(counts.n_retrieved, 5 * 64 * 63);
    ck_assert_uint_eq(counts.max_lambda, 1);
}

TEST(threads_of_a_core, "retrieve each message once, and need none of each other") {
    uint32_t word = 0;
    begin(2);
    struct ni_arrival a = ni_broadcast_arrive(0, &word, 3, 0), b = ni_broadcast_arrive(0, &word, 3, 100),
                      c = ni_broadcast_arrive(1, &word, 3, 100);
    ck_assert_uint_eq(ni_broadcast_leave(0, &b), 400 + 15 + 303);
    ck_assert_uint_eq(ni_broadcast_leave(0, &a), 400 + 15 + 303);
    /* Two messages, the first of which has been there since 315: it takes that when it has sent its own, at 400. */
    ck_assert_uint_eq(ni_broadcast_leave(1, &c), 400 + 2 * 303);
    ck_assert_uint_eq(ni_broadcast_sum(true).n_retrieved, 3);
}

TEST(early_messages_are_kept, "a core may be an episode ahead") {
    uint32_t word = 0;
    begin(3);
    struct ni_arrival slow = ni_broadcast_arrive(0, &word, 3, 0);
    for (uint64_t episode = 0; episode < 20; episode++) {
        struct ni_arrival b = ni_broadcast_arrive(1, &word, 3, episode * 10000),
                          c = ni_broadcast_arrive(2, &word, 3, episode * 10000);
        ni_broadcast_leave(1, &b);
        ni_broadcast_leave(2, &c);
        struct ni_arrival next_b = ni_broadcast_arrive(1, &word, 3, episode * 10000 + 3000);
        uint64_t gone = ni_broadcast_leave(0, &slow); /* the message of the next episode is in its buffer already */
        ck_assert_uint_ge(gone, episode * 10000 + 300 + 15 + 2 * 303);
        ck_assert_uint_lt(gone, episode * 10000 + 3000 + 300);
        struct ni_arrival next_a = ni_broadcast_arrive(0, &word, 3, episode * 10000 + 4000),
                          next_c = ni_broadcast_arrive(2, &word, 3, episode * 10000 + 4000);
        uint64_t all = episode * 10000 + 4300 + 15 + 303;
        ck_assert_uint_ge(ni_broadcast_leave(0, &next_a), all);
        ck_assert_uint_ge(ni_broadcast_leave(1, &next_b), all);
        ck_assert_uint_ge(ni_broadcast_leave(2, &next_c), all);
        slow = ni_broadcast_arrive(0, &word, 3, (episode + 1) * 10000);
    }
}

TEST(a_message_that_the_host_has_held_up, "is sent with the last one") {
    uint32_t word = 0;
    begin(2);
    struct ni_arrival a = ni_broadcast_arrive(0, &word, 2, 9000), b = ni_broadcast_arrive(1, &word, 2, 0);
    ck_assert_uint_eq(b.sent_cycles, 9300);
    ck_assert_uint_eq(ni_broadcast_leave(0, &a), 9618);
    ni_broadcast_leave(1, &b);
}

TEST(a_core_that_no_thread_comes_to, "does not go on to listen") {
    uint32_t word = 0;
    begin(4);
    for (uint64_t episode = 0; episode < 100; episode++) {
        uint32_t first = episode == 0 ? 2 : 0;
        struct ni_arrival a = ni_broadcast_arrive(first, &word, 2, episode * 1000),
                          b = ni_broadcast_arrive(first + 1, &word, 2, episode * 1000);
        ni_broadcast_leave(first, &a);
        ni_broadcast_leave(first + 1, &b);
    }
    ck_assert_uint_le(ni_broadcast_sum(true).n_transferred, 2 * 100 + 8);
    ck_assert_uint_ge(ni_broadcast_sum(true).n_transferred, 2 * 100 - 2);
    ck_assert_uint_le(ni_broadcast_sum(true).n_retrieved, 2 * 100);
}

/* ---- channels ---- */

TEST(more_barriers_than_channels, "one at rest gives its channel up; without any a wait is 300, and counted") {
    enum { CHANNELS = 63 };
    uint32_t words[CHANNELS + 2] = {0};
    struct ni_arrival arrivals[CHANNELS];
    begin(2);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < CHANNELS + 2; i++) {
            struct ni_arrival a = ni_broadcast_arrive(0, &words[i], 2, 0), b = ni_broadcast_arrive(1, &words[i], 2, 0);
            ck_assert_uint_ne(a.serial, 0);
            ck_assert_uint_eq(a.serial, b.serial);
            ni_broadcast_leave(0, &a);
            ni_broadcast_leave(1, &b);
        }
    ck_assert_uint_eq(ni_broadcast_sum(true).n_without_channel, 0);
    for (int i = 0; i < CHANNELS; i++)
        arrivals[i] = ni_broadcast_arrive(0, &words[i], 2, 0);
    struct ni_arrival one_more = ni_broadcast_arrive(0, &words[CHANNELS], 2, 70000);
    ck_assert_uint_eq(one_more.serial, 0);
    ck_assert_uint_eq(ni_broadcast_leave(0, &one_more), 70300);
    ck_assert_uint_eq(ni_broadcast_sum(true).n_without_channel, 1);
    struct ni_arrival b = ni_broadcast_arrive(1, &words[5], 2, 0);
    ni_broadcast_leave(0, &arrivals[5]);
    ni_broadcast_leave(1, &b);
    ck_assert_uint_eq(ni_broadcast_arrive(1, &words[CHANNELS], 2, 0).serial, 0); /* as the first of its episode */
    ck_assert_uint_ne(ni_broadcast_arrive(0, &words[CHANNELS], 2, 0).serial, 0);
}

TEST(threads_that_have_not_gone, "keep their barrier's channel") {
    static uint32_t words[64];
    static struct ni_arrival arrivals[63][2];
    begin(2);
    for (uint32_t k = 0; k < 63; k++)
        for (uint32_t i = 0; i < 2; i++)
            arrivals[k][i] = ni_broadcast_arrive(i, &words[k], 2, 0);
    ck_assert_uint_eq(ni_broadcast_arrive(0, &words[63], 2, 0).serial, 0);
    for (uint32_t k = 0; k < 63; k++)
        for (uint32_t i = 0; i < 2; i++)
            ck_assert_uint_ge(ni_broadcast_leave(i, &arrivals[k][i]), 618);
    /* A channel is free now; the other barrier gets it with its next episode, and both threads have the same one. */
    ck_assert_uint_eq(ni_broadcast_arrive(1, &words[63], 2, 0).serial, 0);
    struct ni_arrival a = ni_broadcast_arrive(0, &words[63], 2, 10000),
                      b = ni_broadcast_arrive(1, &words[63], 2, 20000);
    ck_assert_uint_ne(a.serial, 0);
    ck_assert_uint_eq(ni_broadcast_leave(0, &a), 20618);
    ck_assert_uint_eq(ni_broadcast_leave(1, &b), 20603);
}

TEST(freed_while_a_thread_waits, "its memory is another barrier's: the channel is given up") {
    uint32_t word;
    begin(2);
    for (int i = 0; i < 200; i++) {
        word = 0;
        ck_assert_uint_ne(ni_broadcast_arrive(0, &word, 2, 0).serial, 0);
    }
}

TEST(freed_while_messages_are_under_way, "they do not count for the barrier that comes after") {
    uint32_t word = 0;
    begin(4);
    ni_broadcast_arrive(0, &word, 3, 0);
    ni_broadcast_arrive(1, &word, 3, 0);
    word = 0;
    struct ni_arrival a = ni_broadcast_arrive(2, &word, 2, 0), b = ni_broadcast_arrive(3, &word, 2, 5000);
    ck_assert_uint_eq(ni_broadcast_leave(2, &a), 5618);
    ck_assert_uint_eq(ni_broadcast_leave(3, &b), 5603);
}

TEST(a_barrier_that_goes_while_a_thread_leaves) {
    uint32_t word = 0, other = 0;
    begin(2);
    struct ni_arrival a = ni_broadcast_arrive(0, &word, 2, 0), b = ni_broadcast_arrive(1, &word, 2, 0);
    ni_broadcast_leave(0, &a);
    ni_broadcast_forget(&word);
    ck_assert_uint_eq(word, 0);
    struct ni_arrival c = ni_broadcast_arrive(0, &other, 2, 0); /* it gets another channel */
    ck_assert_uint_ne(c.serial, b.serial);
    ck_assert_uint_eq(ni_broadcast_leave(1, &b), 618);
    struct ni_arrival d = ni_broadcast_arrive(1, &other, 2, 0);
    ck_assert_uint_eq(d.serial, c.serial);
    ni_broadcast_leave(0, &c);
    ni_broadcast_leave(1, &d);
    uint32_t third = 0; /* the channel of the barrier that has gone, and nothing of what was there */
    a = ni_broadcast_arrive(0, &third, 2, 50000);
    ck_assert_uint_eq(a.serial % 64, b.serial % 64);
    b = ni_broadcast_arrive(1, &third, 2, 60000);
    ck_assert_uint_eq(ni_broadcast_leave(0, &a), 60618);
    ck_assert_uint_eq(ni_broadcast_leave(1, &b), 60603);
}

TEST(freed_without_destroy, "and made anew at the same address: with a word of zeroes, or with what was there") {
    uint32_t word = 0;
    begin(2);
    for (uint32_t i = 0; i < 500; i++) {
        struct ni_arrival a = ni_broadcast_arrive(0, &word, 2, i * 1000),
                          b = ni_broadcast_arrive(1, &word, 2, i * 1000);
        ck_assert_uint_eq(ni_broadcast_leave(0, &a), i * 1000 + 618);
        ck_assert_uint_eq(ni_broadcast_leave(1, &b), i * 1000 + 618);
        word = i % 3 == 0 ? word : i % 3 == 1 ? 0 : i * 2654435761u;
    }
    ck_assert_uint_eq(ni_broadcast_sum(true).n_without_channel, 0);
}

TEST(a_forked_child, "begins anew; the thread that has come to a barrier goes on") {
    uint32_t word = 0;
    begin(2);
    struct ni_arrival a = ni_broadcast_arrive(0, &word, 2, 5000);
    ni_broadcast_fork_child();
    ck_assert_uint_eq(ni_broadcast_leave(0, &a), 5300);
    ck_assert_uint_eq(ni_broadcast_sum(true).n_messages, 0);
    struct ni_arrival b = ni_broadcast_arrive(0, &word, 2, 0), c = ni_broadcast_arrive(1, &word, 2, 0);
    ck_assert_uint_eq(ni_broadcast_leave(0, &b), 618);
    ck_assert_uint_eq(ni_broadcast_leave(1, &c), 618);
    for (uint32_t i = 0; i < 200; i++) { /* no channel is lost */
        uint32_t other = 0;
        ck_assert_uint_ne(ni_broadcast_arrive(0, &other, 1, 0).serial, 0);
        struct ni_arrival alone = ni_broadcast_arrive(0, &other, 1, 0);
        ni_broadcast_leave(0, &alone);
        ni_broadcast_leave(0, &alone);
        ni_broadcast_forget(&other);
    }
}

TEST(room_grows, "with the messages under way") {
    static uint32_t words[40];
    static struct ni_arrival arrivals[40][64];
    begin(64);
    for (int round = 0; round < 3; round++) {
        for (uint32_t k = 0; k < 40; k++)
            for (uint32_t i = 0; i < 64; i++)
                arrivals[k][i] = ni_broadcast_arrive(i, &words[k], 64, 0);
        for (uint32_t k = 0; k < 40; k++)
            for (uint32_t i = 0; i < 64; i++)
                ck_assert_uint_ge(ni_broadcast_leave(i, &arrivals[k][i]), 300 + 15 + 63 * 303);
    }
    ck_assert_uint_eq(ni_broadcast_sum(true).n_messages, 3 * 40 * 64);
}

/* ---- broadcasts of conditions ---- */

TEST(requests, "take 300 and 15, and one after another's 10") {
    begin(4);
    ck_assert_uint_eq(ni_broadcast_request(0, 2, 1000), 1315);
    ck_assert_uint_eq(ni_broadcast_request(1, 2, 1000), 1325);
    ck_assert_uint_eq(ni_broadcast_request(1, 3, 1000), 1315);
    struct ni_broadcast_counts counts = ni_broadcast_sum(true);
    ck_assert_uint_eq(counts.n_messages, 3);
    ck_assert_uint_eq(counts.n_transferred, 3); /* not those that were sent to other NIs just before */
    ck_assert_uint_eq(counts.n_retrieved, 3);
    ck_assert_uint_eq(counts.max_buffer, 1);
    ck_assert_uint_eq(ni_machine.broadcast_cycles, 300);
}

/* In that control element of tile 2. */
static uint32_t condition_at(uint32_t index) {
    return hw_id_make(&ni_machine.layout, 2, HW_KIND_CONDITION, 1, 0, index);
}

TEST(way_back, "of a waiter: known 618 after the call; a broadcast before its wait does not count") {
    begin(4);
    uint32_t condition = condition_at(1), other = condition_at(2);
    ck_assert_uint_eq(ni_broadcast_resume(7, 5000, 185), 185); /* it waits at none */
    ni_broadcast_stepped(condition, 500, 830);
    ni_broadcast_waits(7, condition, 1000);
    ck_assert_uint_eq(ni_broadcast_resume(7, 5000, 185), 185);
    ni_broadcast_stepped(other, 2000, 2330);
    ck_assert_uint_eq(ni_broadcast_resume(7, 5000, 185), 185);
    ni_broadcast_stepped(condition, 2000, 2330);
    ck_assert_uint_eq(ni_broadcast_resume(7, 2400, 185), 185); /* 218 are left */
    ck_assert_uint_eq(ni_broadcast_resume(7, 2600, 185), 18);
    ck_assert_uint_eq(ni_broadcast_resume(7, 5000, 185), 0);
    ni_broadcast_waits(7, 0, 6000);
    ck_assert_uint_eq(ni_broadcast_resume(7, 7000, 185), 185);
}
