/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program of tests, most of which do not pass; lib.sh knows which. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "lib/processes.h"
#include "lib/suite.h"
#include "lib/threads.h"

static int two = 2;

TEST(passes, "nothing is wrong") {
    CHECK_INT(two, 2);
}

TEST(passes_without_a_text) {
    ck_assert_int_eq(two, 2);
}

TEST(fails, "by a check") {
    CHECK_INT(two, 3);
    _exit(0);
}

TEST(fails_by_check, "by an assertion of Check") {
    ck_assert_int_eq(two, 3);
}

static void *fail_there(void *unused) {
    FAIL("there");
    return unused;
}

TEST(fails_in_a_thread, "which nothing joins") {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fail_there, NULL) == 0)
        for (;;)
            pause();
}

static void fail_in_child(void *unused) {
    fail_there(unused);
}

TEST(fails_in_a_child, "by its parent") {
    run_in_child(fail_in_child, NULL);
}

TEST(dies, "of a signal") {
    raise(SIGKILL);
}

TEST(hangs, "longer than a test may take") {
    for (;;)
        pause();
}

TEST(is_skipped, "with a reason") {
    SKIP_IF(two == 3, "not for this");
    SKIP_IF(two == 2, "two is two");
    FAIL("not skipped");
}

static void skip_in_child(void *unused) {
    (void)unused;
    test_skip("from below");
}

TEST(skips_in_a_child, "which cannot say so") {
    run_in_child(skip_in_child, NULL);
}

TEST_EACH(every_number, two + 1, "but the second") {
    CHECK(number != 1);
}
