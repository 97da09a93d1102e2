/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits that no thread ended, since their time was over. Of a lock it is known which threads had it meanwhile. */
#include <errno.h>

#include "scene.h"

enum { LOCK, COND, SEM, MUTEX };

static void timed_out(uint32_t thread, double from_us, double to_us, struct sbt_trace_event e) {
    e.result = ETIMEDOUT;
    e.site = 90;
    call(thread, from_us, to_us, e);
}

static void lock_timed_out(uint32_t thread, double from_us, double to_us, uint32_t holder) {
    timed_out(
        thread, from_us, to_us,
        (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_LOCK, .type = SBT_TRACE_MUTEX, .object = LOCK, .other = holder});
}

static void rwlock(uint32_t thread, double at_us, unsigned op, uint64_t number) {
    call(thread, at_us, at_us + 0.1,
         (struct sbt_trace_event){.op = (uint8_t)op,
                                  .type = SBT_TRACE_RWLOCK,
                                  .object = LOCK,
                                  .other = SBT_TRACE_NONE,
                                  .order = number,
                                  AT(1)});
}

static const struct rep_pair *pair_of(const struct rep_report *r, uint32_t waiter, uint32_t holder, uint32_t object) {
    for (size_t i = 0; i < r->n_pairs; i++)
        if (r->pairs[i].waiter == waiter && r->pairs[i].holder == holder && r->pairs[i].object == object)
            return &r->pairs[i];
    return NULL;
}

static void is_timed_out(const struct rep_report *r, uint32_t holder, uint32_t object, double us) {
    const struct rep_pair *pair = pair_of(r, 0, holder, object);
    ck_assert_ptr_nonnull(pair);
    ck_assert_uint_eq(pair->timed_out, 1);
    CHECK_US(pair->sum.ns, us);
}

/* 1 has the lock until 300, and 2 from 320 on, when the wait from 200 to 500 ends in vain. The first wait has an end.
 */
TEST(threads_that_had_the_lock_meanwhile) {
    scene_begin();
    lock(1, 9.9, 10, LOCK, 1, 1);
    lock(0, 20, 100, LOCK, 2, 2);
    unlock(1, 99, LOCK);
    unlock(0, 110, LOCK);
    lock(1, 119.9, 120, LOCK, 3, 1);
    unlock(1, 300, LOCK);
    lock(2, 319.9, 320, LOCK, 4, 3);
    lock_timed_out(0, 200, 500, SBT_TRACE_NONE);
    unlock(2, 600, LOCK);
    for (uint32_t i = 0; i < 3; i++)
        end(i, 700);
    const struct rep_report *r = scene_report();
    is_timed_out(r, 2, LOCK, 500 - 320);
    CHECK_US(waited_for(r, 0, 1, LOCK), (320 - 200) + (100 - 20));
    CHECK_US(waited_for(r, 0, REP_NONE, LOCK), 0);
    ck_assert_uint_eq(r->objects[LOCK].timed_out.n, 1);
    CHECK_US(r->objects[LOCK].timed_out.ns, 300);
    ck_assert_uint_eq(r->objects[LOCK].n_failed, 1);
    scene_end();
}

TEST(lock_that_is_never_given_back) {
    scene_begin();
    lock(1, 9.9, 10, LOCK, 1, 1);
    lock_timed_out(0, 100, 500, SBT_TRACE_NONE);
    end(0, 600);
    end(1, 600);
    is_timed_out(scene_report(), 1, LOCK, 400);
    scene_end();
}

/* A thread that keeps itself waiting is not its own holder, and no thread that is not seen is guessed. */
TEST(lock_without_a_holder_that_is_known) {
    scene_begin();
    lock(0, 9.9, 10, LOCK, 1, 1);
    lock_timed_out(0, 100, 500, SBT_TRACE_NONE);
    end(0, 600);
    is_timed_out(scene_report(), REP_NONE, LOCK, 400);
    scene_end();
}

TEST(read_write_lock_that_a_reader_has) {
    scene_begin();
    rwlock(1, 9.9, SBT_TRACE_RWLOCK_RDLOCK, 0);
    timed_out(0, 100, 500,
              (struct sbt_trace_event){
                  .op = SBT_TRACE_RWLOCK_WRLOCK, .type = SBT_TRACE_RWLOCK, .object = LOCK, .other = SBT_TRACE_NONE});
    rwlock(1, 600, SBT_TRACE_RWLOCK_UNLOCK, 0);
    end(0, 700);
    end(1, 700);
    is_timed_out(scene_report(), 1, LOCK, 400);
    scene_end();
}

/* Nothing came: no thread is to be named, and none is missing. */
TEST(condition_and_semaphore) {
    scene_begin();
    lock(0, 9.9, 10, MUTEX, 1, 1);
    timed_out(0, 20, 320,
              (struct sbt_trace_event){
                  .op = SBT_TRACE_COND_WAIT, .type = SBT_TRACE_COND, .object = COND, .other = MUTEX, .relock = 2});
    unlock(0, 330, MUTEX);
    timed_out(0, 400, 600,
              (struct sbt_trace_event){
                  .op = SBT_TRACE_SEM_WAIT, .type = SBT_TRACE_SEM, .object = SEM, .other = SBT_TRACE_NONE});
    end(0, 700);
    const struct rep_report *r = scene_report();
    is_timed_out(r, REP_NONE, COND, 300);
    is_timed_out(r, REP_NONE, SEM, 200);
    scene_end();
}

TEST(thread_that_did_not_end_in_time) {
    scene_begin();
    timed_out(0, 100, 400, (struct sbt_trace_event){.op = SBT_TRACE_THREAD_JOIN, .object = SBT_TRACE_NONE, .other = 1});
    end(0, 500);
    end(1, 600);
    const struct rep_report *r = scene_report();
    is_timed_out(r, 1, REP_NONE, 300);
    ck_assert_uint_eq(r->threads[0].times.waiting[REP_JOIN].n, 1);
    scene_end();
}

/* 1 has the lock when the program ends, and 0 waits for it. */
TEST(lock_that_a_thread_has_at_the_end) {
    scene_begin();
    lock(1, 9.9, 10, LOCK, 1, 1);
    call(0, 100, 600,
         (struct sbt_trace_event){.op = SBT_TRACE_THREAD_END,
                                  .type = SBT_TRACE_MUTEX,
                                  .object = LOCK,
                                  .other = SBT_TRACE_NONE,
                                  .size = SBT_TRACE_WAITS + SBT_TRACE_MUTEX_LOCK,
                                  AT(2)});
    call(1, 600, 600, (struct sbt_trace_event){.op = SBT_TRACE_THREAD_END, NO_OBJECT, .size = SBT_TRACE_RUNS});
    const struct rep_report *r = scene_report();
    ck_assert_uint_eq(r->threads[0].unended.kind, REP_MUTEX);
    ck_assert_uint_eq(r->threads[0].unended.holder, 1);
    ck_assert_uint_eq(r->threads[1].unended.kind, REP_N_KINDS);
    scene_end();
}
