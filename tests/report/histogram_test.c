/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report's histograms and tables: percentiles against sorted values, entries against a list. */
#include <stdlib.h>
#include <string.h>

#include "histogram.h"
#include "lib/suite.h"
#include "table.h"

static int ascending(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Of values over nine decades, and of values close to each other. */
TEST_EACH(percentiles_are_right_to_1_6_percent, 6) {
    enum { N = 20000 };
    static uint64_t values[N];
    static const double parts[] = {0.01, 0.25, 0.5, 0.9, 0.99, 0.999};
    struct rep_histogram h = {0};
    uint64_t state = 7, sum = 0;
    for (int i = 0; i < N; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (state >> 20) >> (state >> 33) % (number % 2 == 0 ? 40 : 3);
        sum += values[i];
        rep_histogram_add(&h, values[i]);
    }
    qsort(values, N, sizeof *values, ascending);
    double exact = (double)values[(int)(parts[number] * N)], got = rep_histogram_quantile(&h, parts[number]);
    ck_assert_msg(got > exact * 0.984 - 1 && got < exact * 1.016 + 1, "%f instead of %f", got, exact);
    ck_assert_uint_eq(h.n, N);
    ck_assert_uint_eq(h.ns, sum);
    ck_assert_uint_eq(h.min_ns, values[0]);
    ck_assert_uint_eq(h.max_ns, values[N - 1]);
    ck_assert_uint_eq(rep_histogram_count(&h, 0, UINT64_MAX), N);
    rep_histogram_free(&h);
}

TEST(one_value_is_its_own_percentile) {
    struct rep_histogram h = {0};
    rep_histogram_add(&h, 123457);
    ck_assert(rep_histogram_quantile(&h, 0.5) == 123457);
    ck_assert(rep_histogram_quantile(&h, 0.99) == 123457);
    ck_assert(rep_histogram_mean(&h) == 123457);
    rep_histogram_free(&h);
}

TEST(empty_histogram) {
    struct rep_histogram h = {0};
    ck_assert(rep_histogram_quantile(&h, 0.5) == 0);
    ck_assert(rep_histogram_mean(&h) == 0);
    rep_histogram_add_n(&h, 5, 0);
    ck_assert_uint_eq(h.n, 0);
    rep_histogram_free(&h);
}

struct entry {
    uint32_t key[2];
    uint64_t value;
};

TEST(table_keeps_what_was_put_in_up_to_its_bound) {
    enum { MOST = 1000 };
    struct rep_table t = {.key_bytes = 8, .entry_bytes = sizeof(struct entry), .most = MOST};
    for (uint32_t i = 0; i < MOST; i++) {
        const uint32_t key[2] = {i / 10, i % 10};
        struct entry *e = rep_table_get(&t, key);
        ck_assert_ptr_nonnull(e);
        ck_assert_uint_eq(e->value, 0);
        e->value = i + 1;
    }
    const uint32_t other[2] = {1000, 0};
    ck_assert_ptr_null(rep_table_get(&t, other));
    ck_assert_ptr_null(rep_table_find(&t, other));
    for (uint32_t i = 0; i < MOST; i++) {
        const uint32_t key[2] = {i / 10, i % 10};
        struct entry *e = rep_table_get(&t, key);
        ck_assert_ptr_nonnull(e);
        ck_assert_uint_eq(e->value, i + 1);
    }
    rep_table_free(&t);
}
