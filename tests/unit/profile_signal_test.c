/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which signals of a condition may end a wait, as a profile knows it (observe/profile_signal.c), also if more threads
 * wait at once than it can count; and the threads that it says want the mutex.
 */
#include "lib/suite.h"
#include "observe/profile.h"

enum { MOST = 65535 }; /* threads that are told apart */

static char cond[64], mutex[64] __attribute__((aligned(8)));
static int64_t want; /* threads that have been signalled, and have not come back */

void rec_hint_relocks(uint32_t number, int32_t threads) {
    if (number != rec_hint_number((uintptr_t)mutex))
        ck_abort_msg("another mutex");
    want += threads;
}

static void setup(void) {
    rec_profile_forget_signals();
    want = 0;
}

static void begin(int n) {
    for (int i = 0; i < n; i++)
        rec_profile_begin_signals(cond, mutex);
}

static void come_back(int n) {
    for (int i = 0; i < n; i++)
        rec_profile_end_signals(cond, true);
}

/* How many of `n` signals are events. */
static int give(int n) {
    int events = 0;
    for (int i = 0; i < n; i++)
        events += rec_profile_gives_signal(cond, false);
    return events;
}

TEST(each_thread_has_one) {
    setup();
    begin(3);
    ck_assert_int_eq(give(2), 2);
    ck_assert_int_eq(want, 2);
    ck_assert_int_eq(give(3), 1);
    come_back(3);
    ck_assert_int_eq(want, 0);
    begin(2);
    ck_assert(rec_profile_gives_signal(cond, true));
    ck_assert_int_eq(give(1), 0);
    ck_assert_int_eq(want, 2);
}

/* Each of so many threads has its signal, and no more signals than these are events. */
TEST(many_threads) {
    static const int numbers[] = {8191, 8192, 20000, MOST - 1};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int n = numbers[i];
        setup();
        begin(n);
        ck_assert_int_eq(give(n), n);
        ck_assert_int_eq(give(10), 0);
        ck_assert_int_eq(want, n);
        come_back(n);
        ck_assert_int_eq(want, 0);
        begin(1);
        ck_assert_int_eq(give(2), 1);
    }
}

/* Of more it is not known which signals end a wait: all are events, and no thread is said to want the mutex. */
TEST(too_many_threads) {
    setup();
    begin(MOST - 1);
    ck_assert_int_eq(give(100), 100);
    begin(10);
    ck_assert_int_eq(want, 0);
    ck_assert_int_eq(give(MOST + 10), MOST + 10);
    come_back(MOST + 9);
    ck_assert_int_eq(give(1), 1);
    come_back(1);
    ck_assert_int_eq(want, 0);
    begin(1);
    ck_assert_int_eq(give(2), 2);
}
