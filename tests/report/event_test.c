/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions, semaphores, barriers, threads and the critical path in the report. Values are worked out by hand. */
#include <errno.h>
#include <string.h>

#include "change.h"
#include "scene.h"

enum { MUTEX, COND, BARRIER, SEM };

/* The signal comes at 500, the signaller gives the mutex back at 520, the waiter has it at 530. */
TEST(condition_wait_is_split_at_the_signal) {
    scene_begin();
    lock(1, 9.9, 10, MUTEX, 1, 1);
    wait_(1, 20, 530, COND, 1, MUTEX, 3);
    unlock(1, 540, MUTEX);
    end(1, 600);
    lock(0, 399.9, 400, MUTEX, 2, 1);
    signal_(0, 500, COND, 1, false);
    unlock(0, 520, MUTEX);
    end(0, 550);
    const struct rep_report *r = scene_report();
    const struct rep_times *t = &r->threads[1].times;
    CHECK_US(t->waiting[REP_COND].ns, 500 - 20);
    CHECK_US(t->waiting[REP_RELOCK].ns, 530 - 500);
    CHECK_US(waited_for(r, 1, 0, COND), 480);
    CHECK_US(waited_for(r, 1, 0, MUTEX), 30);
    CHECK_US(t->sections.held_ns, 10 + 10); /* it does not hold the mutex while it waits */
    CHECK_US(r->objects[MUTEX].hold_ns, 10 + 10 + 120);
    ck_assert_uint_eq(r->objects[MUTEX].n, 3);
    ck_assert_uint_eq(r->objects[COND].n_signals, 1);
    ck_assert_uint_eq(r->objects[COND].mutex, MUTEX);
    CHECK_US(t->idle_ns, 480);
    scene_end();
}

/* Signalled without the mutex: no thread had it, so all of it is the condition's. */
TEST(condition_wait_without_a_wait_for_the_mutex) {
    scene_begin();
    lock(1, 9.9, 10, MUTEX, 1, 1);
    wait_(1, 20, 530, COND, 1, MUTEX, 2);
    unlock(1, 540, MUTEX);
    end(1, 600);
    signal_(0, 500, COND, 1, false);
    end(0, 550);
    const struct rep_report *r = scene_report();
    CHECK_US(r->threads[1].times.waiting[REP_COND].ns, 510);
    ck_assert_uint_eq(r->threads[1].times.waiting[REP_RELOCK].n, 0);
    CHECK_US(r->threads[1].times.idle_ns, 480); /* from the signal on it wakes up */
    CHECK_US(r->objects[COND].path.wakeup_ns, 30);
    scene_end();
}

/* `number`: of the post, and of the wait that takes it. */
static void take(uint32_t thread, double from_us, double to_us, uint64_t number) {
    call(thread, from_us, to_us,
         (struct sbt_trace_event){
             .op = SBT_TRACE_SEM_WAIT, .type = SBT_TRACE_SEM, .object = SEM, .other = SBT_TRACE_NONE, .order = number});
}

static void give(uint32_t thread, double at_us, uint64_t number) {
    call(thread, at_us, at_us + 0.1,
         (struct sbt_trace_event){
             .op = SBT_TRACE_SEM_POST, .type = SBT_TRACE_SEM, .object = SEM, .other = SBT_TRACE_NONE, .order = number});
}

/* 0 and 1 take and give it in turn: that is a lock. With `worker`, 1 takes only: it waits for work. */
static uint64_t idle_at_semaphore(bool worker) {
    scene_begin();
    for (int i = 0; i < 8; i++) {
        double at_us = 1000.0 * i + 10;
        if (!worker)
            take(0, at_us, at_us + 1, 0);
        give(0, at_us + 500, 2 * (uint64_t)i + 1);
        take(1, at_us + 100, at_us + 501, 2 * (uint64_t)i + 1);
        if (!worker)
            give(1, at_us + 600, 2 * (uint64_t)i + 2);
    }
    end(0, 9000);
    end(1, 9000);
    const uint64_t idle_ns = scene_report()->threads[1].times.idle_ns;
    scene_end();
    return idle_ns;
}

static void made_with(uint32_t value) {
    call(0, 1, 1.1,
         (struct sbt_trace_event){
             .op = SBT_TRACE_INIT, .type = SBT_TRACE_SEM, .object = SEM, .other = SBT_TRACE_NONE, .size = value});
}

/* 0 and 1 hold it in turn, for 500 and 100. Behind that 0 takes it, 2 gives it back after 100, and 0 works for 2000. */
TEST(hold_ends_when_another_thread_gives_the_permit_back) {
    scene_begin();
    made_with(1);
    for (int i = 0; i < 20; i++) {
        double at_us = 1000.0 * i + 10;
        take(0, at_us, at_us + 1, 0);
        give(0, at_us + 501, 2 * (uint64_t)i + 1);
        take(1, at_us + 100, at_us + 502, 2 * (uint64_t)i + 1);
        give(1, at_us + 602, 2 * (uint64_t)i + 2);
    }
    take(0, 20010, 20011, 40);
    give(2, 20111, 41);
    lock(0, 22111, 22112, MUTEX, 1, 1);
    unlock(0, 22122, MUTEX);
    end(0, 23000);
    end(1, 20000);
    end(2, 20120);
    const struct rep_report *r = scene_report();
    ck_assert(r->objects[SEM].gives_back);
    ck_assert_uint_eq(r->objects[SEM].hold_n, 41);
    CHECK_US(r->objects[SEM].hold_ns, 20 * 600 + 100);
    CHECK_US(r->threads[0].times.sections.held_ns, 20 * 500 + 100 + 10);
    ck_assert_uint_lt(r->objects[SEM].path.held_ns, us_to_ns(20 * 600 + 100 + 1));
    scene_end();
}

/* Two threads take one each, by turns or at once. `value` at first, and `given` by a third thread. */
static bool is_a_lock(uint32_t value, int given) {
    scene_begin();
    if (value != 0)
        made_with(value);
    for (int i = 0; i < given; i++)
        give(2, 2 + i, 0);
    for (int i = 0; i < 60; i++)
        for (uint32_t thread = 0; thread < 2; thread++) {
            take(thread, 100.0 * i + 20 + 40 * thread, 100.0 * i + 21 + 40 * thread, 0);
            give(thread, 100.0 * i + 40 + 40 * thread, 0);
        }
    for (uint32_t thread = 0; thread < 3; thread++)
        end(thread, 7000);
    const bool is = scene_report()->objects[SEM].gives_back;
    scene_end();
    return is;
}

TEST(semaphore_of_several_permits_is_no_lock) {
    ck_assert(is_a_lock(1, 0));
    ck_assert(is_a_lock(0, 1));
    ck_assert(!is_a_lock(4, 0));
    ck_assert(!is_a_lock(0, 4));
    ck_assert(!is_a_lock(1, 1));
}

TEST(wait_for_a_semaphore_that_is_a_lock_is_not_idle) {
    ck_assert_uint_eq(idle_at_semaphore(false), 0);
    CHECK_US(idle_at_semaphore(true), 8 * 400);
}

/* 1 waits for work of 0 until 500; 2 waits from 300 to 700 for what 1 does then: 1 has kept it for 200. */
TEST(wait_that_keeps_another_thread_is_not_idle) {
    scene_begin();
    lock(1, 9.9, 10, MUTEX, 1, 1);
    wait_(1, 20, 510, COND, 1, MUTEX, 2);
    unlock(1, 520, MUTEX);
    call(1, 690, 690.1,
         (struct sbt_trace_event){
             .op = SBT_TRACE_SEM_POST, .type = SBT_TRACE_SEM, .object = SEM, .other = SBT_TRACE_NONE, .order = 1});
    end(1, 800);
    signal_(0, 500, COND, 1, false);
    end(0, 800);
    call(2, 300, 700,
         (struct sbt_trace_event){
             .op = SBT_TRACE_SEM_WAIT, .type = SBT_TRACE_SEM, .object = SEM, .other = SBT_TRACE_NONE, .order = 1});
    end(2, 800);
    const struct rep_report *r = scene_report();
    CHECK_US(r->threads[1].times.idle_ns, 480 - 200);
    CHECK_US(r->threads[2].times.idle_ns, 690 - 300); /* no thread waits for 2 */
    CHECK_US(waited_for(r, 2, 1, SEM), 400);
    scene_end();
}

/* A join waits for a thread's whole life, and makes none of its waits useful. */
TEST(join_keeps_no_thread_from_being_idle) {
    scene_begin();
    create(0, 5, 1);
    signal_(0, 500, COND, 1, false);
    join(0, 510, 900, 1);
    end(0, 950);
    lock(1, 29.9, 30, MUTEX, 1, 1);
    wait_(1, 40, 510, COND, 1, MUTEX, 2);
    wait_(1, 515, 700, COND, 0, MUTEX, 3); /* not ended by a signal */
    unlock(1, 710, MUTEX);
    end(1, 880);
    const struct rep_report *r = scene_report();
    CHECK_US(r->threads[1].times.idle_ns, 460 + 185);
    CHECK_US(r->threads[0].times.waiting[REP_JOIN].ns, 390);
    CHECK_US(waited_for(r, 0, 1, REP_NONE), 390);
    ck_assert_uint_eq(r->threads[1].creator, 0);
    ck_assert_uint_eq(r->threads[1].created_at, 94);
    CHECK_US(r->threads[1].begin_ns, 5);
    scene_end();
}

/* The join goes back to thread 1's end, thread 1 to its creation, and that to the beginning. Nothing is missing. */
TEST(path_goes_through_joins_and_creations) {
    scene_begin();
    create(0, 100, 1);
    join(0, 200, 900, 1);
    end(0, 1000);
    sleeps(50);
    end(1, 890); /* created at 100; the scene lets it work from 0 */
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->path.n_segments, 3);
    ck_assert_uint_eq(r->path.segments[0].thread, 0);
    CHECK_US(r->path.segments[0].to_ns, 100);
    ck_assert_uint_eq(r->path.segments[1].thread, 1);
    CHECK_US(r->path.segments[1].from_ns, 100);
    CHECK_US(r->path.segments[1].to_ns, 890);
    ck_assert_uint_eq(r->path.segments[2].kind, REP_JOIN);
    CHECK_US(r->path.ns, 1000);
    CHECK_US(r->path.wakeup_ns, 10);
    CHECK_US(r->threads[1].path_ns, 790);
    scene_end();
}

/* ---- wake-ups in vain ---- */

TEST(futile_wakeups_of_a_broadcast) {
    double at = 100;
    scene_begin();
    for (uint32_t t = 1; t <= 4; t++)
        lock(t, t - 0.1, t, MUTEX, t, 1);
    uint64_t taken = 4;
    for (uint64_t n = 1; n <= 5; n++, at += 100) {
        for (uint32_t t = 1; t <= 4; t++) {
            double from = n == 1 ? t + 0.2 : scene.ended_us[t] + 0.5;
            wait_(t, from, at + t, COND, n, MUTEX, ++taken);
            if (t == 1) { /* it gets what there is */
                unlock(t, at + t + 0.5, MUTEX);
                lock(t, at + 20, at + 20.1, MUTEX, ++taken, 1);
            }
        }
        signal_(0, at, COND, n, true);
    }
    for (uint32_t t = 0; t <= 4; t++)
        end(t, at);
    const struct rep_report *r = scene_report();
    const struct rep_object *o = &r->objects[COND];
    ck_assert_uint_eq(o->n_broadcasts, 5);
    ck_assert_uint_eq(o->n_woken_by_broadcast, 20);
    ck_assert_uint_eq(o->n_futile_broadcast, 3 * 4); /* three threads, but for the last round */
    ck_assert_uint_eq(o->n_futile_signal, 0);
    scene_end();
}

/* ---- barriers ---- */

/*
 * Three threads. First generation: arrivals at 100, 150, 300; leaving at 310, 320, 302. Second: 410, 420, 502 and 510,
 * 525, 503.
 */
TEST(barrier_is_split_at_its_last_arrival) {
    scene_begin();
    meet(0, 100, 310, BARRIER, 1, 3);
    meet(1, 150, 320, BARRIER, 1, 3);
    meet(2, 300, 302, BARRIER, 1, 3);
    meet(0, 410, 510, BARRIER, 2, 0);
    meet(1, 420, 525, BARRIER, 2, 0);
    meet(2, 502, 503, BARRIER, 2, 0);
    for (uint32_t t = 0; t < 3; t++)
        end(t, 600);
    const struct rep_report *r = scene_report();
    const struct rep_barrier *b = r->details[r->objects[BARRIER].detail].barrier;
    ck_assert_uint_eq(b->count, 3);
    ck_assert_uint_eq(b->n_generations, 2);
    CHECK_US(b->imbalance.ns, 200 + 92);
    CHECK_US(b->release.ns, 20 + 23);
    CHECK_US(b->release.max_ns, 23);
    CHECK_US(b->delay.ns, 10 + 20 + 2 + 8 + 23 + 1);
    /* Work of the generations: 100, 150, 300 and 100, 100, 200; the last one's minus the mean. */
    ck_assert_uint_eq(b->balance_ns, us_to_ns(300) - us_to_ns(550) / 3 + us_to_ns(200) - us_to_ns(400) / 3);
    for (uint32_t i = 0; i < b->n_threads; i++) {
        const struct rep_barrier_thread *t = &b->threads[i];
        ck_assert_uint_eq(t->n, 2);
        ck_assert_uint_eq(t->n_last, t->thread == 2 ? 2 : 0);
        ck_assert_uint_eq(t->n_first, t->thread == 0 ? 2 : 0);
        CHECK_US(t->late_ns, t->thread == 0 ? 0 : t->thread == 1 ? 50 + 10 : 200 + 92);
    }
    ck_assert_uint_eq(r->objects[BARRIER].n_contended, 4); /* the last one does not wait */
    CHECK_US(waited_for(r, 0, 2, BARRIER), 210 + 100);
    ck_assert_int_eq(r->advice[0].cause, REP_BARRIER_IMBALANCE);
    ck_assert_uint_eq(r->advice[0].thread, 2);
    scene_end();
}

/* In the generations from `first` to `last` the thread sleeps for slept_us, and works for the rest of late_us. */
struct lateness {
    uint64_t first, last;
    uint32_t thread;
    double late_us, slept_us;
};

/* Three threads meet so many times, each after 100 us of work, but for those that are late: at most one at a time. */
static const struct rep_report *late_threads(uint64_t n_generations, const struct lateness *late, size_t n_late) {
    scene_begin();
    double left = 0;
    for (uint64_t n = 1; n <= n_generations; n++) {
        struct lateness now = {.thread = REP_NONE};
        for (size_t i = 0; i < n_late; i++)
            if (n >= late[i].first && n <= late[i].last)
                now = late[i];
        for (uint32_t t = 0; t < 3; t++) {
            if (t == now.thread)
                sleeps(now.slept_us);
            meet(t, left + 100 + (t == now.thread ? now.late_us : 0), left + 102 + now.late_us, BARRIER, n,
                 n == 1 ? 3 : 0);
        }
        left += 102 + now.late_us;
    }
    for (uint32_t t = 0; t < 3; t++)
        end(t, left + 1);
    return scene_report();
}

static const struct rep_report *late_thread(uint64_t n_generations, uint64_t first, uint64_t last, double late_us,
                                            double slept_us) {
    return late_threads(n_generations, &(struct lateness){first, last, 2, late_us, slept_us}, 1);
}

static void is_stall(const struct rep_report *r, bool stall) {
    ck_assert_int_eq(advice_of(r, REP_BARRIER_STALL) != NULL, stall);
    ck_assert_int_eq(advice_of(r, REP_BARRIER_IMBALANCE) != NULL, !stall);
    scene_end();
}

TEST(thread_without_a_core_once_is_no_imbalance) {
    const struct rep_report *r = late_thread(12, 5, 5, 1000, 900);
    const struct rep_barrier *b = r->details[r->objects[BARRIER].detail].barrier;
    const struct rep_advice *a = advice_of(r, REP_BARRIER_STALL);
    ck_assert_ptr_null(advice_of(r, REP_BARRIER_IMBALANCE));
    ck_assert_ptr_nonnull(a);
    ck_assert_double_eq(a->value, 1);
    ck_assert_uint_eq(a->thread, 2);
    ck_assert_int_eq(a->basis, REP_BASIS_NONE);
    ck_assert_str_eq(rep_change_refused(r, a), "it is not the program that would be changed");
    ck_assert_uint_eq(b->n_stalled, 1);
    ck_assert_uint_eq(b->stalled_ns, us_to_ns(1100) - us_to_ns(1300) / 3);
    CHECK_US(b->stalled_imbalance_ns, 1000);
    scene_end();
}

TEST(thread_that_worked_longer_once_is_imbalance, "1100 us are 667 more than the mean: half of that is 333") {
    is_stall(late_thread(12, 5, 5, 1000, 330), false);
    is_stall(late_thread(12, 5, 5, 1000, 340), true);
}

TEST(thread_that_sleeps_often_is_imbalance, "more often than in one generation, and in a tenth of them") {
    is_stall(late_thread(3, 2, 2, 300, 300), true);
    is_stall(late_thread(20, 3, 4, 300, 300), true);
    is_stall(late_thread(19, 3, 4, 300, 300), false);
}

TEST(imbalance_of_two_that_are_late_as_often, "the first of them is named") {
    static const struct lateness late[] = {{1, 1, 1, 300, 0}, {2, 2, 0, 300, 0}};
    const struct rep_advice *a = advice_of(late_threads(2, late, 2), REP_BARRIER_IMBALANCE);
    ck_assert_ptr_nonnull(a);
    ck_assert_uint_eq(a->thread, 0);
    scene_end();
}

TEST(stalls_beside_imbalance, "the longest is thread 1's; thread 2 has slept once, and is late for work later") {
    static const struct lateness late[] = {{5, 5, 1, 1000, 900}, {9, 9, 2, 500, 500}, {13, 13, 2, 1000, 0}};
    const struct rep_report *r = late_threads(24, late, 3);
    const struct rep_barrier *b = r->details[r->objects[BARRIER].detail].barrier;
    const struct rep_advice *stall = advice_of(r, REP_BARRIER_STALL), *imbalance = advice_of(r, REP_BARRIER_IMBALANCE);
    ck_assert(stall != NULL && imbalance != NULL);
    ck_assert_uint_eq(b->n_stalled, 2);
    ck_assert_double_eq(stall->value, 2);
    ck_assert_uint_eq(stall->thread, 1);
    CHECK_US(b->imbalance.ns, 1000 + 500 + 1000);
    CHECK_US(b->stalled_imbalance_ns, 1000 + 500);
    CHECK_US((uint64_t)(imbalance->value * (double)r->path.ns + 0.5), 1000);
    ck_assert_uint_eq((uint64_t)imbalance->gain_ns, us_to_ns(1100) - us_to_ns(1300) / 3);
    scene_end();
}

/* All come at once and leave late, and so they come late the next time: that is no imbalance of theirs. */
TEST(late_release_is_not_taken_for_imbalance) {
    scene_begin();
    double left[4] = {10, 10, 10, 10};
    for (uint64_t n = 1; n <= 10; n++) {
        double last = 0, next[4];
        for (uint32_t t = 0; t < 4; t++)
            last = left[t] + 1 > last ? left[t] + 1 : last;
        for (uint32_t t = 0; t < 4; t++) {
            next[t] = last + 100 * (t + 1);
            meet(t, left[t] + 1, next[t], BARRIER, n, n == 1 ? 4 : 0);
        }
        memcpy(left, next, sizeof left);
    }
    for (uint32_t t = 0; t < 4; t++)
        end(t, left[t] + 1);
    const struct rep_report *r = scene_report();
    const struct rep_barrier *b = r->details[r->objects[BARRIER].detail].barrier;
    ck_assert_uint_eq(b->balance_ns, 0);
    CHECK_US(b->release.ns, 10 * 400);
    /* The last to arrive was the last to leave, and releases the others: all of it is the barrier's. */
    CHECK_US(r->objects[BARRIER].path.wakeup_ns, 10 * 400);
    ck_assert_int_eq(r->advice[0].cause, REP_BARRIER_RELEASE);
    ck_assert(r->advice[0].value > 394e3 && r->advice[0].value < 406e3);
    ck_assert_ptr_null(advice_of(r, REP_BARRIER_IMBALANCE));
    scene_end();
}

/* ---- what is idle, and what is nothing ---- */

TEST(idle_pool_is_no_contention) {
    scene_begin();
    for (uint32_t t = 1; t <= 4; t++) {
        lock(t, t - 0.1, t, MUTEX, t, 1);
        wait_(t, t + 0.5, 9000 + t, COND, t, MUTEX, 10 + t);
        unlock(t, 9000.5 + t, MUTEX);
        end(t, 9100);
    }
    for (uint32_t t = 1; t <= 4; t++)
        signal_(0, 8990 + t, COND, t, false);
    end(0, 9200);
    const struct rep_report *r = scene_report();
    ck_assert_int_eq(r->advice[0].cause, REP_IDLE);
    ck_assert_uint_eq(r->advice[0].object, COND);
    ck_assert_int_eq(r->advice[0].basis, REP_BASIS_NONE);
    ck_assert(rep_contention_ns(&r->times) < us_to_ns(50)); /* for the mutex, one after another */
    scene_end();
}

/* The one thread sleeps for 9000 of 10000 us; of the other one's life, which is as long, `idle_us` are idle. */
static enum rep_cause first_of_waste(double idle_us) {
    scene_begin();
    create(0, 10, 1);
    lock(1, 20, 20.1, MUTEX, 1, 1);
    wait_(1, 20.5, 20.5 + idle_us, COND, 1, MUTEX, 2);
    unlock(1, 21 + idle_us, MUTEX);
    signal_(0, 20 + idle_us, COND, 1, false);
    sleeps(9000 - idle_us);
    end(1, 9990);
    sleeps(9000 - idle_us);
    end(0, 10000);
    const enum rep_cause cause = scene_report()->advice[0].cause;
    scene_end();
    return cause;
}

TEST(larger_waste_is_the_first) {
    ck_assert_int_eq(first_of_waste(5500), REP_OFF_CPU);
    ck_assert_int_eq(first_of_waste(8500), REP_IDLE);
}

TEST(program_without_synchronization) {
    scene_begin();
    end(0, 1000);
    const struct rep_report *r = scene_report();
    ck_assert_ptr_nonnull(r->empty);
    ck_assert_ptr_nonnull(strstr(r->empty, "did not synchronize"));
    ck_assert_uint_eq(r->n_advice, 0);
    CHECK_US(r->wall_ns, 1000);
    scene_end();
}

TEST(threads_that_are_not_seen_to_synchronize) {
    scene_begin();
    create(0, 10, 1);
    end(0, 1000);
    const struct rep_report *r = scene_report();
    ck_assert_ptr_nonnull(r->empty);
    ck_assert_ptr_nonnull(strstr(r->empty, "other threads"));
    scene_end();
}

TEST(generated_trace_has_no_times) {
    scene_begin();
    ck_assert_int_eq(sbt_trace_finish(scene.writer), 0);
    scene.writer = sbt_trace_create(shown.path, "made up");
    end(0, 1000);
    const struct rep_report *r = scene_report();
    ck_assert_ptr_nonnull(r->empty);
    ck_assert_ptr_nonnull(strstr(r->empty, "generator"));
    scene_end();
}

/* ---- whatever happens ---- */

static uint64_t state = 1;

static double draw(double below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 40) / 16777216.0 * below;
}

/* Whatever a file says: any operation on any object, with any number, at any time. The sanitized build looks at it. */
TEST_EACH(any_events_can_be_analysed, 40) {
    state = (uint64_t)number + 100;
    scene_begin();
    for (int i = 0; i < 4000; i++) {
        uint32_t thread = (uint32_t)draw(5), objects = number % 2 == 0 ? 3 : 200;
        double from = scene.ended_us[thread] + draw(50);
        struct sbt_trace_event e = {.op = (uint8_t)draw(SBT_TRACE_N_OPS),
                                    .type = (uint8_t)draw(SBT_TRACE_N_TYPES),
                                    .object = (uint32_t)draw(objects),
                                    .other = draw(4) < 1 ? SBT_TRACE_NONE : (uint32_t)draw(5),
                                    .site = (uint32_t)draw(30),
                                    .order = draw(10) < 9 ? (uint64_t)draw(100) : (uint64_t)draw(1e18),
                                    .relock = (uint64_t)draw(100),
                                    .size = (uint32_t)draw(4),
                                    .result = draw(8) < 1 ? EBUSY : 0};
        call(thread, from, from + draw(40), e);
    }
    const struct rep_report *r = scene_report();
    ck_assert(r->path.n_segments > 0);
    ck_assert(r->path.ns <= r->wall_ns);
    scene_end();
}

TEST(times_that_no_clock_has_are_refused) {
    struct sbt_trace_error error = {.offset = 0};
    struct sbt_trace_event e = {.op = SBT_TRACE_MUTEX_LOCK,
                                .type = SBT_TRACE_MUTEX,
                                .other = SBT_TRACE_NONE,
                                .took_ns = UINT64_MAX / 2,
                                .at_ns = 10};
    scene_begin();
    ck_assert_int_eq(sbt_trace_append(scene.writer, 0, &e), 0);
    ck_assert_int_eq(sbt_trace_finish(scene.writer), 0);
    struct sbt_trace *trace = sbt_trace_open(shown.path, &error);
    ck_assert_ptr_nonnull(trace);
    ck_assert_ptr_null(rep_analyse(trace, (struct rep_region){.size = 0}, NULL, NULL, &error));
    ck_assert_ptr_nonnull(strstr(error.reason, "make no sense"));
    sbt_trace_close(trace);
    unlink(shown.path);
}

/* Threads that lock, wait and meet by the rules: what they did adds up to their lives, and the path to the program's
 * time. */
TEST_EACH(sums_are_whole, 20) {
    enum { N = 6, LOCKS = 5 };
    double free_us[LOCKS] = {0};
    uint64_t n_taken[LOCKS] = {0}, generation = 0;
    state = (uint64_t)number + 1;
    scene_begin();
    for (int round = 0; round < 2000; round++) {
        uint32_t t = 0;
        for (uint32_t i = 1; i < N; i++)
            t = scene.ended_us[i] < scene.ended_us[t] ? i : t;
        uint32_t m = (uint32_t)draw(LOCKS);
        double from = scene.ended_us[t] + 0.2 + draw(20);
        double got = from + 0.1 > free_us[m] ? from + 0.1 : free_us[m] + 0.2 + draw(5);
        lock(t, from, got, m, ++n_taken[m], m);
        free_us[m] = got + draw(10);
        unlock(t, free_us[m], m);
        if (round % 100 != 99)
            continue;
        double last = 0;
        for (uint32_t i = 0; i < N; i++)
            last = scene.ended_us[i] + 1 > last ? scene.ended_us[i] + 1 : last;
        generation++;
        for (uint32_t i = 0; i < N; i++)
            meet(i, scene.ended_us[i] + 1, last + 1 + draw(30), LOCKS, generation, generation == 1 ? N : 0);
    }
    for (uint32_t t = 0; t < N; t++)
        end(t, scene.ended_us[t] + draw(10));
    const struct rep_report *r = scene_report();
    uint64_t waited_ns = 0, pairs_ns = 0, object_ns = 0;
    for (uint32_t t = 0; t < N; t++) {
        const struct rep_times *times = &r->threads[t].times;
        uint64_t sum = times->cpu_ns + times->off_cpu_ns + times->calls_ns;
        for (unsigned k = 0; k < REP_N_KINDS; k++) {
            sum += times->waiting[k].ns;
            waited_ns += times->waiting[k].ns;
        }
        ck_assert_uint_eq(sum, times->life_ns);
        ck_assert(times->sections.held_ns <= times->sections.ns && times->sections.ns <= times->life_ns);
    }
    for (size_t i = 0; i < r->n_pairs; i++)
        pairs_ns += r->pairs[i].sum.ns;
    for (uint32_t i = 0; i < r->info.n_objects; i++)
        object_ns += r->objects[i].wait_ns;
    ck_assert_uint_eq(pairs_ns, waited_ns);
    ck_assert_uint_eq(object_ns, waited_ns);
    const struct rep_path *p = &r->path;
    ck_assert_uint_eq(p->ns, r->wall_ns);
    ck_assert_uint_eq(p->work_ns + p->off_cpu_ns + p->calls_ns + p->held_ns + p->wakeup_ns + p->waiting_ns, p->ns);
    uint64_t at = p->segments[0].from_ns;
    for (size_t i = 0; i < p->n_segments; i++) {
        ck_assert_uint_eq(p->segments[i].from_ns, at);
        at = p->segments[i].to_ns;
    }
    scene_end();
}
