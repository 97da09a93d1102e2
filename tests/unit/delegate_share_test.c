/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which mutexes `--delegate auto` delegates (engine/direct/delegate_share.c), and which server has them
 * (delegate_place.c). The test is the program and the clock: so much of the threads' time goes into a mutex, and so
 * much progress is made in a millisecond with and without.
 */
#include "engine/direct/delegate_place.h"
#include "engine/direct/delegate_share.h"
#include "lib/suite.h"

enum { US = 1000, MS = 1000 * US, THREADS = 10 };
#define SECOND UINT64_C(1000000000)

/* n samples in ns, of `busy_ns` each. */
static enum direct_share share(uint64_t n, uint64_t busy_ns, uint64_t n_long, uint64_t ns) {
    struct direct_share_sums sums = {n, n_long, n * busy_ns};
    return direct_share_of(&sums, ns, THREADS);
}

/* In 10 ms ten threads have 100 ms: a sample stands for 13 sections, so 100 of them at 11.54 us are 15 ms. */
TEST(a_share_of_the_threads_time) {
    ck_assert_uint_eq(share(100, 11539, 0, 10 * MS), DIRECT_SHARE_HOT);
    ck_assert_uint_eq(share(100, 11538, 0, 10 * MS), DIRECT_SHARE_BETWEEN);
    ck_assert_uint_eq(share(100, 5770, 0, 10 * MS), DIRECT_SHARE_BETWEEN);
    ck_assert_uint_eq(share(100, 5769, 0, 10 * MS), DIRECT_SHARE_COLD);
    ck_assert_uint_eq(share(100, 11539, 0, 20 * MS), DIRECT_SHARE_BETWEEN);
}

TEST(a_round_lasts_until_there_are_samples) {
    ck_assert_uint_eq(share(100, US, 0, 10 * MS - 1), DIRECT_SHARE_UNKNOWN);
    ck_assert_uint_eq(share(7, 100 * MS, 0, 100 * MS - 1), DIRECT_SHARE_UNKNOWN);
    ck_assert_uint_eq(share(7, 100 * MS, 0, 100 * MS), DIRECT_SHARE_UNKNOWN);
    ck_assert_uint_eq(share(7, 100 * MS, 0, 2 * SECOND - 1), DIRECT_SHARE_UNKNOWN);
    ck_assert_uint_eq(share(7, 100 * MS, 0, 2 * SECOND), DIRECT_SHARE_COLD);
    ck_assert_uint_eq(share(8, 100 * MS, 0, 100 * MS), DIRECT_SHARE_HOT);
    ck_assert_uint_eq(share(0, 0, 0, 100 * MS), DIRECT_SHARE_QUIET);
}

/* One that was stopped is an exception. */
TEST(most_sections_are_long) {
    ck_assert_uint_eq(share(100, 30 * US, 50, 10 * MS), DIRECT_SHARE_HOT);
    ck_assert_uint_eq(share(100, 30 * US, 51, 10 * MS), DIRECT_SHARE_LONG);
    ck_assert_uint_eq(share(3, 30 * US, 2, 100 * MS), DIRECT_SHARE_LONG);
    ck_assert_uint_eq(share(2, 30 * US, 2, 100 * MS), DIRECT_SHARE_UNKNOWN);
}

static struct direct_share_state state;
static uint64_t now_ns, progress, n_waits, delegated_ns;
static unsigned without, delegated; /* progress in a millisecond */
static unsigned n_cpus = 2, handed; /* so many sections in a millisecond with delegation */

static void program(unsigned not_delegated, unsigned if_delegated) {
    state = (struct direct_share_state){0};
    now_ns = 5 * SECOND;
    progress = n_waits = delegated_ns = 0;
    without = not_delegated;
    delegated = if_delegated;
    handed = 200;
}

static bool step(enum direct_share s, enum direct_share_how how, bool may_try) {
    struct sbt_pays_seen seen = {
        .now_ns = now_ns, .progress = progress, .n_switches = n_waits, .n_cpus = n_cpus, .crowded = true};
    return direct_share_step(&state, s, how, may_try, &seen);
}

/* The monitor looks each 2 ms, and a round is five looks. */
static bool go_on(uint64_t ns, enum direct_share s) {
    bool is = false;
    for (uint64_t end = now_ns + ns, i = 0; now_ns < end; now_ns += 2 * MS, i++) {
        is = step(i % 5 == 4 ? s : DIRECT_SHARE_UNKNOWN, DIRECT_SHARE_TRIED, true);
        progress += 2 * (is ? delegated : without);
        n_waits += is ? 2 * handed : 0;
        delegated_ns += is ? 2 * MS : 0;
    }
    return is;
}

TEST(a_hot_mutex_is_delegated_if_more_is_got_done) {
    program(1000, 1500);
    ck_assert(go_on(SECOND / 5, DIRECT_SHARE_HOT));
}

/* 200 hand-overs in a millisecond would be few for 64 CPUs. */
TEST(it_stays_delegated_with_many_cpus) {
    program(1000, 1500);
    n_cpus = 64;
    bool is = go_on(SECOND / 5, DIRECT_SHARE_HOT);
    uint64_t before_ns = delegated_ns;
    is = is && go_on(SECOND / 5, DIRECT_SHARE_HOT); /* a trial comes in it */
    n_cpus = 2;
    ck_assert(is);
    ck_assert_uint_gt(delegated_ns - before_ns, SECOND * 3 / 20);
}

TEST(a_trial_with_hardly_a_hand_over_is_in_vain) {
    program(1000, 1500);
    handed = 76; /* of 1500 */
    ck_assert(go_on(SECOND / 5, DIRECT_SHARE_HOT));
    program(1000, 1500);
    handed = 74;
    ck_assert(!go_on(SECOND / 5, DIRECT_SHARE_HOT));
    ck_assert_uint_ne(delegated_ns, 0);
}

/* Delegated, and long at once: it is left alone for 0.5 s, 1 s, ... although each trial between went well. */
TEST(it_is_left_alone_longer_each_time) {
    program(1000, 1500);
    for (uint64_t gap_ns = SECOND / 2; gap_ns < 8 * SECOND; gap_ns *= 2) {
        while (!step(DIRECT_SHARE_HOT, DIRECT_SHARE_TRIED, true) || sbt_pays_is_in_trial(&state.pays))
            go_on(2 * MS, DIRECT_SHARE_HOT);
        ck_assert(!step(DIRECT_SHARE_LONG, DIRECT_SHARE_TRIED, true));
        ck_assert_uint_eq(state.pays.next_ns - now_ns, gap_ns);
        now_ns = state.pays.next_ns;
    }
}

TEST(a_hot_mutex_is_left_alone_if_not) {
    program(1000, 1000);
    ck_assert(!go_on(10 * SECOND, DIRECT_SHARE_HOT));
    ck_assert_uint_ne(delegated_ns, 0);
    ck_assert_uint_lt(delegated_ns, SECOND / 5);
}

TEST(a_program_that_gets_slower_does_so_for_a_moment) {
    program(1000, 300);
    ck_assert(!go_on(10 * SECOND, DIRECT_SHARE_HOT));
    ck_assert_uint_ne(delegated_ns, 0);
    ck_assert_uint_lt(delegated_ns, SECOND / 10);
}

TEST(what_is_not_hot_is_not_tried) {
    program(1000, 1500);
    go_on(SECOND, DIRECT_SHARE_COLD);
    go_on(SECOND, DIRECT_SHARE_BETWEEN);
    go_on(SECOND, DIRECT_SHARE_LONG);
    ck_assert_uint_eq(delegated_ns, 0);
}

TEST(it_stays_delegated_between_hot_and_cold) {
    program(1000, 1500);
    go_on(SECOND / 5, DIRECT_SHARE_HOT);
    ck_assert(go_on(SECOND / 10, DIRECT_SHARE_BETWEEN));
}

TEST(it_goes_back_when_it_is_cold_for_two_rounds) {
    program(1000, 1500);
    ck_assert(go_on(SECOND / 5, DIRECT_SHARE_HOT));
    ck_assert(step(DIRECT_SHARE_COLD, DIRECT_SHARE_TRIED, true));
    ck_assert(step(DIRECT_SHARE_UNKNOWN, DIRECT_SHARE_TRIED, true));
    ck_assert(!step(DIRECT_SHARE_COLD, DIRECT_SHARE_TRIED, true));
}

TEST(a_round_between_begins_the_count_again) {
    program(1000, 1500);
    ck_assert(go_on(SECOND / 5, DIRECT_SHARE_HOT));
    ck_assert(step(DIRECT_SHARE_COLD, DIRECT_SHARE_TRIED, true));
    ck_assert(step(DIRECT_SHARE_BETWEEN, DIRECT_SHARE_TRIED, true));
    ck_assert(step(DIRECT_SHARE_COLD, DIRECT_SHARE_TRIED, true));
}

/* Nothing comes of it: for 0.2 s other programs may have had the CPUs. */
TEST(it_stays_delegated_in_a_few_quiet_rounds) {
    program(1000, 1500);
    ck_assert(go_on(SECOND / 5, DIRECT_SHARE_HOT));
    for (unsigned n = 0; n < 19; n++)
        ck_assert(step(DIRECT_SHARE_QUIET, DIRECT_SHARE_ANYWAY, true));
    ck_assert(!step(DIRECT_SHARE_QUIET, DIRECT_SHARE_ANYWAY, true));
}

TEST(it_goes_back_at_once_when_sections_are_long) {
    program(1000, 1500);
    ck_assert(go_on(SECOND / 5, DIRECT_SHARE_HOT));
    ck_assert(!step(DIRECT_SHARE_LONG, DIRECT_SHARE_TRIED, true));
    ck_assert(!go_on(SECOND / 5, DIRECT_SHARE_HOT)); /* and is left alone for a while */
    ck_assert(go_on(2 * SECOND, DIRECT_SHARE_HOT));
}

TEST(it_goes_back_when_it_pays_no_more) {
    program(1000, 1500);
    ck_assert(go_on(SECOND / 5, DIRECT_SHARE_HOT));
    delegated = 900;
    ck_assert(!go_on(2 * SECOND, DIRECT_SHARE_HOT));
}

TEST(no_trial_begins_beside_another_ones) {
    program(1000, 1500);
    for (int i = 0; i < 100; i++, now_ns += 2 * MS)
        ck_assert(!step(DIRECT_SHARE_HOT, DIRECT_SHARE_TRIED, false));
    ck_assert(!sbt_pays_is_in_trial(&state.pays));
    ck_assert(go_on(SECOND / 5, DIRECT_SHARE_HOT));
    ck_assert(!step(DIRECT_SHARE_LONG, DIRECT_SHARE_TRIED, false)); /* but another one's does not keep it delegated */
}

TEST(a_trial_that_is_abandoned_changes_nothing) {
    program(1000, 1500);
    do
        go_on(2 * MS, DIRECT_SHARE_HOT);
    while (!step(DIRECT_SHARE_HOT, DIRECT_SHARE_TRIED, true));
    ck_assert(sbt_pays_is_in_trial(&state.pays));
    ck_assert(!sbt_pays_abandon(&state.pays, now_ns));
    ck_assert(!sbt_pays_is_in_trial(&state.pays));
    go_on(SECOND / 5, DIRECT_SHARE_HOT);
    now_ns += 10 * SECOND;
    n_waits += 1000000;
    ck_assert(step(DIRECT_SHARE_UNKNOWN, DIRECT_SHARE_TRIED, true) && sbt_pays_is_in_trial(&state.pays));
    ck_assert(sbt_pays_abandon(&state.pays, now_ns) && !sbt_pays_is_in_trial(&state.pays));
}

TEST(the_share_alone_decides_for_tests) {
    program(1000, 10);
    ck_assert(step(DIRECT_SHARE_HOT, DIRECT_SHARE_ANYWAY, false));
    ck_assert(step(DIRECT_SHARE_BETWEEN, DIRECT_SHARE_ANYWAY, false));
    ck_assert(!step(DIRECT_SHARE_LONG, DIRECT_SHARE_ANYWAY, false));
    ck_assert(!step(DIRECT_SHARE_BETWEEN, DIRECT_SHARE_ANYWAY, false));
}

TEST(by_turns_for_tests) {
    program(1000, 10);
    for (int i = 0; i < 10; i++)
        ck_assert(step(DIRECT_SHARE_UNKNOWN, DIRECT_SHARE_BY_TURNS, false) == (i % 2 == 0));
}

/* ---- servers ---- */

enum { ALL_BEHIND = 1000 };

/* 1000 sections, so many of them behind others'. */
static struct direct_placed placed(uint32_t server, uint64_t n_behind, uint64_t ns) {
    return (struct direct_placed){server, 1000, n_behind, ns};
}

static bool moves(const struct direct_placed *p, size_t n, uint32_t n_servers, size_t which, uint32_t server) {
    struct direct_move move = {SIZE_MAX, UINT32_MAX};
    return direct_place_move(p, n, n_servers, &move) && move.which == which && move.server == server;
}

static bool stays(const struct direct_placed *p, size_t n, uint32_t n_servers) {
    struct direct_move move;
    return !direct_place_move(p, n, n_servers, &move);
}

TEST(two_on_one_server_get_two) {
    struct direct_placed p[] = {placed(1, ALL_BEHIND, 500), placed(1, ALL_BEHIND, 400)};
    ck_assert(moves(p, 2, 2, 0, 0) || moves(p, 2, 2, 1, 0)); /* either leaves 500 on the fuller one */
    p[0].n_behind = 0;
    ck_assert(moves(p, 2, 2, 1, 0));
}

TEST(sections_behind_others_decide) {
    struct direct_placed p[] = {placed(0, 249, 500), placed(0, 249, 500)};
    ck_assert(stays(p, 2, 2));
    p[1].n_behind = 250;
    ck_assert(moves(p, 2, 2, 1, 1));
    p[1].n_handed = 63, p[1].n_behind = 63;
    ck_assert(stays(p, 2, 2));
    p[1].n_handed = 64;
    ck_assert(moves(p, 2, 2, 1, 1));
}

TEST(the_move_that_evens_out_most) {
    struct direct_placed p[] = {placed(0, ALL_BEHIND, 700), placed(0, ALL_BEHIND, 200), placed(0, ALL_BEHIND, 600),
                                placed(1, 0, 900), placed(2, 0, 100)};
    ck_assert(moves(p, 5, 3, 2, 2) || moves(p, 5, 3, 0, 2)); /* 1500 becomes 800 or 900 */
    p[4].ns = 300;
    ck_assert(moves(p, 5, 3, 2, 2)); /* 900; the other would make 1000 of it */
}

TEST(no_move_for_little) {
    struct direct_placed p[] = {placed(0, ALL_BEHIND, 800), placed(0, ALL_BEHIND, 200), placed(1, 0, 676)};
    ck_assert(stays(p, 3, 2)); /* 1000 would become 876 */
    p[2].ns = 675;
    ck_assert(moves(p, 3, 2, 1, 1));
    p[2].ns = 1000;
    ck_assert(stays(p, 3, 2));
    struct direct_placed alone[] = {placed(0, ALL_BEHIND, 800)};
    ck_assert(stays(alone, 1, 2)); /* elsewhere it would be the same */
    ck_assert(stays(p, 0, 2));
}

/* Whatever they are, moves end: each makes the fuller server's part smaller, and none is taken back. */
TEST(moves_end) {
    for (unsigned seed = 1; seed < 500; seed++) {
        struct direct_placed p[20];
        uint32_t random = seed;
        for (unsigned i = 0; i < 20; i++) {
            random = random * 1664525u + 1013904223u;
            p[i] = placed((random >> 8) % 4, ALL_BEHIND, (random >> 16) % 1000 + 1);
        }
        struct direct_move move;
        unsigned n = 0;
        for (; direct_place_move(p, 20, 4, &move); n++) {
            ck_assert_uint_lt(n, 20);
            ck_assert_uint_lt(move.server, 4);
            ck_assert_uint_ne(p[move.which].server, move.server);
            p[move.which].server = move.server;
        }
        uint64_t load[4] = {0}, most = 0, least = UINT64_MAX;
        for (unsigned i = 0; i < 20; i++)
            load[p[i].server] += p[i].ns;
        for (unsigned i = 0; i < 4; i++) {
            most = load[i] > most ? load[i] : most;
            least = load[i] < least ? load[i] : least;
        }
        ck_assert_uint_le(most - least, 1000 + most / 8); /* no mutex is longer than 1000 */
    }
}
