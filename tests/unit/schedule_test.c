/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reader of schedule logs: each token by itself. */
#include "schedule_writing.h"

TEST(schedule_next__the_thread_and_the_time_of_a_head) {
    begin();
    put_head(SCHEDULE_OP + SCHEDULE_YIELD, 300, 12345);
    put(0);
    put_kind((SCHEDULE_OP + SCHEDULE_SLEEP) | SCHEDULE_NEXT);
    put(0);
    put_head(SCHEDULE_STALL, 2, 0);
    put_head(SCHEDULE_RELEASED, 3, 1);
    struct schedule_log *log = opened();
    struct schedule_event e = next(log);
    ck_assert(e.kind == SCHEDULE_EVENT_OP && e.what == SCHEDULE_YIELD && e.thread == 300 && e.time_ns == 12345);
    ck_assert(e.object == 0 && e.other == SCHEDULE_NONE && e.site == 0);
    e = next(log);
    ck_assert(e.kind == SCHEDULE_EVENT_OP && e.what == SCHEDULE_SLEEP && e.thread == 300 && e.time_ns == 12345 + TURN);
    e = next(log);
    ck_assert(e.kind == SCHEDULE_EVENT_STALL && e.thread == 2 && e.time_ns == 12345 + TURN);
    e = next(log);
    ck_assert(e.kind == SCHEDULE_EVENT_RELEASED && e.thread == 3 && e.time_ns == 12346 + TURN);
    check_ends(log);
    ck_assert_ptr_null(schedule_totals_of(log));
    schedule_close(log);
}

TEST(schedule_next__the_threads_of_a_deadlock) {
    begin();
    put_head(SCHEDULE_DEADLOCK, 0, 0);
    put(SCHEDULE_JOIN);
    put(0);
    put(0);
    put(3 + 1);
    put_head(SCHEDULE_DEADLOCK, 3, 0);
    put(SCHEDULE_SEM_WAIT);
    put(0);
    put(7);
    put(0);
    struct schedule_log *log = opened();
    struct schedule_event e = next(log);
    ck_assert(e.kind == SCHEDULE_EVENT_DEADLOCK && e.what == SCHEDULE_JOIN && e.thread == 0 && e.object == 0 &&
              e.other == 3);
    ck_assert_uint_eq(e.hash, 0);
    e = next(log);
    ck_assert(e.kind == SCHEDULE_EVENT_DEADLOCK && e.what == SCHEDULE_SEM_WAIT && e.thread == 3 && e.object == 7);
    ck_assert(e.other == SCHEDULE_NONE);
    check_ends(log);
    schedule_close(log);
}

TEST(schedule_next__resumes_and_returns_by_their_kinds) {
    begin();
    for (unsigned i = 0; i < SCHEDULE_N_REASONS; i++)
        put_head(SCHEDULE_RESUME + i, i, 0);
    for (unsigned i = 0; i < SCHEDULE_N_RETURNS; i++)
        put_head(i == SCHEDULE_FROM_PCS ? SCHEDULE_PCS_RETURN : SCHEDULE_RETURN + i, i, 0);
    struct schedule_log *log = opened();
    uint64_t hash = 0;
    for (unsigned i = 0; i < SCHEDULE_N_REASONS; i++) {
        struct schedule_event e = next(log);
        hash = schedule_hash_resume(hash, i, (enum schedule_reason)i);
        ck_assert(e.kind == SCHEDULE_EVENT_RESUME && e.what == i && e.hash == hash);
    }
    for (unsigned i = 0; i < SCHEDULE_N_RETURNS; i++) {
        struct schedule_event e = next(log);
        ck_assert(e.kind == SCHEDULE_EVENT_RETURN && e.what == i && e.hash == hash);
    }
    check_ends(log);
    schedule_close(log);
}

TEST(schedule_next__hints_and_sections_and_times_are_no_part_of_the_hash) {
    begin();
    put_kind(SCHEDULE_HINTS);
    put(SCHEDULE_WITH_FILE | SCHEDULE_STS);
    put(UINT64_MAX);
    put(3);
    put_kind(SCHEDULE_TIME);
    put(0);
    put(7);
    put_op(SCHEDULE_GIVE_UP, 1, 0);
    put_head(SCHEDULE_SECTION, 1, 0);
    put(2 * 40);
    put(1000000);
    put_kind(SCHEDULE_TIME);
    put(500);
    put(0);
    put_head(SCHEDULE_RESUME, 2, 0);
    put_kind(SCHEDULE_TIME);
    put(UINT64_MAX - 500);
    put(0);
    put_op(SCHEDULE_PCS, 1, 0);
    struct schedule_log *log = opened();
    ck_assert_ptr_null(schedule_hints_of(log));
    struct schedule_event e = next(log);
    uint64_t hash = schedule_hash_op(0, 1, SCHEDULE_GIVE_UP);
    ck_assert(e.what == SCHEDULE_GIVE_UP && e.hash == hash);
    ck_assert(e.has_real && e.real_ns == 0 && e.waited_ns == 7);
    const struct schedule_hints *hints = schedule_hints_of(log);
    ck_assert_ptr_nonnull(hints);
    ck_assert_uint_eq(hints->flags, SCHEDULE_WITH_FILE | SCHEDULE_STS);
    ck_assert_uint_eq(hints->hash, UINT64_MAX);
    ck_assert_uint_eq(hints->n, 3);
    e = next(log);
    ck_assert(e.kind == SCHEDULE_EVENT_SECTION && e.thread == 1 && e.hint == 80 && e.turns == 1000000 &&
              e.hash == hash);
    ck_assert(!e.has_real);
    e = next(log);
    ck_assert(e.kind == SCHEDULE_EVENT_RESUME && e.has_real && e.real_ns == 500 && e.waited_ns == 0);
    ck_assert_uint_eq(next(log).real_ns, UINT64_MAX);
    check_ends(log);
    schedule_rewind(log);
    ck_assert_ptr_null(schedule_hints_of(log));
    ck_assert(next(log).real_ns == 0);
    schedule_close(log);
    size_t place = here();
    put_kind(SCHEDULE_TIME);
    put(1);
    put(0);
    check_refused(place + 1, "the number 1 is too large (legal: up to 0)");
}

TEST(schedule_next__callers_belong_to_the_operation_behind_them_and_not_to_the_hash) {
    begin();
    put_module("/a");
    for (unsigned i = 1; i <= 4; i++)
        put_site(0, i);
    for (unsigned i = 2; i <= 4; i++) {
        put_kind(SCHEDULE_CALLER);
        put(i);
    }
    put_head(SCHEDULE_RETURN, 2, 0); /* comes in between */
    put_op(SCHEDULE_YIELD, 1, 1);
    put_kind(SCHEDULE_CALLER);
    put(3);
    put_op(SCHEDULE_YIELD, 1, 1);
    put_op(SCHEDULE_YIELD, 1, 1);
    struct schedule_log *log = opened();
    ck_assert_int_eq(next(log).kind, SCHEDULE_EVENT_RETURN);
    struct schedule_event e = next(log);
    ck_assert(e.site == 1 && e.caller[0] == 2 && e.caller[1] == 3 && e.caller[2] == 4);
    ck_assert_uint_eq(e.hash, schedule_hash_op(0, 1, SCHEDULE_YIELD));
    e = next(log);
    ck_assert(e.site == 1 && e.caller[0] == 3 && e.caller[1] == 0);
    e = next(log);
    ck_assert(e.site == 1 && e.caller[0] == 0);
    check_ends(log);
    schedule_close(log);
}

TEST(schedule_next__what_an_operation_is_about_belongs_to_it_and_to_the_hash) {
    begin();
    put_op(SCHEDULE_MUTEX_LOCK, 1, 0);
    put_kind(SCHEDULE_OBJECT);
    put(4);
    put_op(SCHEDULE_CREATE, 1, 0);
    put_kind(SCHEDULE_OTHER);
    put(9);
    put_op(SCHEDULE_YIELD, 1, 0);
    uint64_t hash = schedule_hash_object(schedule_hash_op(0, 1, SCHEDULE_MUTEX_LOCK), 4);
    hash = schedule_hash_op(schedule_hash_op(hash, 1, SCHEDULE_CREATE), 1, SCHEDULE_YIELD);
    put_finish(hash);
    struct schedule_log *log = opened();
    for (int i = 0; i < 2; i++) {
        struct schedule_event e = next(log);
        ck_assert(e.object == 4 && e.other == SCHEDULE_NONE && e.time_ns == TURN);
        e = next(log);
        ck_assert(e.object == 0 && e.other == 9);
        e = next(log);
        ck_assert(e.object == 0 && e.other == SCHEDULE_NONE && e.hash == hash);
        check_ends(log);
        ck_assert_ptr_nonnull(schedule_totals_of(log));
        ck_assert_uint_eq(schedule_totals_of(log)->hash, hash);
        ck_assert_uint_eq(schedule_place(log), schedule_bytes(log));
        schedule_rewind(log);
        ck_assert_ptr_null(schedule_totals_of(log));
    }
    schedule_close(log);
}

TEST(schedule_site__is_the_file_and_the_offset_whatever_their_numbers) {
    begin();
    put_module("/lib/a");
    put_module("/lib/b");
    put_site(1, 0x1234);
    put_site(0, 0x1234);
    put_site(0, 0x99);
    for (uint32_t site = 0; site <= 3; site++)
        put_op(SCHEDULE_YIELD, 0, site);
    struct schedule_log *a = opened();
    begin();
    put_module("/lib/b");
    put_site(0, 0x1234);
    put_op(SCHEDULE_YIELD, 0, 1);
    struct schedule_log *b = opened();
    static const char *const names[] = {"", "/lib/b+0x1234", "/lib/a+0x1234", "/lib/a+0x99"};
    for (uint32_t site = 0; site <= 3; site++)
        next(a);
    next(b);
    for (uint32_t site = 0; site <= 3; site++) {
        char *name = schedule_site(a, site);
        ck_assert_str_eq(name, names[site]);
        free(name);
        ck_assert_int_eq(schedule_same_site(a, site, b, 1), site == 1);
        ck_assert_int_eq(schedule_same_site(a, site, b, 0), site == 0);
    }
    schedule_close(a);
    schedule_close(b);
}

TEST(schedule_next__many_sites_and_modules) {
    char name[32];
    begin();
    for (uint32_t i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "/lib/%u", i);
        put_module(name);
        put_site(i, i);
    }
    put_op(SCHEDULE_YIELD, 0, 600);
    struct schedule_log *log = opened();
    struct schedule_event e = next(log);
    char *site = schedule_site(log, e.site);
    ck_assert_str_eq(site, "/lib/599+0x257");
    free(site);
    schedule_close(log);
}

TEST(schedule_next__a_log_that_is_full_ends_there) {
    begin();
    put_op(SCHEDULE_YIELD, 0, 0);
    put_kind(SCHEDULE_FULL);
    put_op(SCHEDULE_YIELD, 0, 0);
    struct schedule_log *log = opened();
    next(log);
    ck_assert(!schedule_is_full(log));
    check_ends(log);
    check_ends(log);
    ck_assert(schedule_is_full(log));
    ck_assert_ptr_null(schedule_totals_of(log));
    schedule_close(log);
}

TEST(schedule_next__what_is_not_written_is_the_end) {
    begin();
    put_op(SCHEDULE_YIELD, 0, 0);
    put_kind(SCHEDULE_CUT);
    put_op(SCHEDULE_YIELD, 0, 0);
    struct schedule_log *log = opened();
    next(log);
    check_ends(log);
    check_ends(log);
    ck_assert(!schedule_is_full(log));
    schedule_close(log);
}

TEST(schedule_next__zeros_behind_the_totals_are_no_damage, "the file was moved before it could be cut to its size") {
    begin();
    put_finish(0);
    memset(at, 0, 5000);
    at += 5000;
    struct schedule_log *log = opened();
    check_ends(log);
    ck_assert_ptr_nonnull(schedule_totals_of(log));
    schedule_close(log);
    at[-1] = 1;
    check_refused(here() - 1, "the log goes on behind its totals");
}
