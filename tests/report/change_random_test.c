/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Changed traces at random: acquisitions of programs that wait for a condition, and files that say anything. */
#include <errno.h>
#include <stdlib.h>

#include "change.h"
#include "scene.h"

enum { MUTEX, OTHER, COND };

static uint64_t seed;

static void random_begin(uint64_t round) {
    seed = (round + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

static uint32_t below(uint32_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed % n);
}

static char path[64];

static int change(const struct rep_report *r, enum rep_cause cause, uint32_t object) {
    struct rep_advice advice = {
        .cause = cause, .object = object, .group = r->objects[object].group, .thread = REP_NONE, .site = REP_NONE};
    snprintf(path, sizeof path, "changed.%d.sbt", (int)getpid());
    return rep_change_refused(r, &advice) != NULL ? 0
                                                  : rep_change_write(shown.trace, r, &advice, true, path, NULL, NULL);
}

/* ---- programs ---- */

enum { N_THREADS = 6, N_STEPS = 400 };

/* What a thread does: it is outside, has the mutex, waits for the condition, or has been woken and waits for the mutex.
 */
static struct {
    enum { OUTSIDE, HOLDS, WAITS, WOKEN } place;
    double since_us;
    uint64_t signal;
} threads[N_THREADS];
static uint64_t n_acquired, n_signals;
static double now_us;
static bool is_held;

static void wake(uint32_t by) {
    bool all = below(2);
    signal_(by, now_us, COND, ++n_signals, all);
    for (uint32_t n = 0, i = below(N_THREADS); n < N_THREADS; n++, i = (i + 1) % N_THREADS)
        if (threads[i].place == WAITS) {
            threads[i].place = WOKEN;
            threads[i].signal = n_signals;
            n = all ? n : N_THREADS;
        }
}

static void step_within(uint32_t t) {
    switch (below(4)) {
    case 0:
        unlock(t, now_us, MUTEX);
        threads[t].place = OUTSIDE;
        is_held = false;
        break;
    case 1:
        wake(t);
        break;
    case 2:
        lock(t, now_us, now_us + 0.1, OTHER, 0, 1);
        break;
    default:
        threads[t].place = WAITS;
        threads[t].since_us = now_us;
        is_held = false;
        break;
    }
}

static void step(uint32_t t) {
    now_us += 10;
    if (threads[t].place == HOLDS) {
        step_within(t);
    } else if (threads[t].place != WAITS && !is_held) {
        n_acquired++;
        if (threads[t].place == WOKEN)
            wait_(t, threads[t].since_us, now_us, COND, threads[t].signal, MUTEX, n_acquired);
        else if (below(2))
            lock(t, now_us, now_us + 0.1, MUTEX, n_acquired, 1);
        else
            trylock(t, now_us, MUTEX, n_acquired, 0);
        threads[t].place = HOLDS;
        is_held = true;
    } else if (threads[t].place == OUTSIDE && below(4) == 0) {
        trylock(t, now_us, MUTEX, 0, EBUSY);
    }
}

/* Each number from 1 on is there once. */
static void check_numbers(uint64_t round) {
    static uint32_t times[N_STEPS + 2];
    struct sbt_trace_error error;
    struct sbt_trace_event e;
    struct sbt_trace *changed = sbt_trace_open(path, &error);
    uint64_t n = 0;
    ck_assert_msg(changed != NULL, "%s", error.reason);
    memset(times, 0, sizeof times);
    for (uint32_t t = 0; t < sbt_trace_info(changed)->n_threads; t++) {
        struct sbt_trace_cursor cursor;
        sbt_trace_cursor_begin(changed, t, &cursor);
        while (sbt_trace_next(&cursor, &e, &error) > 0) {
            bool waits = e.op == SBT_TRACE_COND_WAIT;
            bool locks = (e.op == SBT_TRACE_MUTEX_LOCK || e.op == SBT_TRACE_MUTEX_TRYLOCK) && e.object == MUTEX;
            uint64_t number = waits ? e.relock : e.order;
            if ((!waits && !locks) || e.result != 0)
                continue;
            ck_assert_uint_le(number, N_STEPS);
            times[number]++;
            n++;
        }
    }
    for (uint64_t k = 0; k <= n; k++)
        if (times[k] != (k > 0))
            ck_abort_msg("round %ju: acquisition %ju of %ju is there %u times", (uintmax_t)round, (uintmax_t)k,
                         (uintmax_t)n, times[k]);
    sbt_trace_close(changed);
}

TEST(acquisitions_that_are_left_have_no_gap) {
    for (uint64_t round = 0; round < 100; round++) {
        random_begin(round);
        memset(threads, 0, sizeof threads);
        n_acquired = n_signals = 0;
        now_us = 0;
        is_held = false;
        scene_begin();
        for (unsigned i = 0; i < N_STEPS; i++)
            step(below(N_THREADS));
        for (uint32_t t = 0; t < N_THREADS; t++)
            if (threads[t].place == OUTSIDE || threads[t].place == HOLDS)
                end(t, now_us + 100);
        const struct rep_report *r = scene_report();
        if (r->info.n_objects > COND && r->objects[COND].type == SBT_TRACE_COND) {
            ck_assert_int_eq(change(r, below(2) ? REP_BROADCAST_STORM : REP_FUTILE_WAKEUPS, COND), 0);
            check_numbers(round);
        }
        unlink(path);
        scene_end();
    }
}

/* ---- files that say anything ---- */

static uint64_t any_number(void) {
    switch (below(8)) {
    case 0:
        return UINT64_MAX - below(3);
    case 1:
        return UINT64_C(1) << below(64);
    default:
        return below(12);
    }
}

static struct sbt_trace_event any_event(void) {
    static const uint16_t results[] = {0, 0, 0, 0, EBUSY, ETIMEDOUT, EOWNERDEAD, EINVAL};
    static const uint8_t usual[] = {SBT_TRACE_MUTEX_LOCK,     SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_COND_WAIT,
                                    SBT_TRACE_COND_BROADCAST, SBT_TRACE_BARRIER_WAIT, SBT_TRACE_COND_SIGNAL};
    static const uint8_t type_of_usual[] = {SBT_TRACE_MUTEX, SBT_TRACE_MUTEX,   SBT_TRACE_COND,
                                            SBT_TRACE_COND,  SBT_TRACE_BARRIER, SBT_TRACE_COND};
    uint32_t i = below(sizeof usual);
    bool any = below(4) == 0;
    return (struct sbt_trace_event){.op = any ? (uint8_t)below(SBT_TRACE_N_OPS) : usual[i],
                                    .type = any ? (uint8_t)below(SBT_TRACE_N_TYPES) : type_of_usual[i],
                                    .object = below(20) == 0 ? SBT_TRACE_NONE : below(5),
                                    .other = below(5) == 0 ? SBT_TRACE_NONE : below(5),
                                    .site = SBT_TRACE_NONE,
                                    .order = any_number(),
                                    .relock = any_number(),
                                    .size = below(5),
                                    .result = results[below(sizeof results / sizeof *results)],
                                    .work_ns = below(300) * 1000};
}

/* They are changed, or refused as damaged. */
TEST(any_trace_is_changed_or_refused) {
    for (uint64_t round = 0; round < 100; round++) {
        random_begin(round);
        scene_begin();
        for (unsigned i = 1 + below(100); i > 0; i--) {
            uint32_t t = below(4);
            struct sbt_trace_event e = any_event();
            e.took_ns = below(300) * 1000;
            e.at_ns = us_to_ns(scene.ended_us[t]) + e.work_ns + below(2) * below(400) * 1000;
            if (sbt_trace_append(scene.writer, t, &e) == 0)
                scene.ended_us[t] = (double)(e.at_ns + e.took_ns) / 1000;
        }
        struct sbt_trace_error error = {.offset = 0};
        (void)sbt_trace_finish(scene.writer);
        shown.trace = sbt_trace_open(shown.path, &error);
        shown.report =
            shown.trace != NULL ? rep_analyse(shown.trace, (struct rep_region){.size = 0}, NULL, NULL, &error) : NULL;
        for (unsigned cause = 0; shown.report != NULL && cause < REP_N_CAUSES; cause++)
            for (uint32_t o = 0; o < shown.report->info.n_objects; o++) {
                int got = change(shown.report, cause, o);
                if (got != 0 && got != EILSEQ)
                    ck_abort_msg("round %ju, cause %u, object %u: %s", (uintmax_t)round, cause, o, strerror(got));
            }
        unlink(path);
        rep_free(shown.report);
        if (shown.trace != NULL)
            sbt_trace_close(shown.trace);
        unlink(shown.path);
    }
}
