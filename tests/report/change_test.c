/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces changed as an advice says: what each thread does in them, as text. A call has the number of its object, the
 * work before it in microseconds, and its result; a sleep has how long it lasts.
 */
#include <errno.h>
#include <string.h>

#include "change.h"
#include "scene.h"

enum { MUTEX, OTHER, COND, BARRIER };

static struct {
    struct sbt_trace *trace;
    char path[64], text[4096];
} changed;

/* Changes the scene that was called, and opens the result. */
static void change_scene(struct rep_advice advice, bool as_advised) {
    struct sbt_trace_error error = {.offset = 0};
    const struct rep_report *r = scene_report();
    snprintf(changed.path, sizeof changed.path, "changed.%d.sbt", (int)getpid());
    if (advice.cause == REP_MANY_LOCKS)
        advice.group = r->objects[advice.object].group;
    ck_assert_int_eq(rep_change_write(shown.trace, r, &advice, as_advised, changed.path, NULL, NULL), 0);
    changed.trace = sbt_trace_open(changed.path, &error);
    ck_assert_msg(changed.trace != NULL, "%s", error.reason);
}

static void change_end(void) {
    sbt_trace_close(changed.trace);
    unlink(changed.path);
    scene_end();
}

static struct rep_advice about(enum rep_cause cause, uint32_t object) {
    return (struct rep_advice){
        .cause = cause, .object = object, .group = REP_NONE, .thread = REP_NONE, .site = REP_NONE};
}

static const char *name_of(const struct sbt_trace_event *e) {
    static const char *const names[SBT_TRACE_N_OPS] = {[SBT_TRACE_MUTEX_LOCK] = "lock",
                                                       [SBT_TRACE_MUTEX_TRYLOCK] = "try",
                                                       [SBT_TRACE_MUTEX_UNLOCK] = "unlock",
                                                       [SBT_TRACE_THREAD_END] = "end"};
    bool sleep = e->op == SBT_TRACE_THREAD_JOIN && e->result == ETIMEDOUT;
    return sleep ? "sleep" : names[e->op] != NULL ? names[e->op] : sbt_trace_op_name(e->op);
}

/* All that the thread does: "lock 0 +100, unlock 0 +20, sleep 500, end +1". Work of less than a microsecond is left
 * out. */
static const char *does(uint32_t thread) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event e;
    struct sbt_trace_error error;
    size_t n = 0;
    changed.text[0] = '\0';
    sbt_trace_cursor_begin(changed.trace, thread, &cursor);
    while (sbt_trace_next(&cursor, &e, &error) > 0) {
        char *at = changed.text + n;
        size_t room = sizeof changed.text - n, k = 0;
        k += (size_t)snprintf(at + k, room - k, "%s%s", n > 0 ? ", " : "", name_of(&e));
        if (e.op == SBT_TRACE_THREAD_JOIN)
            k += (size_t)snprintf(at + k, room - k, " %ju", (uintmax_t)e.took_ns / 1000);
        else if (e.object != SBT_TRACE_NONE)
            k += (size_t)snprintf(at + k, room - k, " %u", e.object);
        if (e.op == SBT_TRACE_COND_WAIT)
            k += (size_t)snprintf(at + k, room - k, "/%u", e.other);
        if (e.work_ns >= 1000)
            k += (size_t)snprintf(at + k, room - k, " +%ju", (uintmax_t)e.work_ns / 1000);
        if (e.result == EBUSY)
            k += (size_t)snprintf(at + k, room - k, " busy");
        n += k;
        ck_assert_uint_lt(n, sizeof changed.text);
    }
    return changed.text;
}

#define DOES(thread, text) ck_assert_str_eq(does(thread), text)

/* The numbers of the thread's acquisitions of the mutex, by locks and by waits for conditions: "1 4". */
static const char *acquires(uint32_t thread, uint32_t mutex) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event e;
    struct sbt_trace_error error;
    size_t n = 0;
    changed.text[0] = '\0';
    sbt_trace_cursor_begin(changed.trace, thread, &cursor);
    while (sbt_trace_next(&cursor, &e, &error) > 0) {
        bool locks = e.op == SBT_TRACE_MUTEX_LOCK && e.object == mutex;
        if (locks || (e.op == SBT_TRACE_COND_WAIT && e.other == mutex))
            n += (size_t)snprintf(changed.text + n, sizeof changed.text - n, "%s%ju", n > 0 ? " " : "",
                                  (uintmax_t)(locks ? e.order : e.relock));
        ck_assert_uint_lt(n, sizeof changed.text);
    }
    return changed.text;
}

static void rwlock(uint32_t thread, double at_us, unsigned op, uint32_t object) {
    call(thread, at_us, at_us + 0.1,
         (struct sbt_trace_event){
             .op = (uint8_t)op, .type = SBT_TRACE_RWLOCK, .object = object, .other = SBT_TRACE_NONE, AT(91)});
}

static void spin(uint32_t thread, double at_us, unsigned op, uint32_t object) {
    call(thread, at_us, at_us + 0.1,
         (struct sbt_trace_event){
             .op = (uint8_t)op, .type = SBT_TRACE_SPIN, .object = object, .other = SBT_TRACE_NONE, AT(90)});
}

/* A lock by a call of 0.1 us. */
static void take(uint32_t thread, double at_us, uint32_t mutex, uint64_t number) {
    lock(thread, at_us, at_us + 0.1, mutex, number, 1);
}

/* ---- as it is ---- */

TEST(unchanged_trace_is_the_same) {
    scene_begin();
    take(0, 100, MUTEX, 1);
    trylock(0, 110, MUTEX, 0, EBUSY);
    unlock(0, 150, MUTEX);
    end(0, 160);
    change_scene(about(REP_HOT_LOCK, MUTEX), false);
    DOES(0, "lock 0 +100, try 0 +9 busy, unlock 0 +39, end +9");
    change_end();
}

/* Only of advice that is about sleeps, and only of gaps of 100 us or more. */
TEST(unchanged_trace_has_sleeps) {
    for (int i = 0; i < 2; i++) {
        scene_begin();
        take(0, 100, MUTEX, 1);
        sleeps(500);
        unlock(0, 700, MUTEX);
        sleeps(50);
        end(0, 800);
        change_scene(about(i == 0 ? REP_LOCK_OVER_IO : REP_HOT_LOCK, MUTEX), false);
        DOES(0, i == 0 ? "lock 0 +100, sleep 500, unlock 0 +99, end +49" : "lock 0 +100, unlock 0 +99, end +49");
        change_end();
    }
}

/* ---- a split lock ---- */

/* Parts 0 to 3 are object 0 and the three after the last one. Thread 1 begins with the second. */
TEST(split_lock_is_taken_in_turn) {
    scene_begin();
    for (uint32_t t = 0; t < 2; t++) {
        for (unsigned i = 0; i < 5; i++) {
            take(t, 10 * i + 5 + t, MUTEX, 2 * i + t + 1);
            unlock(t, 10 * i + 8 + t, MUTEX);
        }
        end(t, 60);
    }
    change_scene(about(REP_HOT_LOCK, MUTEX), true);
    DOES(0, "lock 0 +5, unlock 0 +2, lock 1 +6, unlock 1 +2, lock 2 +6, unlock 2 +2, lock 3 +6, unlock 3 +2, "
            "lock 0 +6, unlock 0 +2, end +11");
    DOES(1, "lock 1 +6, unlock 1 +2, lock 2 +6, unlock 2 +2, lock 3 +6, unlock 3 +2, lock 0 +6, unlock 0 +2, "
            "lock 1 +6, unlock 1 +2, end +10");
    change_end();
}

/* A trylock that fails takes no part, with the lock held or not. */
TEST(split_lock_is_given_back_where_it_was_taken) {
    scene_begin();
    take(0, 10, MUTEX, 1);
    trylock(0, 20, MUTEX, 0, EBUSY);
    unlock(0, 30, MUTEX);
    trylock(0, 40, MUTEX, 0, EBUSY);
    trylock(0, 50, MUTEX, 2, 0);
    unlock(0, 60, MUTEX);
    end(0, 70);
    change_scene(about(REP_HOT_LOCK, MUTEX), true);
    DOES(0, "lock 0 +10, try 0 +9 busy, unlock 0 +9, try 1 +9 busy, try 1 +9, unlock 1 +9, end +9");
    change_end();
}

TEST(split_lock_that_is_held_twice_is_one_part) {
    scene_begin();
    rwlock(0, 10, SBT_TRACE_RWLOCK_RDLOCK, 0);
    rwlock(0, 20, SBT_TRACE_RWLOCK_RDLOCK, 0);
    rwlock(0, 30, SBT_TRACE_RWLOCK_UNLOCK, 0);
    rwlock(0, 40, SBT_TRACE_RWLOCK_UNLOCK, 0);
    rwlock(0, 50, SBT_TRACE_RWLOCK_WRLOCK, 0);
    rwlock(0, 60, SBT_TRACE_RWLOCK_UNLOCK, 0);
    change_scene(about(REP_HOT_LOCK, 0), true);
    DOES(0, "rwlock_rdlock 0 +10, rwlock_rdlock 0 +9, rwlock_unlock 0 +9, rwlock_unlock 0 +9, rwlock_wrlock 1 +9, "
            "rwlock_unlock 1 +9");
    change_end();
}

/* Only locks and unlocks go to the parts: the lock itself is destroyed. Other objects stay as they are. */
TEST(split_lock_is_destroyed_once) {
    scene_begin();
    take(0, 10, MUTEX, 1);
    unlock(0, 20, MUTEX);
    take(0, 30, MUTEX, 2);
    take(0, 35, OTHER, 1);
    unlock(0, 38, OTHER);
    unlock(0, 40, MUTEX);
    call(0, 50, 50.1,
         (struct sbt_trace_event){
             .op = SBT_TRACE_DESTROY, .type = SBT_TRACE_MUTEX, .object = MUTEX, .other = SBT_TRACE_NONE, AT(89)});
    change_scene(about(REP_HOT_LOCK, MUTEX), true);
    DOES(0, "lock 0 +10, unlock 0 +9, lock 2 +9, lock 1 +4, unlock 1 +2, unlock 2 +1, destroy 0 +9");
    change_end();
}

TEST(lock_of_a_condition_is_not_split) {
    scene_begin();
    take(0, 10, MUTEX, 1);
    wait_(0, 20, 530, COND, 1, MUTEX, 3);
    unlock(0, 540, MUTEX);
    signal_(1, 500, COND, 1, false);
    const struct rep_report *r = scene_report();
    struct rep_advice of_mutex = about(REP_HOT_LOCK, MUTEX), of_other = about(REP_HOT_LOCK, OTHER);
    ck_assert_ptr_nonnull(rep_change_refused(r, &of_mutex));
    ck_assert_ptr_null(rep_change_refused(r, &of_other));
    scene_end();
}

/* ---- locks instead of polls ---- */

/* Of three failed trylocks and one that gets the lock: the work before the first is the thread's, the rest its wait. */
TEST(polls_become_a_lock) {
    scene_begin();
    trylock(0, 100, MUTEX, 0, EBUSY);
    trylock(0, 110, MUTEX, 0, EBUSY);
    trylock(0, 120, MUTEX, 0, EBUSY);
    trylock(0, 130, MUTEX, 1, 0);
    unlock(0, 150, MUTEX);
    end(0, 160);
    change_scene(about(REP_FALSE_SPIN, MUTEX), true);
    DOES(0, "lock 0 +100, unlock 0 +19, end +9");
    change_end();
}

/* As the report has it: two are no polling. */
TEST(work_between_few_trylocks_stays) {
    scene_begin();
    trylock(0, 100, MUTEX, 0, EBUSY);
    trylock(0, 110, MUTEX, 0, EBUSY);
    trylock(0, 130, MUTEX, 1, 0);
    unlock(0, 150, MUTEX);
    end(0, 160);
    change_scene(about(REP_FALSE_SPIN, MUTEX), true);
    DOES(0, "lock 0 +129, unlock 0 +19, end +9");
    change_end();
}

/* The thread gives up, and does something else: it has worked. The next time that it polls is another run. */
TEST(work_of_polls_in_vain_stays) {
    scene_begin();
    for (unsigned i = 0; i < 4; i++)
        trylock(0, 100 + 10 * i, MUTEX, 0, EBUSY);
    take(0, 140, OTHER, 1);
    unlock(0, 150, OTHER);
    take(0, 170, MUTEX, 1);
    unlock(0, 180, MUTEX);
    for (unsigned i = 0; i < 3; i++)
        trylock(0, 200 + 10 * i, MUTEX, 0, EBUSY);
    trylock(0, 260, MUTEX, 2, 0);
    unlock(0, 280, MUTEX);
    trylock(0, 300, MUTEX, 0, EBUSY);
    end(0, 330);
    change_scene(about(REP_FALSE_SPIN, MUTEX), true);
    DOES(0, "lock 1 +139, unlock 1 +9, lock 0 +19, unlock 0 +9, lock 0 +19, unlock 0 +19, end +49");
    change_end();
}

/* Nor is it lost where the trace ends with it. */
TEST(work_of_the_last_polls_stays) {
    scene_begin();
    for (unsigned i = 0; i < 4; i++)
        trylock(0, 100 + 10 * i, MUTEX, 0, EBUSY);
    change_scene(about(REP_FALSE_SPIN, MUTEX), true);
    DOES(0, "sleep 0 +129");
    change_end();
}

/* Of this lock only; read-write locks stay what they are. */
TEST(spin_lock_becomes_a_mutex) {
    scene_begin();
    spin(0, 10, SBT_TRACE_SPIN_LOCK, 0);
    spin(0, 20, SBT_TRACE_SPIN_LOCK, 1);
    spin(0, 30, SBT_TRACE_SPIN_UNLOCK, 1);
    spin(0, 40, SBT_TRACE_SPIN_UNLOCK, 0);
    spin(0, 50, SBT_TRACE_SPIN_TRYLOCK, 0);
    spin(0, 60, SBT_TRACE_SPIN_UNLOCK, 0);
    change_scene(about(REP_FALSE_SPIN, 0), true);
    DOES(0, "lock 0 +10, spin_lock 1 +9, spin_unlock 1 +9, unlock 0 +9, lock 0 +9, unlock 0 +9");
    change_end();
    scene_begin();
    rwlock(0, 10, SBT_TRACE_RWLOCK_TRYRDLOCK, 0);
    rwlock(0, 20, SBT_TRACE_RWLOCK_UNLOCK, 0);
    rwlock(0, 30, SBT_TRACE_RWLOCK_TRYWRLOCK, 0);
    rwlock(0, 40, SBT_TRACE_RWLOCK_UNLOCK, 0);
    change_scene(about(REP_FALSE_SPIN, 0), true);
    DOES(0, "rwlock_rdlock 0 +10, rwlock_unlock 0 +9, rwlock_wrlock 0 +9, rwlock_unlock 0 +9");
    change_end();
}

/* ---- sleeps behind the section ---- */

TEST(sleeps_come_behind_the_section) {
    scene_begin();
    take(0, 100, MUTEX, 1);
    sleeps(500);
    take(0, 700, OTHER, 1);
    sleeps(200);
    unlock(0, 1000, OTHER);
    unlock(0, 1100, MUTEX);
    sleeps(300);
    end(0, 1500);
    change_scene(about(REP_LOCK_OVER_IO, MUTEX), true);
    DOES(0, "lock 0 +100, lock 1 +99, unlock 1 +99, unlock 0 +99, sleep 700, sleep 300, end +99");
    change_end();
}

/* Held twice, the lock is free after the second unlock. A trylock that fails takes nothing. */
TEST(section_ends_with_the_last_unlock) {
    scene_begin();
    rwlock(0, 100, SBT_TRACE_RWLOCK_RDLOCK, 0);
    rwlock(0, 110, SBT_TRACE_RWLOCK_RDLOCK, 0);
    sleeps(200);
    rwlock(0, 320, SBT_TRACE_RWLOCK_UNLOCK, 0);
    sleeps(300);
    rwlock(0, 630, SBT_TRACE_RWLOCK_UNLOCK, 0);
    sleeps(400);
    end(0, 1040);
    change_scene(about(REP_LOCK_OVER_IO, 0), true);
    DOES(0, "rwlock_rdlock 0 +100, rwlock_rdlock 0 +9, rwlock_unlock 0 +9, rwlock_unlock 0 +9, sleep 500, sleep 400, "
            "end +9");
    change_end();
    scene_begin();
    trylock(0, 100, MUTEX, 0, EBUSY);
    sleeps(200);
    end(0, 310);
    change_scene(about(REP_LOCK_OVER_IO, MUTEX), true);
    DOES(0, "try 0 +100 busy, sleep 200, end +9");
    change_end();
}

/* After the wait the thread holds the mutex as before. */
TEST(section_goes_on_after_a_condition_wait) {
    scene_begin();
    take(0, 100, MUTEX, 1);
    sleeps(200);
    wait_(0, 310, 500, COND, 1, MUTEX, 2);
    sleeps(300);
    unlock(0, 810, MUTEX);
    end(0, 820);
    signal_(1, 490, COND, 1, false);
    change_scene(about(REP_LOCK_OVER_IO, MUTEX), true);
    DOES(0, "lock 0 +100, cond_wait 2/0 +9, unlock 0 +10, sleep 500, end +9");
    change_end();
}

/* Sleep is not lost if the thread ends with the lock held, or the trace does. */
TEST(sleeps_of_a_section_without_end_stay) {
    for (int ends = 0; ends < 2; ends++) {
        scene_begin();
        take(0, 100, MUTEX, 1);
        sleeps(200);
        take(0, 310, OTHER, 1);
        sleeps(300);
        if (ends)
            end(0, 620);
        else
            unlock(0, 620, OTHER);
        change_scene(about(REP_LOCK_OVER_IO, MUTEX), true);
        DOES(0, ends ? "lock 0 +100, lock 1 +9, sleep 500, end +9" : "lock 0 +100, lock 1 +9, unlock 1 +9, sleep 500");
        change_end();
    }
}

/* ---- one lock in ten ---- */

/* Ten sections of one group, and then one: the first and the eleventh take the lock; the work of the others stays. */
TEST(one_lock_in_ten_is_taken) {
    scene_begin();
    for (unsigned i = 0; i < 11; i++) {
        take(0, 10 + 20 * i, MUTEX, i + 1);
        unlock(0, 20 + 20 * i, MUTEX);
    }
    end(0, 240);
    change_scene(about(REP_MANY_LOCKS, MUTEX), true);
    DOES(0, "lock 0 +10, unlock 0 +9, lock 0 +188, unlock 0 +9, end +19");
    change_end();
}

/* Not of another group, and not those that fail. */
TEST(locks_of_other_groups_are_taken) {
    scene_begin();
    take(0, 10, MUTEX, 1);
    unlock(0, 20, MUTEX);
    take(0, 30, MUTEX, 2);
    lock(0, 40, 40.1, OTHER, 1, 7);
    unlock(0, 50, OTHER);
    unlock(0, 60, MUTEX);
    trylock(0, 70, MUTEX, 0, EBUSY);
    lock(0, 80, 80.1, OTHER, 2, 7);
    unlock(0, 90, OTHER);
    end(0, 100);
    change_scene(about(REP_MANY_LOCKS, MUTEX), true);
    DOES(0, "lock 0 +10, unlock 0 +9, lock 1 +19, unlock 1 +9, try 0 +19 busy, lock 1 +9, unlock 1 +9, end +9");
    change_end();
}

/* What a thread did last, where the trace does not have its end. */
TEST(work_of_the_last_section_stays) {
    scene_begin();
    take(0, 10, MUTEX, 1);
    unlock(0, 20, MUTEX);
    take(0, 30, MUTEX, 2);
    unlock(0, 90, MUTEX);
    change_scene(about(REP_MANY_LOCKS, MUTEX), true);
    DOES(0, "lock 0 +10, unlock 0 +9, sleep 0 +69");
    change_end();
}

/* A wait for a condition needs the mutex: that section takes it. */
TEST(section_with_a_condition_wait_takes_the_lock) {
    scene_begin();
    take(0, 10, MUTEX, 1);
    unlock(0, 20, MUTEX);
    take(0, 30, MUTEX, 2);
    wait_(0, 40, 500, COND, 1, MUTEX, 3);
    unlock(0, 510, MUTEX);
    take(0, 520, MUTEX, 4);
    unlock(0, 530, MUTEX);
    end(0, 540);
    signal_(1, 490, COND, 1, false);
    change_scene(about(REP_MANY_LOCKS, MUTEX), true);
    DOES(0, "lock 0 +10, unlock 0 +9, lock 0, cond_wait 2/0 +19, unlock 0 +10, end +29");
    ck_assert_str_eq(acquires(0, MUTEX), "0 0 0"); /* not all are there, so none has a number */
    change_end();
}

TEST(section_within_a_section_goes_with_it) {
    scene_begin();
    rwlock(0, 10, SBT_TRACE_RWLOCK_RDLOCK, 0);
    rwlock(0, 20, SBT_TRACE_RWLOCK_UNLOCK, 0);
    rwlock(0, 30, SBT_TRACE_RWLOCK_RDLOCK, 0);
    rwlock(0, 40, SBT_TRACE_RWLOCK_RDLOCK, 0);
    rwlock(0, 50, SBT_TRACE_RWLOCK_UNLOCK, 0);
    rwlock(0, 60, SBT_TRACE_RWLOCK_UNLOCK, 0);
    end(0, 70);
    change_scene(about(REP_MANY_LOCKS, 0), true);
    DOES(0, "rwlock_rdlock 0 +10, rwlock_unlock 0 +9, end +49");
    change_end();
}

/* ---- wake-ups in vain ---- */

/* A broadcast in vain, and one with which the thread goes on. */
TEST(waits_in_vain_go_on) {
    scene_begin();
    take(0, 10, MUTEX, 1);
    wait_(0, 20, 100, COND, 1, MUTEX, 2);
    wait_(0, 110, 200, COND, 2, MUTEX, 3);
    wait_(0, 210, 300, COND, 3, MUTEX, 4);
    unlock(0, 350, MUTEX);
    take(0, 360, MUTEX, 5);
    wait_(0, 370, 400, COND, 4, MUTEX, 6);
    unlock(1, 15, OTHER);
    signal_(1, 90, COND, 1, true);
    signal_(1, 190, COND, 2, false);
    signal_(1, 290, COND, 3, true);
    signal_(1, 390, 7, 1, true);
    signal_(1, 395, COND, 4, true);
    change_scene(about(REP_BROADCAST_STORM, COND), true);
    DOES(0, "lock 0 +10, cond_wait 2/0 +9, unlock 0 +50, lock 0 +9, cond_wait 2/0 +9");
    DOES(1, "unlock 1 +15, cond_signal 2 +74, cond_signal 2 +99, cond_signal 2 +99, cond_broadcast 7 +99, cond_signal "
            "2 +4");
    change_end();
}

/* The simulator would wait for the acquisitions that are left out. */
TEST(acquisitions_have_no_gap_where_waits_were_in_vain) {
    scene_begin();
    take(0, 10, OTHER, 1);
    take(0, 11, MUTEX, 1);
    wait_(0, 20, 100, COND, 1, MUTEX, 3);
    wait_(0, 110, 200, COND, 2, MUTEX, 5);
    wait_(0, 210, 300, COND, 3, MUTEX, 7);
    unlock(0, 310, MUTEX);
    unlock(0, 320, OTHER);
    take(0, 330, OTHER, 3);
    take(0, 340, MUTEX, 8);
    for (uint32_t i = 0; i < 3; i++) {
        take(1, 80 + 100 * i, MUTEX, 2 + 2 * i);
        signal_(1, 90 + 100 * i, COND, 1 + i, true);
        unlock(1, 95 + 100 * i, MUTEX);
    }
    take(1, 325, OTHER, 2);
    change_scene(about(REP_BROADCAST_STORM, COND), true);
    ck_assert_str_eq(acquires(0, MUTEX), "1 5 6");
    ck_assert_str_eq(acquires(1, MUTEX), "2 3 4");
    ck_assert_str_eq(acquires(0, OTHER), "1 3");
    ck_assert_str_eq(acquires(1, OTHER), "2");
    change_end();
}

/* Two threads had something to do: a signal would not wake both. */
TEST(broadcast_that_two_needed_stays) {
    scene_begin();
    for (uint32_t t = 0; t < 2; t++) {
        take(t, 10 + 2 * t, MUTEX, t + 1);
        wait_(t, 11 + 2 * t, 100 + 10 * t, COND, 1, MUTEX, t + 3);
        unlock(t, 105 + 10 * t, MUTEX);
    }
    signal_(2, 90, COND, 1, true);
    signal_(2, 190, COND, 2, true);
    change_scene(about(REP_BROADCAST_STORM, COND), true);
    DOES(2, "cond_broadcast 2 +90, cond_signal 2 +99");
    change_end();
}

/* The thread has had something to do, and one wait has timed out: both waits stay. */
TEST(waits_that_were_not_in_vain_stay) {
    scene_begin();
    take(0, 10, MUTEX, 1);
    wait_(0, 20, 100, COND, 1, MUTEX, 2);
    take(0, 110, OTHER, 1);
    unlock(0, 120, OTHER);
    wait_(0, 130, 200, COND, 2, MUTEX, 3);
    call(0, 210, 300,
         (struct sbt_trace_event){.op = SBT_TRACE_COND_WAIT,
                                  .type = SBT_TRACE_COND,
                                  .object = COND,
                                  .other = MUTEX,
                                  .result = ETIMEDOUT,
                                  AT(96)});
    wait_(0, 310, 400, COND, 3, MUTEX, 4);
    unlock(0, 410, MUTEX);
    signal_(1, 90, COND, 1, false);
    signal_(1, 190, COND, 2, false);
    signal_(1, 390, COND, 3, false);
    change_scene(about(REP_FUTILE_WAKEUPS, COND), true);
    DOES(0, "lock 0 +10, cond_wait 2/0 +9, lock 1 +10, unlock 1 +9, cond_wait 2/0 +9, cond_wait 2/0 +10, unlock 0 +10");
    change_end();
}

/* ---- balanced work ---- */

/* Generation 1: 100 and 300 us of work and 200 of sleep, so each has 300. Generation 2: none and 200. */
TEST(work_for_a_barrier_is_balanced) {
    scene_begin();
    meet(0, 100, 600.1, BARRIER, 1, 2);
    meet(0, 600.1, 800.2, BARRIER, 2, 2);
    end(0, 900);
    call(1, 0.1, 0.1, (struct sbt_trace_event){.op = SBT_TRACE_THREAD_CREATE, NO_OBJECT, AT(94)});
    sleeps(200);
    meet(1, 500, 600.1, BARRIER, 1, 2);
    meet(1, 800.1, 800.2, BARRIER, 2, 2);
    end(1, 900);
    change_scene(about(REP_BARRIER_IMBALANCE, BARRIER), true);
    DOES(0, "barrier_wait 3 +300, barrier_wait 3 +100, end +99");
    DOES(1, "thread_create, sleep 120, barrier_wait 3 +179, barrier_wait 3 +100, end +99");
    change_end();
}
