/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends that are not the usual ones: of threads that hold something, of replays that cannot go on, of virtual time. */
#include <string.h>

#include "build.h"
#include "events.h"
#include "hw_check.h"

#define MS UINT64_C(1000000)

static struct sim_config config_of(int sync) {
    struct sim_config config = sim_config_default();
    config.sync = (enum sim_sync)sync;
    return config;
}

/* Must not succeed; what it says, and for SIM_STUCK who waits for what, is in `text`. */
static enum sim_status failure(const struct sim_config *config, const struct sbt_trace *trace, char *text,
                               size_t size) {
    struct sim_error error = {.text = ""};
    struct sim *sim = sim_new(config, &error);
    ck_assert_msg(sim != NULL, "%s", error.text);
    ck_assert_msg(sim_add(sim, trace, "test", &error) == SIM_OK, "%s", error.text);
    enum sim_status status = sim_run(sim, &error);
    ck_assert_int_ne(status, SIM_OK);
    FILE *out = fmemopen(text, size, "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "%s\n", error.text);
    if (status == SIM_STUCK)
        sim_stuck(sim, out, 10);
    fclose(out);
    sim_free(sim);
    return status;
}

static void expect_stuck(const struct sbt_trace *trace, const char *why) {
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim_config config = config_of(sync);
        char text[2000];
        ck_assert_int_eq(failure(&config, trace, text, sizeof text), SIM_STUCK);
        ck_assert_msg(strstr(text, why) != NULL, "'%s' is not in: %s", why, text);
    }
}

/* ---- an owner that has ended ---- */

START_TEST(the_ended_owner_is_named) {
    static const struct {
        enum sbt_trace_op taken, wanted;
        const char *what;
    } kinds[] = {
        {SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX_LOCK, "mutex 7 held by thread 1, which has ended"},
        {SBT_TRACE_RWLOCK_WRLOCK, SBT_TRACE_RWLOCK_RDLOCK, "rwlock 7 held by thread 1, which has ended"},
        {SBT_TRACE_SPIN_LOCK, SBT_TRACE_SPIN_LOCK, "spin lock 7 held by thread 1, which has ended"},
    };
    struct build b;
    build_open(&b);
    create_all(&b, 2);
    call(&b, 1, kinds[_i].taken, 7, 0);
    end(&b, 1, 0);
    join(&b, 0, 1, 0);
    call(&b, 0, kinds[_i].wanted, 7, 0);
    end(&b, 0, 0);
    expect_stuck(build_close(&b), kinds[_i].what);
}
END_TEST

/* ---- the end of time ---- */

/* The reader takes any 64 bits: with these, the end of the wait would be before its beginning. */
START_TEST(no_wait_lasts_for_ever) {
    static const struct sbt_trace_event waits[] = {
        {.op = SBT_TRACE_MUTEX_LOCK, .type = SBT_TRACE_MUTEX, .object = 0, .other = SBT_TRACE_NONE},
        {.op = SBT_TRACE_SEM_WAIT, .type = SBT_TRACE_SEM, .object = 1, .other = SBT_TRACE_NONE},
        {.op = SBT_TRACE_COND_WAIT, .type = SBT_TRACE_COND, .object = 2, .other = SBT_TRACE_NONE}};
    static const uint64_t times[] = {UINT64_MAX - 999, UINT64_MAX - 3 * MS, UINT64_MAX / 2};
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        struct build b;
        struct sbt_trace_event event = waits[_i];
        build_open(&b);
        create_all(&b, 2);
        event.work_ns = 5000;
        event.result = ETIMEDOUT;
        event.took_ns = times[k];
        build_event(&b, 1, event);
        end_all(&b, 2);
        const struct sbt_trace *trace = build_close(&b);
        for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
            struct sim_config config = config_of(sync);
            char text[2000];
            ck_assert_int_eq(failure(&config, trace, text, sizeof text), SIM_DAMAGED);
            ck_assert_ptr_nonnull(strstr(text, "thread 1 waits for more than a hundred years"));
        }
    }
}
END_TEST

START_TEST(time_does_not_run_backwards) {
    struct sim_events *events = malloc(sizeof *events);
    struct sim_event event = {.kind = SIM_EV_TIMER};
    ck_assert(sim_events_init(events));
    sim_events_put(events, 10000, &event);
    ck_assert(sim_events_take(events, &event));
    ck_assert_uint_eq(events->now, 10000);
    sim_events_put(events, 10000, &event);
    ck_assert(!events->past);
    sim_events_put(events, 9999, &event);
    ck_assert(events->past);
    ck_assert(sim_events_take(events, &event));
    ck_assert(!sim_events_take(events, &event));
    ck_assert_uint_eq(events->now, 10000);
    sim_events_free(events);
    free(events);
}
END_TEST

static void tests(Suite *suite) {
    TCase *time = tcase_create("time");
    tcase_add_loop_test(time, no_wait_lasts_for_ever, 0, 3);
    suite_add_tcase(suite, time);
    ADD_TEST(suite, time_does_not_run_backwards);
    TCase *owners = tcase_create("owners");
    tcase_add_loop_test(owners, the_ended_owner_is_named, 0, 3);
    suite_add_tcase(suite, owners);
}

int main(void) {
    void (*const all[])(Suite *) = {tests, NULL};
    return run_suite("ends", all);
}
