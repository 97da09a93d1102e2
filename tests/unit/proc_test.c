/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel says of the machine's threads (os/proc.c). */
#include <pthread.h>
#include <stdatomic.h>

#include "lib/suite.h"
#include "os/proc.h"

TEST(runnable_threads_are_before_the_stroke) {
    ck_assert_uint_eq(sbt_proc_runnable_in("0.10 0.20 0.30 3/100 4711\n"), 3);
    ck_assert_uint_eq(sbt_proc_runnable_in("128.10 99.20 0.30 1234/56789 4711\n"), 1234);
    ck_assert_uint_eq(sbt_proc_runnable_in("7/8"), 7);
}

TEST(text_of_another_form_says_nothing) {
    static const char *const texts[] = {"",          "0.10 0.20 0.30",         "/",
                                        "0.10 /100", "0.10 0.20 0.30 x/100 1", "0.00 0.00 0.00 0/0 0"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_uint_eq(sbt_proc_runnable_in(texts[i]), 0);
}

TEST(time_that_a_thread_has_used_is_on_a_processor_and_in_wait_for_one) {
    static const char *const others[] = {"", "0 0 0\n", "17", "17 ", "x 1 1", "17 x"};
    uint64_t cpu_ns = 0, queued_ns = 0;
    ck_assert(sbt_proc_used_in("986686 2000 1\n", &cpu_ns, &queued_ns));
    ck_assert_uint_eq(cpu_ns, 986686);
    ck_assert_uint_eq(queued_ns, 2000);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert(!sbt_proc_used_in(others[i], &cpu_ns, &queued_ns));
}

static atomic_bool stops;

static void *run(void *argument) {
    while (!stops) {
    }
    return argument;
}

/* Where the kernel says it at all: sandboxes have a file of zeros, or none. */
TEST(here_the_caller_and_its_threads_are_among_them) {
    pthread_t thread[2];
    uint32_t n = sbt_proc_n_runnable(), most = n;
    SKIP_IF(n == 0, "no /proc/loadavg");
    for (int i = 0; i < 2; i++)
        OK(pthread_create(&thread[i], NULL, run, NULL));
    for (int i = 0; i < 1000000 && most < 3; i++)
        most = sbt_proc_n_runnable();
    stops = true;
    for (int i = 0; i < 2; i++)
        OK(pthread_join(thread[i], NULL));
    ck_assert_uint_ge(most, 3);
}
