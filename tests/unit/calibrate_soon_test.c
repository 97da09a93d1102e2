/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ladders of calibrate: when a CPU without a thread is idle. */
#include "calibrate.h"
#include "lib/suite.h"

/* In the order of samples_new(): idle_entry_ns, wake_soon_ns, latency_soon_ns. */
struct samples {
    const char *key;
    size_t n;
    double first, sum;
};
static struct samples entry_wake_latency[3];
static size_t n_series;

struct samples *samples_new(const char *key) {
    ck_assert_uint_lt(n_series, 3);
    entry_wake_latency[n_series] = (struct samples){.key = key};
    return &entry_wake_latency[n_series++];
}

void samples_add(struct samples *s, double value) {
    s->first = s->n++ == 0 ? value : s->first;
    s->sum += value;
}

static const struct samples *soon(const struct ladder *ladders, size_t n, double idle_ns) {
    n_series = 0;
    soon_of(ladders, n, idle_ns);
    ck_assert_str_eq(entry_wake_latency[0].key, "idle_entry_ns");
    ck_assert_str_eq(entry_wake_latency[1].key, "wake_soon_ns");
    ck_assert_str_eq(entry_wake_latency[2].key, "latency_soon_ns");
    return entry_wake_latency;
}

static void expect_none(const struct samples *s) {
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(s[i].n, 0);
}

enum { N = 5 };

/*
 * A CPU that is idle after entry_ns, and 10 us later the thread runs. A wake-up before that costs 1 us, else 6 us. The
 * first two pauses are too short for the sleeper.
 */
static struct ladder *ladders_of(uint64_t entry_ns, bool sleeps) {
    static struct ladder ladders[N];
    for (size_t k = 0; k < N; k++)
        for (size_t i = 0; i < N_LADDER_STEPS; i++) {
            bool soon = ladder_pause_ns(i) < entry_ns;
            ladders[k].slept[i] = i > 1 && (sleeps || !soon);
            ladders[k].wake_ns[i] = i <= 1 ? 200 : soon ? 1000 : 6000; /* no wake-up costs less than one */
            ladders[k].latency_ns[i] = soon ? (double)(entry_ns - ladder_pause_ns(i)) + 10000 : 25000;
        }
    return ladders;
}

TEST(the_share_of_soon_rounds_is_the_way_to_being_idle) {
    const struct samples *s = soon(ladders_of(8000, true), N, 6000);
    ck_assert_uint_eq(s[0].n, N); /* one a ladder */
    ck_assert_double_eq_tol(s[0].sum, N * 8000, 0.01);
    ck_assert_uint_eq(s[1].n, N * 38);
    ck_assert_double_eq_tol(s[1].sum, N * 38 * 1000, 0.01);
    ck_assert_uint_eq(s[2].n, N * 38);
    ck_assert_double_eq_tol(s[2].first, 10000, 0.01);
    ck_assert_double_eq_tol(s[2].sum, N * 38 * 10000, 0.1);
}

/* A cheap wake-up long after that, as of a thread that had another process's turn before, is no soon one. */
TEST(a_cheap_round_after_that_does_not_count) {
    struct ladder *ladders = ladders_of(8000, true);
    ladders[0].wake_ns[90] = 700;
    const struct samples *s = soon(ladders, N, 6000);
    ck_assert_double_eq_tol(s[0].first, 8200, 0.01); /* but in its ladder's share */
    ck_assert_double_eq_tol(s[0].sum, N * 8000 + 200, 0.01);
    ck_assert_uint_eq(s[1].n, N * 38);
    ck_assert_double_eq_tol(s[1].first, 1000, 0.01);
}

TEST(a_cpu_that_is_woken_for_as_much_when_it_is_idle) {
    expect_none(soon(ladders_of(8000, true), N, 2900));
    ck_assert_uint_eq(soon(ladders_of(8000, true), N, 3100)[0].n, N);
}

TEST(a_way_that_is_as_short_or_as_long_as_the_ladder) {
    expect_none(soon(ladders_of(800, true), N, 6000));
    expect_none(soon(ladders_of(19200, true), N, 6000));
    ck_assert_uint_eq(soon(ladders_of(18800, true), N, 6000)[0].n, N);
}

/* Of costs with few samples a file would say what chance says; of three costs that belong together none may lack. */
TEST(enough_samples_of_each_or_none) {
    struct ladder *ladders = ladders_of(8000, false); /* the sleepers came too late: none slept soon */
    expect_none(soon(ladders, N, 6000));
    for (size_t k = 0; k < N - 1; k++)
        ladders[k].slept[10] = true;
    expect_none(soon(ladders, N, 6000));
    ladders[N - 1].slept[10] = true;
    const struct samples *s = soon(ladders, N, 6000);
    ck_assert_uint_eq(s[0].n, N);
    ck_assert_uint_eq(s[1].n, N);
    ck_assert_uint_eq(s[2].n, N);
    ladders = ladders_of(8000, true);
    expect_none(soon(ladders, N - 1, 6000));
    expect_none(soon(ladders, 0, 6000));
}

/* A round that others disturbed may be back before the CPU can have been idle. */
TEST(no_latency_is_below_zero) {
    struct ladder *ladders = ladders_of(8000, true);
    for (size_t i = 0; i < N_LADDER_STEPS; i++)
        ladders[1].latency_ns[i] = 100;
    ck_assert_uint_eq(soon(ladders, N, 6000)[2].n, (N - 1) * 38);
}

/* Where another process has the CPU, a wake-up that does not interrupt it costs little after any pause. */
TEST(cheap_rounds_that_come_after_any_pause) {
    struct ladder *ladders = ladders_of(8000, true);
    for (size_t k = 0; k < N; k++)
        for (size_t i = 0; i < N_LADDER_STEPS; i++)
            ladders[k].wake_ns[i] = i % 4 == k % 4 ? 1000 : 6000;
    expect_none(soon(ladders, N, 6000));
}
