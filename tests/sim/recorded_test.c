/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How many cores worked at once when a trace was recorded. */
#include "recorded.h"

#include "build.h"
#include "lib/suite.h"

#define MS UINT64_C(1000000)

/* Replaces the writer, of which the traces have no times. */
static void open_timed(struct build *b) {
    build_open(b);
    ck_assert_int_eq(sbt_trace_finish(b->writer), 0);
    b->writer = sbt_trace_create_timed(b->path, "test", "glibc");
    ck_assert_ptr_nonnull(b->writer);
}

/* The thread works for that long, up to then, and ends. */
static void works(struct build *b, uint32_t thread, uint64_t to_ns, uint64_t work_ns) {
    build_event(b, thread, (struct sbt_trace_event){.op = SBT_TRACE_THREAD_END, .at_ns = to_ns, .work_ns = work_ns});
}

static void ck_about(uint32_t cores, uint32_t expected) {
    ck_assert_msg(cores + 2 >= expected && cores <= expected + 2, "%u thousandths of cores, not %u", cores, expected);
}

/*
 * Thread 0 works alone for 40 ms, then 1 and 2 for 100 ms each, at once. (40 x 1 + 200 x 2) / 240 = 1.833. By the time
 * it would be 240 / 140 = 1.714. The slots are 0.137 ms long, so the bound between the two parts lies in one.
 */
TEST(cores_that_worked_at_once_by_the_work) {
    struct build b;
    open_timed(&b);
    works(&b, 0, 40 * MS, 40 * MS);
    works(&b, 1, 140 * MS, 100 * MS);
    works(&b, 2, 140 * MS, 100 * MS);
    struct sim_recorded recorded = {0};
    ck_assert(sim_recorded_add(&recorded, build_close(&b)));
    ck_about(sim_recorded_cores(&recorded, 8), 1833);
    ck_about(sim_recorded_cores(&recorded, 1), 1000);

    /* Another trace, of one thread that waits for most of its time: 60 ms more on one core, (440 + 60) / 300. */
    open_timed(&b);
    works(&b, 0, 400 * MS, 60 * MS);
    ck_assert(sim_recorded_add(&recorded, build_close(&b)));
    ck_about(sim_recorded_cores(&recorded, 8), 1667);
}

TEST(work_of_no_machine_was_done_by_one_core) {
    struct build b;
    build_open(&b);
    build_event(&b, 0, (struct sbt_trace_event){.op = SBT_TRACE_THREAD_END, .work_ns = 100 * MS});
    build_event(&b, 1, (struct sbt_trace_event){.op = SBT_TRACE_THREAD_END, .work_ns = 100 * MS});
    struct sim_recorded recorded = {0};
    ck_assert(sim_recorded_add(&recorded, build_close(&b)));
    ck_assert_uint_eq(sim_recorded_cores(&recorded, 8), 1000);
}
