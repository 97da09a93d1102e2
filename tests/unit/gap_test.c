/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wake-ups that are spaced: what gap is found for machines that are made up, and that no sleeper is missed. Threads,
 * the kernel and the clock are real where they are needed; no test depends on how long anything takes.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/handlers.h"
#include "core/log.h"
#include "core/thread.h"
#include "lib/suite.h"
#include "os/clock.h"
#include "wait/gap_tuner.h"
#include "wait/wake_gap.h"

_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));

void sbt_handlers_deliver(void) {
    FAIL("no handler is deferred");
}

static atomic_int n_logs;
void sbt_log(unsigned verbosity, const char *first, ...) {
    CHECK_INT(verbosity, 2);
    CHECK(first != NULL);
    atomic_fetch_add(&n_logs, 1);
}

/* ---- the tuner ---- */
typedef uint64_t machine(uint32_t gap_ns); /* how long a release takes */

/* Releases until a search is over, 10000 at most. Returns how many, and checks what is tried. */
static int search(struct sbt_gap_tuner *t, uint32_t class, machine *takes, uint32_t *largest_ns) {
    *largest_ns = 0;
    for (int n = 1; n <= 10000; n++) {
        bool measured;
        const uint32_t gap_ns = sbt_gap_next(t, class, &measured);
        *largest_ns = gap_ns > *largest_ns ? gap_ns : *largest_ns;
        CHECK(measured);
        if (sbt_gap_learn(t, class, gap_ns, takes(gap_ns)))
            return n;
    }
    FAIL("the search does not end");
}

static uint32_t found(machine *takes, uint32_t class) {
    static struct sbt_gap_tuner t;
    uint32_t largest_ns;
    bool measured;
    memset(&t, 0, sizeof t);
    CHECK(search(&t, class, takes, &largest_ns) <= 5 + 7 * 11);
    const uint32_t gap_ns = sbt_gap_next(&t, class, &measured);
    CHECK(!measured);
    CHECK_INT(gap_ns, t.of[class].best_ns);
    return gap_ns;
}

static uint64_t same(uint32_t gap_ns) {
    (void)gap_ns;
    return 1000000;
}

static uint64_t gaps_cost(uint32_t gap_ns) {
    return 1000000 + 64 * (uint64_t)gap_ns;
}

static uint64_t best_at_5000(uint32_t gap_ns) {
    const int64_t off = (int64_t)gap_ns - 5000;
    return (uint64_t)(1000000 + (off < 0 ? -off : off) * 100);
}

static uint64_t a_little_better(uint32_t gap_ns) {
    return gap_ns == 2000 ? 910000 : 1000000;
}

static uint64_t noisy_best_at_2000(uint32_t gap_ns) {
    static uint32_t n;
    const uint64_t noise = ++n % 5 == 0 ? 50000000 : n % 7 * 1000;
    return noise + (gap_ns == 2000 ? 500000 : 1000000);
}

TEST(tuner__keeps_no_gap_unless_one_is_better_by_a_tenth) {
    CHECK_INT(found(same, 5), 0);
    CHECK_INT(found(gaps_cost, 5), 0);
    CHECK_INT(found(a_little_better, 5), 0);
}

TEST(tuner__finds_the_best_gap, "of each class by itself; seldom disturbances do not matter") {
    CHECK_INT(found(best_at_5000, 5), 5000);
    CHECK_INT(found(best_at_5000, 0), 5000);
    CHECK_INT(found(noisy_best_at_2000, 5), 2000);
    struct sbt_gap_tuner t = {0};
    uint32_t largest_ns;
    search(&t, 3, best_at_5000, &largest_ns);
    search(&t, 4, same, &largest_ns);
    CHECK_INT(t.of[3].best_ns, 5000);
    CHECK_INT(t.of[4].best_ns, 0);
    CHECK_INT(t.of[3].median_ns[0], 1500000);
    CHECK_INT(t.of[3].median_ns[1], 1000000);
}

static uint64_t quick(uint32_t gap_ns) {
    return 20000 + 32 * (uint64_t)gap_ns;
}

TEST(tuner__does_not_try_gaps_that_cannot_pay, "32 gaps take at most twice as long as a release without") {
    struct sbt_gap_tuner t = {0};
    uint32_t largest_ns;
    CHECK(search(&t, 5, quick, &largest_ns) > 5 + 11);
    CHECK_INT(largest_ns, 1000);
    memset(&t, 0, sizeof t);
    search(&t, 9, quick, &largest_ns);
    CHECK_INT(largest_ns, 0);
}

TEST(tuner__searches_again_seldom) {
    struct sbt_gap_tuner t = {0};
    uint32_t largest_ns, before = 0;
    for (int i = 0; i < 4; i++) {
        search(&t, 5, i == 0 ? best_at_5000 : same, &largest_ns);
        uint32_t rest = 0;
        for (bool measured = false; !measured; rest++) {
            const uint32_t gap_ns = sbt_gap_next(&t, 5, &measured);
            CHECK_INT(gap_ns, measured ? 0 : i == 0 ? 5000 : 0);
            CHECK(rest < 1u << 21);
            if (!measured) /* is not asked for, and changes nothing */
                CHECK(!sbt_gap_learn(&t, 5, gap_ns, 1));
        }
        rest--; /* the last one was measured */
        CHECK_INT(rest, i == 0 ? 4096 : 2 * before);
        before = rest;
    }
}

TEST(tuner__gap_that_is_never_measured_does_not_hold_up_the_search) {
    struct sbt_gap_tuner t = {0};
    bool over = false, measured;
    int n = 0;
    for (; !over && n < 10000; n++) {
        const uint32_t gap_ns = sbt_gap_next(&t, 5, &measured);
        if (gap_ns != 2000)
            over = sbt_gap_learn(&t, 5, gap_ns, noisy_best_at_2000(gap_ns));
    }
    CHECK(over);
    CHECK_INT(t.of[5].best_ns, 0);
}

TEST(tuner__numbers_and_their_classes) {
    static const struct {
        uint32_t n, class;
    } of[] = {{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 2}, {63, 5}, {64, 6}, {512, 9}, {100000, 9}, {UINT32_MAX, 9}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        CHECK_INT(sbt_gap_class_of(of[i].n), of[i].class);
}

/* ---- wake-ups ---- */
enum { SLEEPERS = 12 };
static uint32_t word;
static atomic_int n_awake;

static void *sleep_on_word(void *bits) {
    const long r = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, (uint32_t)(uintptr_t)bits);
    CHECK_INT(r, 0);
    sbt_wake_gap_woken(&word);
    atomic_fetch_add(&n_awake, 1);
    return NULL;
}

static pthread_t sleeper[SLEEPERS];

/* All of them sleep when this returns: to move them to their own word tells how many there are. */
static void begin_sleepers(int n, uint32_t bits) {
    for (int i = 0; i < n; i++)
        OK(pthread_create(&sleeper[i], NULL, sleep_on_word, (void *)(uintptr_t)bits));
    for (;;) {
        long there = syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)SLEEPERS, &word, 0);
        if (there == n)
            return;
        usleep(1000);
    }
}

static void end_sleepers(int n) {
    for (int i = 0; i < n; i++)
        OK(pthread_join(sleeper[i], NULL));
}

static void release(int n_sleeping, int n, long woken) {
    atomic_store(&n_awake, 0);
    begin_sleepers(n_sleeping, FUTEX_BITSET_MATCH_ANY);
    CHECK_INT(sbt_wake_gap_wake(&word, n, FUTEX_BITSET_MATCH_ANY), woken);
    if (woken < n_sleeping)
        CHECK_INT(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0), n_sleeping - woken);
    end_sleepers(n_sleeping);
    CHECK_INT(sbt_self.handlers_held, 0);
}

TEST(wake__all_sleepers_whatever_was_expected, "as many as before, more, fewer, none") {
    sbt_wake_gap_start(2000);
    CHECK(sbt_wake_gap_on);
    static const int n[] = {4, 4, 12, 12, 3, 3, 1, 1, 2, 7};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        release(n[i], INT32_MAX, n[i]);
        CHECK_INT(sbt_wake_gap_wake(&word, INT32_MAX, FUTEX_BITSET_MATCH_ANY), 0);
    }
}

TEST(wake__no_more_than_asked_for) {
    sbt_wake_gap_start(2000);
    release(8, 8, 8);
    release(8, 5, 5);
    release(8, 1, 1);
    release(8, 2, 2);
    release(3, 8, 3);
}

TEST(wake__only_sleepers_with_those_bits) {
    sbt_wake_gap_start(2000);
    release(6, 6, 6);
    atomic_store(&n_awake, 0);
    begin_sleepers(6, 2);
    CHECK_INT(sbt_wake_gap_wake(&word, INT32_MAX, 1), 0);
    CHECK_INT(atomic_load(&n_awake), 0);
    CHECK_INT(sbt_wake_gap_wake(&word, INT32_MAX, 3), 6);
    end_sleepers(6);
}

TEST(wake__address_that_is_gone, "the kernel's error, or none: no crash") {
    sbt_wake_gap_start(2000);
    release(4, INT32_MAX, 4);
    CHECK_INT(sbt_wake_gap_wake((uint32_t *)1, INT32_MAX, FUTEX_BITSET_MATCH_ANY), -EINVAL);
    CHECK(sbt_wake_gap_wake((uint32_t *)4, INT32_MAX, FUTEX_BITSET_MATCH_ANY) <= 0);
}

TEST(wake__off_unless_asked_for) {
    CHECK(!sbt_wake_gap_on);
    sbt_wake_gap_start(0);
    CHECK(!sbt_wake_gap_on);
    release(4, INT32_MAX, 4);
    CHECK_INT(sbt_wake_gap_between(10), 0);
}

TEST(between__gap_of_wakers_with_a_list) {
    sbt_wake_gap_start(7000);
    CHECK_INT(sbt_wake_gap_between(0), 0);
    CHECK_INT(sbt_wake_gap_between(1), 0);
    CHECK_INT(sbt_wake_gap_between(2), 7000);
    sbt_wake_gap_start(SBT_WAKE_GAP_AUTO);
    CHECK_INT(sbt_wake_gap_between(2), 0);
}

TEST(pause__lasts_as_long_at_least) {
    static const uint32_t ns[] = {0, 1000, 100000};
    for (size_t i = 0; i < 3; i++) {
        const uint64_t begin = sbt_now_ns();
        sbt_wake_gap_pause(ns[i]);
        CHECK(sbt_now_ns() - begin >= ns[i]);
    }
}

TEST(auto__says_what_it_has_found, "after some releases of sleepers, each of which was measured") {
    sbt_wake_gap_start(SBT_WAKE_GAP_AUTO);
    for (int i = 0; i < 400 && atomic_load(&n_logs) == 0; i++)
        release(3, INT32_MAX, 3);
    CHECK_INT(atomic_load(&n_logs), 1);
}

TEST(auto__forked_child_measures_anew, "its parent's release is over for it") {
    sbt_wake_gap_start(SBT_WAKE_GAP_AUTO);
    release(3, INT32_MAX, 3);
    sbt_wake_gap_fork_child();
    for (int i = 0; i < 400 && atomic_load(&n_logs) == 0; i++)
        release(3, INT32_MAX, 3);
    CHECK_INT(atomic_load(&n_logs), 1);
}
