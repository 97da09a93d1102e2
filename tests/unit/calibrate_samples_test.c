/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Batches of calibrate: how many operations one has. */
#include "calibrate.h"
#include "lib/suite.h"

#include <stdlib.h>

static uint64_t largest;
static int n_calls, interrupted; /* the first calls, which the thread's loss of its CPU makes long */

#undef fail /* Check has a macro of that name */
_Noreturn void fail(const char *format, ...) {
    (void)format;
    abort();
}

static void compute(uint64_t ns) {
    uint64_t end = now_ns() + ns;
    while (now_ns() < end)
        ;
}

static void microseconds(uint64_t n) {
    largest = n > largest ? n : largest;
    compute(n * 1000);
    if (n_calls++ < interrupted)
        compute(1000000);
}

static uint64_t batch_of(int n_interrupted) {
    largest = 0, n_calls = 0, interrupted = n_interrupted;
    samples_of_batches("microseconds", 0.001, microseconds);
    return largest;
}

TEST(batch_is_long, "against reading the clock, also if the thread loses its CPU in the first ones") {
    ck_assert_uint_ge(batch_of(0), 32); /* 128 where nothing comes in between */
    ck_assert_uint_ge(batch_of(1), 32);
    ck_assert_uint_ge(batch_of(2), 32);
}
