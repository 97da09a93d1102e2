/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The area model: Tables VIII and IX at the paper's chip, and how it grows away from it. */
#include "area.h"
#include "lib/suite.h"

static void ck_truncates_to(double ours, double paper, double digit) {
    ck_assert_msg(ours >= paper - digit * 0.001 && ours < paper + digit, "ours %.5f, the paper's %.5f", ours, paper);
}

/* The paper cuts digits off instead of rounding. */
TEST(table_viii) {
    struct area a = area_of(1024);
    ck_assert_double_eq_tol(a.ni + a.fsm + a.spm, 19867.44, 0.005);
    ck_assert_double_eq_tol(a.spm, 3702.00, 0.005);
    ck_assert_double_eq_tol(a.spm_linear, 3702.00, 0.005);
    ck_truncates_to(area_overhead(a.fsm, a.ni), 19, 1);
    ck_truncates_to(area_overhead(a.spm, a.ni), 27, 1);
    ck_truncates_to(area_overhead(a.fsm + a.spm, a.ni), 46, 1);
}

TEST(table_ix) {
    struct area a = area_of(1024);
    ck_truncates_to(area_of_chip(a.fsm + a.spm, 64, 400), 0.101, 0.001);
    ck_truncates_to(area_of_chip(a.ni + a.fsm + a.spm, 64, 400), 0.317, 0.001);
    for (uint32_t i = 0; i < area_n_others; i++) {
        double um2 = (area_others[i].core_mm2 + area_others[i].additional_mm2) * 1e6;
        double paper = area_others[i].paper_percent;
        /* Notifying Memories: 64 * 0.00534 / 400 is 0.085 %; the paper's 0.008 is a slip of a digit. */
        if (paper == 0.008)
            ck_assert_double_eq_tol(area_of_chip(um2, 64, 400), 0.08544, 1e-9);
        else
            ck_truncates_to(area_of_chip(um2, 64, 400), paper, 0.001);
    }
}

TEST(least_scratchpad) {
    ck_assert_uint_eq(area_least_spm_bytes(64), 516); /* section V-A */
    ck_assert_uint_eq(area_least_spm_bytes(1), 12);
    ck_assert_uint_eq(area_least_spm_bytes(1024), 12 + 1023 * 8);
}

/* Between what sides and what bits would make it, both ways from the paper's point; more is never smaller. */
TEST(growth) {
    double last = 0;
    for (uint64_t bytes = 128; bytes <= 131072; bytes *= 2) {
        struct area a = area_of(bytes);
        ck_assert_double_gt(a.spm, last);
        ck_assert_double_eq_tol(a.spm_linear, 3702.0 * (double)bytes / 1024, 0.01);
        if (bytes < 1024)
            ck_assert_double_gt(a.spm, a.spm_linear);
        if (bytes > 1024)
            ck_assert_double_lt(a.spm, a.spm_linear);
        ck_assert_double_eq(a.fsm, area_of(1024).fsm);
        last = a.spm;
    }
    ck_assert_double_eq_tol(area_of_chip(area_of(1024).ni, 128, 400), 2 * area_of_chip(area_of(1024).ni, 64, 400),
                            1e-12);
}
