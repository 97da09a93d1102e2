/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The turn (engine/det/turn.h) by itself: which thread is next, queues, logical time, the outside. */
#include <stdlib.h>

#include "engine/det/turn.h"
#include "lib/suite.h"

static struct turn *with_threads(uint32_t n, uint64_t seed) {
    struct turn *t = calloc(1, sizeof *t);
    ck_assert_ptr_nonnull(t);
    turn_begin(t, seed);
    for (uint32_t i = 1; i < n; i++)
        ck_assert_uint_eq(turn_create(t), i);
    return t;
}

static void block(struct turn *t, uintptr_t key, uint64_t deadline) {
    turn_block(t, key, deadline, 0, false);
    turn_pass(t);
}

TEST(turn_pass__goes_round_in_order_of_creation) {
    struct turn *t = with_threads(3, 0);
    ck_assert_uint_eq(t->holder, 0);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(turn_pass(t), 2);
    ck_assert_uint_eq(turn_pass(t), 0);
    ck_assert_uint_eq(t->now, 3 * TURN_NS);
    free(t);
}

TEST(turn_pass__beyond_one_word_of_the_bitmap) {
    struct turn *t = with_threads(130, 0);
    for (uint32_t i = 1; i <= 130; i++)
        ck_assert_uint_eq(turn_pass(t), i % 130);
    free(t);
}

TEST(turn_pass__a_seed_draws_the_same_each_time_and_every_thread) {
    struct turn *a = with_threads(5, 7), *b = with_threads(5, 7), *c = with_threads(5, 8);
    uint32_t seen = 0, differ = 0;
    for (int i = 0; i < 200; i++) {
        uint32_t next = turn_pass(a);
        ck_assert_uint_eq(next, turn_pass(b));
        differ += next != turn_pass(c);
        seen |= 1u << next;
    }
    ck_assert_uint_eq(seen, 31);
    ck_assert_uint_gt(differ, 0);
    free(a);
    free(b);
    free(c);
}

/* The generator's first numbers for this seed, as published with it, among five threads. */
TEST(turn_pass__a_seed_draws_by_splitmix64) {
    static const uint64_t numbers[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                       4593380528125082431u, 16408922859458223821u};
    struct turn *t = with_threads(5, 1234567);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        ck_assert_uint_eq(turn_pass(t), numbers[i] % 5);
    free(t);
}

TEST(turn_wake__first_come_first_and_by_key_within_one_queue) {
    struct turn *t = with_threads(4, 0);
    uintptr_t key = 8, other = 16;
    while (turn_queue_of(other) != turn_queue_of(key))
        other += 8;
    block(t, key, TURN_NEVER);   /* 0 */
    block(t, other, TURN_NEVER); /* 1 */
    block(t, key, TURN_NEVER);   /* 2 */
    ck_assert_uint_eq(t->holder, 3);
    ck_assert_uint_eq(turn_wake(t, key, 1), 1);
    ck_assert_uint_eq(t->thread[0].state, TURN_RUNNABLE);
    ck_assert_uint_eq(t->thread[2].state, TURN_BLOCKED);
    ck_assert_uint_eq(turn_wake(t, key, UINT32_MAX), 1);
    ck_assert_uint_eq(turn_waiting(t, other, 0), 1);
    ck_assert_uint_eq(turn_wake(t, other, UINT32_MAX), 1);
    ck_assert_uint_eq(turn_wake(t, other, UINT32_MAX), 0);
    ck_assert_uint_eq(t->n_runnable, 4);
    free(t);
}

TEST(turn_go_on__a_woken_thread_is_not_back_and_has_the_turn_in_order) {
    struct turn *t = with_threads(3, 0);
    block(t, 8, TURN_NEVER); /* 0 */
    ck_assert_uint_eq(t->holder, 1);
    turn_wake_thread(t, 0, TURN_WOKEN);
    ck_assert_uint_eq(turn_last_back(t), 0);
    turn_go_on(t, 0);
    ck_assert_uint_eq(turn_last_back(t), TURN_NO_THREAD);
    ck_assert_uint_eq(t->thread[0].state, TURN_RUNNABLE);
    ck_assert_uint_eq(turn_pass(t), 2);
    ck_assert_uint_eq(turn_pass(t), 0);
    free(t);
}

TEST(turn_wake_thread__the_last_leaves_and_the_queue_goes_on) {
    struct turn *t = with_threads(4, 0);
    block(t, 8, TURN_NEVER);
    block(t, 8, TURN_NEVER);
    turn_wake_thread(t, 1, TURN_CANCELLED);
    ck_assert_uint_eq(t->thread[1].reason, TURN_CANCELLED);
    block(t, 8, TURN_NEVER); /* 2, behind 0 */
    ck_assert_uint_eq(turn_wake(t, 8, 1), 1);
    ck_assert_uint_eq(t->thread[0].state, TURN_RUNNABLE);
    ck_assert_uint_eq(turn_wake(t, 8, 1), 1);
    ck_assert_uint_eq(t->thread[2].state, TURN_RUNNABLE);
    free(t);
}

TEST(turn_last_back__woken_threads_until_they_have_the_turn) {
    struct turn *t = with_threads(5, 0);
    block(t, 8, TURN_NEVER); /* 0 */
    block(t, 8, TURN_NEVER); /* 1 */
    block(t, 8, TURN_NEVER); /* 2 */
    ck_assert_uint_eq(turn_last_back(t), TURN_NO_THREAD);
    ck_assert_uint_eq(turn_wake(t, 8, UINT32_MAX), 3);
    ck_assert_uint_eq(t->n_back, 3);
    ck_assert_uint_eq(t->holder, 3);
    ck_assert_uint_eq(turn_last_back(t), 2);
    ck_assert_uint_eq(turn_pass(t), 4);
    ck_assert_uint_eq(turn_last_back(t), 2);
    ck_assert_uint_eq(turn_pass(t), 0);
    ck_assert_uint_eq(t->n_back, 2);
    turn_absent(t, 2);
    ck_assert_uint_eq(turn_last_back(t), 1);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(turn_last_back(t), TURN_NO_THREAD);
    free(t);
}

TEST(turn_block__a_deadline_comes_with_the_turns) {
    struct turn *t = with_threads(2, 0);
    block(t, 8, 3 * TURN_NS);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(turn_pass(t), 0);
    ck_assert_uint_eq(t->thread[0].reason, TURN_TIMED_OUT);
    ck_assert_uint_eq(turn_wake(t, 8, 1), 0);
    free(t);
}

TEST(turn_overdue__time_jumps_when_no_thread_is_runnable) {
    struct turn *t = with_threads(2, 0);
    block(t, 8, 1000 * TURN_NS);
    block(t, 8, 500 * TURN_NS);
    ck_assert_uint_eq(t->holder, TURN_NO_THREAD);
    turn_overdue(t, 0);
    ck_assert_uint_eq(turn_choose(t), TURN_NO_THREAD); /* the other one's deadline comes first */
    turn_overdue(t, 1);
    ck_assert_uint_eq(turn_choose(t), 1);
    ck_assert_uint_eq(t->now, 500 * TURN_NS);
    block(t, 16, TURN_NEVER);
    ck_assert_uint_eq(t->holder, 0);
    ck_assert_uint_eq(t->now, 1000 * TURN_NS);
    free(t);
}

TEST(turn_overdue__an_absent_thread_does_not_keep_the_others) {
    struct turn *t = with_threads(2, 0);
    block(t, 8, 500 * TURN_NS); /* 0 */
    turn_absent(t, 0);
    block(t, 8, 1000 * TURN_NS); /* 1 */
    ck_assert_uint_eq(t->holder, TURN_NO_THREAD);
    turn_overdue(t, 1);
    ck_assert_uint_eq(turn_choose(t), 1);
    ck_assert_uint_eq(t->now, 1000 * TURN_NS);
    ck_assert_uint_eq(t->thread[0].state, TURN_OUTSIDE); /* its deadline has come before */
    ck_assert_uint_eq(t->thread[0].reason, TURN_TIMED_OUT);
    ck_assert(turn_present(t, 0));
    turn_pass(t);
    block(t, 8, t->now + 500 * TURN_NS); /* 0 */
    turn_overdue(t, 0);
    turn_absent(t, 0);
    turn_block(t, 8, t->now + 1000 * TURN_NS, 0, false); /* 1 */
    turn_overdue(t, 1);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(t->thread[0].state, TURN_OUTSIDE);
    free(t);
}

TEST(turn_leave__the_round_goes_on_without_it) {
    struct turn *t = with_threads(3, 0);
    turn_leave(t);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(turn_pass(t), 2);
    ck_assert_uint_eq(turn_pass(t), 1);
    turn_return(t, 0);
    ck_assert_uint_eq(turn_pass(t), 2);
    ck_assert_uint_eq(turn_pass(t), 0);
    free(t);
}

TEST(turn_leave__what_it_had_waited_for_is_passed_on_no_more) {
    struct turn *t = with_threads(3, 0);
    block(t, 8, TURN_NEVER); /* 0 */
    block(t, 8, TURN_NEVER); /* 1 */
    ck_assert_uint_eq(turn_wake(t, 8, 1), 1);
    ck_assert_uint_eq(turn_pass(t), 0);
    turn_leave(t);
    turn_pass(t);
    turn_return(t, 0);
    turn_absent(t, 0);
    ck_assert_uint_eq(t->thread[1].state, TURN_BLOCKED);
    ck_assert_uint_eq(turn_waiting(t, 8, 0), 1);
    free(t);
}

TEST(turn_absent__a_wake_up_goes_to_another_thread_too) {
    struct turn *t = with_threads(3, 0);
    block(t, 8, TURN_NEVER);
    block(t, 8, TURN_NEVER);
    turn_absent(t, 0);
    ck_assert_uint_eq(turn_wake(t, 8, 1), 1);
    ck_assert_uint_eq(t->thread[0].state, TURN_OUTSIDE);
    ck_assert_uint_eq(t->thread[1].state, TURN_RUNNABLE);
    ck_assert(turn_present(t, 0));
    ck_assert_uint_eq(t->thread[0].state, TURN_RUNNABLE);
    ck_assert_uint_eq(t->n_runnable, 3);
    free(t);
}

TEST(turn_absent__an_exact_wake_up_goes_to_no_other) {
    struct turn *t = with_threads(3, 0);
    for (int i = 0; i < 2; i++) {
        turn_block(t, 8, TURN_NEVER, TURN_EXACT, false);
        turn_pass(t);
    }
    turn_absent(t, 0);
    ck_assert_uint_eq(turn_wake(t, 8, 1), 1);
    ck_assert_uint_eq(t->thread[1].state, TURN_BLOCKED);
    ck_assert_uint_eq(turn_wake(t, 8, 1), 1);
    turn_absent(t, 1); /* woken already */
    ck_assert_uint_eq(t->thread[1].state, TURN_OUTSIDE);
    ck_assert_uint_eq(t->n_runnable, 1);
    free(t);
}

TEST(turn_present__a_thread_that_is_blocked_goes_on_waiting) {
    struct turn *t = with_threads(2, 0);
    block(t, 8, TURN_NEVER);
    turn_absent(t, 0);
    ck_assert(!turn_present(t, 0));
    ck_assert_uint_eq(turn_wake(t, 8, 1), 1);
    ck_assert_uint_eq(t->thread[0].state, TURN_RUNNABLE);
    free(t);
}

TEST(turn_expel__it_comes_back) {
    struct turn *t = with_threads(2, 0);
    t->holder = TURN_NO_THREAD;
    turn_expel(t, 0);
    ck_assert_uint_eq(turn_choose(t), 1);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert(turn_present(t, 0));
    ck_assert_uint_eq(turn_pass(t), 0);
    free(t);
}

TEST(turn_release__a_number_whose_thread_waits_leaves_its_queue) {
    struct turn *t = with_threads(3, 0);
    block(t, 8, TURN_NEVER);
    block(t, 8, TURN_NEVER);
    turn_release(t, 0);
    ck_assert_uint_eq(t->thread[0].state, TURN_FREE);
    ck_assert_uint_eq(t->n_runnable, 1);
    ck_assert_uint_eq(turn_wake(t, 8, UINT32_MAX), 1);
    ck_assert_uint_eq(turn_create(t), 0);
    free(t);
}

TEST(turn_create__the_lowest_number_that_is_free) {
    struct turn *t = with_threads(4, 0);
    turn_pass(t);
    turn_end(t);
    ck_assert_uint_eq(turn_pass(t), 2);
    ck_assert_uint_eq(turn_create(t), 4);
    turn_release(t, 1);
    ck_assert_uint_eq(turn_create(t), 1);
    ck_assert_uint_eq(t->n_runnable, 5);
    free(t);
}

TEST(turn_create__refuses_too_many) {
    struct turn *t = with_threads(TURN_THREADS, 0);
    ck_assert_uint_eq(turn_create(t), TURN_NO_THREAD);
    free(t);
}

TEST(turn_give_up__passed_over_for_so_many_turns_of_others) {
    struct turn *t = with_threads(3, 0);
    turn_give_up(t, 4);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(t->thread[0].state, TURN_SECTION);
    ck_assert_uint_eq(t->n_runnable, 2);
    ck_assert_uint_eq(turn_pass(t), 2); /* the first of four turns is over */
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(turn_pass(t), 2);
    ck_assert_uint_eq(t->thread[0].state, TURN_SECTION);
    ck_assert_uint_eq(turn_pass(t), 0);
    ck_assert_uint_eq(t->thread[0].reason, TURN_TIMED_OUT);
    ck_assert_uint_eq(t->n_soft, 0);
    ck_assert_uint_eq(turn_pass(t), 1);
    free(t);
}

TEST(turn_give_up__over_at_once_if_no_other_thread_is_runnable) {
    struct turn *t = with_threads(3, 0);
    turn_give_up(t, 1000);
    turn_pass(t);
    turn_give_up(t, 10);
    ck_assert_uint_eq(turn_pass(t), 2);
    uint64_t before = t->now;
    turn_block(t, 8, before + 5 * TURN_NS, 0, false);
    ck_assert_uint_eq(turn_pass(t), 1); /* the earliest end: neither 0 nor the deadline, for which the clock may wait */
    ck_assert_uint_eq(t->thread[1].reason, TURN_WOKEN);
    ck_assert_uint_eq(t->now, before + TURN_NS);
    ck_assert_uint_eq(t->thread[0].state, TURN_SECTION);
    turn_block(t, 8, TURN_NEVER, 0, false);
    ck_assert_uint_eq(turn_pass(t), 0);
    ck_assert_uint_eq(t->n_soft, 0);
    free(t);
}

TEST(turn_keep__counts_a_tenth_of_a_turn_but_where_threads_wait_for_turns) {
    struct turn *t = with_threads(2, 0);
    ck_assert(turn_keep(t));
    ck_assert_uint_eq(t->now, TURN_KEPT_NS);
    turn_give_up(t, 2);
    ck_assert_uint_eq(turn_pass(t), 1);
    uint64_t before = t->now;
    ck_assert(turn_keep(t));
    ck_assert_uint_eq(t->now, before + TURN_NS);
    ck_assert(!turn_keep(t)); /* the section is over with this turn */
    ck_assert_uint_eq(turn_pass(t), 0);
    before = t->now;
    ck_assert(turn_keep(t));
    ck_assert_uint_eq(t->now, before + TURN_KEPT_NS);
    turn_block(t, 8, t->now + 100 * TURN_NS, 0, false);
    turn_soften(t);
    ck_assert_uint_eq(turn_pass(t), 1);
    before = t->now;
    ck_assert(turn_keep(t));
    ck_assert_uint_eq(t->now, before + TURN_NS);
    turn_wake(t, 8, 1);
    ck_assert(turn_keep(t));
    ck_assert_uint_eq(t->now, before + TURN_NS + TURN_KEPT_NS);
    free(t);
}

TEST(turn_soften__a_soft_deadline_comes_with_turns_or_if_no_thread_is_runnable) {
    struct turn *t = with_threads(2, 0);
    turn_block(t, 8, t->now + 3 * TURN_NS, 0, false);
    turn_soften(t);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(turn_pass(t), 0);
    ck_assert_uint_eq(t->thread[0].reason, TURN_TIMED_OUT);
    turn_block(t, 8, t->now + 3000 * TURN_NS, 0, false);
    turn_soften(t);
    turn_pass(t);
    turn_block(t, 16, TURN_NEVER, 0, false);
    uint64_t before = t->now;
    ck_assert_uint_eq(turn_pass(t), 0);
    ck_assert_uint_eq(t->now, before + TURN_NS);
    ck_assert_uint_eq(t->thread[0].reason, TURN_TIMED_OUT);
    free(t);
}

TEST(turn_soften__a_thread_that_is_woken_has_no_soft_deadline_any_more) {
    struct turn *t = with_threads(3, 0);
    turn_block(t, 8, t->now + 10 * TURN_NS, 0, false);
    turn_soften(t);
    turn_pass(t);
    ck_assert_uint_eq(turn_wake(t, 8, UINT32_MAX), 1);
    ck_assert_uint_eq(t->n_soft, 0);
    turn_block(t, 8, TURN_NEVER, 0, false);
    turn_soften(t);
    turn_pass(t);
    turn_release(t, 1);
    ck_assert_uint_eq(t->n_soft, 0);
    free(t);
}

TEST(turn_soften__an_absent_thread_does_not_keep_the_others) {
    struct turn *t = with_threads(2, 0);
    turn_block(t, 8, t->now + 10 * TURN_NS, 0, false);
    turn_soften(t);
    turn_pass(t);
    turn_absent(t, 0);
    turn_give_up(t, 1000); /* ends later than what the absent thread waits for */
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(t->thread[0].state, TURN_OUTSIDE);
    ck_assert_uint_eq(t->n_soft, 0);
    free(t);
}

TEST(turn_give_up__the_end_is_found_beside_an_earlier_deadline) {
    struct turn *t = with_threads(3, 0);
    turn_block(t, 8, t->now + 2 * TURN_NS, 0, false);
    turn_pass(t);
    turn_give_up(t, 3);
    ck_assert_uint_eq(turn_pass(t), 2);
    ck_assert_uint_eq(t->thread[0].state, TURN_RUNNABLE);
    turn_block(t, 8, TURN_NEVER, 0, false);
    ck_assert_uint_eq(turn_pass(t), 0);
    ck_assert_uint_eq(turn_pass(t), 0);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(t->thread[1].reason, TURN_TIMED_OUT);
    free(t);
}
/* ---- futexes ---- */

static void block_with_bits(struct turn *t, uintptr_t key, uint32_t bits) {
    uint32_t i = t->holder;
    turn_block(t, key, TURN_NEVER, TURN_EXACT, false);
    t->thread[i].bits = bits;
    turn_pass(t);
}

TEST(turn_wake_bits__those_with_a_common_bit_first_come_first) {
    struct turn *t = with_threads(5, 0);
    block_with_bits(t, 9, 1);  /* 0 */
    block_with_bits(t, 9, 6);  /* 1 */
    block_with_bits(t, 25, 6); /* 2 */
    block_with_bits(t, 9, 2);  /* 3 */
    ck_assert_uint_eq(turn_wake_bits(t, 9, 1, 8), 0);
    ck_assert_uint_eq(turn_wake_bits(t, 9, 1, 2), 1);
    ck_assert_uint_eq(t->thread[1].state, TURN_RUNNABLE);
    ck_assert_uint_eq(t->thread[0].state, TURN_BLOCKED);
    ck_assert_uint_eq(t->thread[3].state, TURN_BLOCKED);
    ck_assert_uint_eq(turn_wake_bits(t, 9, 0, UINT32_MAX), 0);
    ck_assert_uint_eq(turn_wake_bits(t, 9, UINT32_MAX, UINT32_MAX), 2);
    ck_assert_uint_eq(t->thread[2].state, TURN_BLOCKED);
    ck_assert_uint_eq(turn_first(t, 9), TURN_NO_THREAD);
    ck_assert_uint_eq(turn_first(t, 25), 2);
    free(t);
}

TEST(turn_wake_bits__absent_threads_are_woken_and_never_count) {
    struct turn *t = with_threads(3, 0);
    block_with_bits(t, 9, 1);
    block_with_bits(t, 9, 1);
    turn_absent(t, 0);
    ck_assert_uint_eq(turn_wake_bits(t, 9, 1, 1), 1);
    ck_assert_uint_eq(t->thread[0].state, TURN_OUTSIDE);
    ck_assert_uint_eq(t->thread[1].state, TURN_RUNNABLE);
    ck_assert_uint_eq(t->n_runnable, 2);
    free(t);
}

/* Both keys in one queue, or each in its own. */
static void moves(uintptr_t from, uintptr_t to) {
    struct turn *t = with_threads(6, 0);
    block_with_bits(t, from, 1); /* 0 */
    block_with_bits(t, from, 2); /* 1 */
    block_with_bits(t, to, 1);   /* 2 */
    block_with_bits(t, from, 4); /* 3 */
    block_with_bits(t, from, 1); /* 4 */
    turn_absent(t, 1);
    ck_assert_uint_eq(turn_move(t, from, from, 2), 2);
    ck_assert_uint_eq(turn_first(t, from), 0);
    ck_assert_uint_eq(turn_move(t, from, to, 2), 2); /* 0 and 3: behind 2 */
    ck_assert_uint_eq(turn_first(t, from), 1);
    ck_assert_uint_eq(turn_move(t, from, to, UINT32_MAX), 1); /* 4 */
    ck_assert_uint_eq(turn_move(t, from, to, UINT32_MAX), 0);
    turn_present(t, 1);
    static const uint32_t order[] = {2, 0, 3, 4};
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(turn_first(t, to), order[i]);
        ck_assert_uint_eq(turn_wake_bits(t, to, 1, UINT32_MAX), 1);
        ck_assert_uint_eq(t->thread[order[i]].state, TURN_RUNNABLE);
    }
    ck_assert_uint_eq(turn_wake_bits(t, to, 1, UINT32_MAX), 0);
    ck_assert_uint_eq(turn_wake_bits(t, from, 1, 2), 1);
    ck_assert_uint_eq(t->n_runnable, 6);
    block_with_bits(t, to, 1); /* 5: the queue is whole */
    ck_assert_uint_eq(turn_first(t, to), 5);
    free(t);
}

TEST(turn_move__to_the_end_first_come_first_with_their_bits) {
    uintptr_t other = 25;
    while (turn_queue_of(other) == turn_queue_of(9))
        other += 8;
    moves(9, other);
    while (turn_queue_of(other) != turn_queue_of(9))
        other += 8;
    moves(9, other);
}

TEST(turn_serve__the_holder_that_has_offered_once) {
    struct turn *t = with_threads(3, 0);
    ck_assert(!turn_offer(t, 0)); /* it has the turn */
    ck_assert(turn_offer(t, 1));
    ck_assert(turn_offer(t, 2));
    ck_assert_uint_eq(turn_serve(t), TURN_NO_THREAD);
    ck_assert_uint_eq(turn_pass(t), 1);
    ck_assert_uint_eq(turn_serve(t), 1);
    ck_assert_uint_eq(turn_serve(t), TURN_NO_THREAD);
    block(t, 8, TURN_NEVER);
    ck_assert(turn_withdraw(t, 2));
    ck_assert_uint_eq(turn_serve(t), TURN_NO_THREAD);
    ck_assert(!turn_withdraw(t, 1)); /* it was served, though it has blocked since */
    ck_assert(!turn_offer(t, 1));
    turn_wake(t, 8, 1);
    ck_assert(turn_offer(t, 1));
    turn_pass(t);
    ck_assert_uint_eq(turn_pass(t), 1);
    turn_release(t, 1); /* its thread is no more, and neither is the offer */
    ck_assert_uint_eq(turn_serve(t), TURN_NO_THREAD);
    free(t);
}
