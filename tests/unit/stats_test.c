/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Medians, quartiles, extremes and ratios of the command's measurements. */
#include "command.h"
#include "lib/suite.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>

void *cmd_allocate(size_t n, size_t size) {
    return calloc(n, size);
}

static void ck_stats(struct stats s, double min, double q1, double median, double q3, double max) {
    ck_assert_double_eq_tol(s.min, min, 1e-9);
    ck_assert_double_eq_tol(s.q1, q1, 1e-9);
    ck_assert_double_eq_tol(s.median, median, 1e-9);
    ck_assert_double_eq_tol(s.q3, q3, 1e-9);
    ck_assert_double_eq_tol(s.max, max, 1e-9);
}

TEST(odd_number_of_samples__quartiles_are_samples) {
    ck_stats(stats_of((double[]){5, 1, 4, 2, 3}, 5), 1, 2, 3, 4, 5);
}

TEST(even_number_of_samples__median_is_the_mean_of_two) {
    ck_stats(stats_of((double[]){4, 1, 3, 2}, 4), 1, 1.75, 2.5, 3.25, 4);
}

TEST(quartiles_lie_between_two_samples_in_proportion) {
    ck_stats(stats_of((double[]){0, 10, 20, 40, 80, 160}, 6), 0, 12.5, 30, 70, 160);
}

TEST(a_single_sample_is_all_five) {
    ck_stats(stats_of((double[]){7}, 1), 7, 7, 7, 7, 7);
}

TEST(two_samples) {
    ck_stats(stats_of((double[]){8, 4}, 2), 4, 5, 6, 7, 8);
}

TEST(samples_keep_their_order_in_the_callers_array) {
    double samples[] = {3, 1, 2};
    stats_of(samples, 3);
    ck_assert(samples[0] == 3 && samples[1] == 1 && samples[2] == 2);
}

TEST(no_samples__all_are_nan) {
    struct stats s = stats_of(NULL, 0);
    ck_assert(isnan(s.median) && isnan(s.min) && isnan(s.max) && isnan(s.q1) && isnan(s.q3));
}

TEST(an_outlier_moves_the_maximum_alone) {
    ck_stats(stats_of((double[]){1, 2, 3, 4, 1e9}, 5), 1, 2, 3, 4, 1e9);
}

TEST(ratio__of_medians_with_the_extremes_of_pairs) {
    struct stats r = stats_ratio((double[]){10, 20, 30}, (double[]){5, 5, 10}, 3);
    ck_assert_double_eq_tol(r.median, 4, 1e-9);
    ck_assert_double_eq_tol(r.min, 2, 1e-9);
    ck_assert_double_eq_tol(r.max, 4, 1e-9);
    ck_assert(isnan(r.q1) && isnan(r.q3));
}
