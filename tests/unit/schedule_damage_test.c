/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reader of schedule logs: each way in which a log may be damaged, with its place. */
#include "schedule_writing.h"

static void check_not_opened(size_t n, const char *reason) {
    struct schedule_log *log = open_first(n);
    ck_assert_ptr_null(log);
    ck_assert_msg(strstr(error, reason) != NULL, "%s, and not: %s", error, reason);
    free(error);
}

TEST(schedule_next__numbers_that_are_none) {
    begin();
    put_kind(SCHEDULE_OP + SCHEDULE_YIELD);
    memset(at, 0xFF, SCHEDULE_MAX_NUMBER);
    at += SCHEDULE_MAX_NUMBER;
    put(0);
    check_refused(HEADER + 1, "not a number");
    begin();
    put_kind(SCHEDULE_OP + SCHEDULE_YIELD);
    put(0);
    memset(at, 0xFF, SCHEDULE_MAX_NUMBER - 1); /* 63 bits, and one more */
    at += SCHEDULE_MAX_NUMBER - 1;
    *at++ = 1;
    put(0);
    struct schedule_log *log = opened();
    ck_assert_uint_eq(next(log).time_ns, UINT64_MAX);
    schedule_close(log);
    at[-2] = 2;
    check_refused(HEADER + 2, "not a number");
    begin();
    put_kind(SCHEDULE_OP + SCHEDULE_YIELD);
    put_kind(0x80);
    check_refused(HEADER + 1, "the log is cut in a number");
}

TEST(schedule_next__numbers_that_are_too_large) {
    begin();
    put_head(SCHEDULE_STALL, SCHEDULE_NONE - 1, 5);
    put_head(SCHEDULE_STALL, 0, UINT64_MAX - 5);
    struct schedule_log *log = opened();
    ck_assert_uint_eq(next(log).thread, SCHEDULE_NONE - 1);
    ck_assert_uint_eq(next(log).time_ns, UINT64_MAX);
    schedule_close(log);
    size_t place = here();
    put_head(SCHEDULE_STALL, 0, 1);
    check_refused(place + 2, "the number 1 is too large (legal: up to 0)");
    begin();
    put_head(SCHEDULE_STALL, SCHEDULE_NONE, 0);
    check_refused(HEADER + 1, "the number 4294967295 is too large (legal: up to 4294967294)");
    begin();
    put_op(SCHEDULE_MUTEX_LOCK, 0, 0);
    put_kind(SCHEDULE_OBJECT);
    place = here();
    put(SCHEDULE_NONE);
    check_refused(place, "the number 4294967295 is too large");
    begin();
    put_kind(SCHEDULE_MODULE);
    put(SCHEDULE_MAX_PATH + 1);
    memset(at, 'x', SCHEDULE_MAX_PATH + 1);
    at += SCHEDULE_MAX_PATH + 1;
    check_refused(HEADER + 1, "the number 4097 is too large (legal: up to 4096)");
}

TEST(schedule_next__tokens_that_name_what_is_not_there) {
    begin();
    put_site(0, 1);
    check_refused(HEADER + 1, "module 0 is unknown (legal: below 0)");
    begin();
    put_module("/a");
    put_site(0, 1);
    put_head(SCHEDULE_OP + SCHEDULE_YIELD, 0, 0);
    size_t place = here();
    put(2);
    check_refused(place, "call site 2 is unknown (legal: up to 1)");
    begin();
    put_head(SCHEDULE_DEADLOCK, 0, 0);
    place = here();
    put(SCHEDULE_N_OPS);
    check_refused(place, "operation 34 is unknown (legal: up to 33)");
    begin();
    put_kind(SCHEDULE_CALLER);
    put(1);
    check_refused(HEADER + 1, "call site 1 is unknown (legal: up to 0)");
    begin();
    put_module("/a");
    put_site(0, 1);
    for (unsigned i = 0; i < SCHEDULE_MAX_CALLERS; i++) {
        put_kind(SCHEDULE_CALLER);
        put(1);
    }
    place = here();
    put_kind(SCHEDULE_CALLER);
    put(1);
    check_refused(place, "a caller too many (legal: 3 of an operation)");
    static const unsigned unknown[] = {SCHEDULE_OP + SCHEDULE_N_OPS,
                                       SCHEDULE_RESUME - 1,
                                       SCHEDULE_DEADLOCK + 1,
                                       SCHEDULE_OBJECT,
                                       SCHEDULE_OTHER,
                                       SCHEDULE_NEXT};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        begin();
        put_head(unknown[i], 0, 0);
        check_refused(HEADER, "a token of kind ");
    }
}

TEST(schedule_next__a_log_that_is_cut) {
    begin();
    put_kind(SCHEDULE_MODULE);
    put(3);
    put_kind('/');
    put_kind('a');
    check_refused(HEADER + 2, "the log is cut in a path");
    begin();
    put_finish(0);
    at--;
    check_refused(HEADER + 1, "the log is cut in its totals");
    begin();
    put_op(SCHEDULE_YIELD, 0, 0);
    size_t place = here();
    put_finish(77);
    check_refused(place + 1, "the hash is 000000000000004d, and that of the operations ");
}

TEST(schedule_open__headers_that_are_none) {
    begin();
    check_not_opened(0, "the file is empty");
    check_not_opened(7, "byte 0: not a schedule log");
    check_not_opened(HEADER - 1, "byte 39: the header is cut (it has 40 bytes)");
    struct schedule_header *header = (struct schedule_header *)bytes;
    header->turn_ns = 0;
    check_not_opened(HEADER, "byte 12: the header is damaged");
    begin();
    header->bytes++;
    check_not_opened(HEADER, "byte 12: the header is damaged");
    begin();
    header->version++;
    check_not_opened(HEADER, "byte 8: version 2 is unknown (legal: 1)");
    begin();
    header->magic[7]++;
    check_not_opened(HEADER, "byte 0: not a schedule log");
    begin();
    struct schedule_log *log = opened();
    check_ends(log);
    ck_assert_uint_eq(schedule_header_of(log)->seed, 7);
    schedule_close(log);
}

/* A log with a token of each kind. */
static void put_all_kinds(void) {
    begin();
    put_module("/lib/a");
    put_site(0, 0x1234);
    for (unsigned i = 0; i < SCHEDULE_N_OPS; i++)
        put_op((enum schedule_op)i, i, i & 1);
    put_op(SCHEDULE_MUTEX_LOCK, 300, 1);
    put_kind(SCHEDULE_OBJECT);
    put(200);
    put_op(SCHEDULE_CREATE, 2, 0);
    put_kind(SCHEDULE_OTHER);
    put(70000);
    for (unsigned kind = SCHEDULE_RESUME; kind <= SCHEDULE_RELEASED; kind++) {
        put_head(kind, kind, kind);
        put_kind(kind | SCHEDULE_NEXT);
    }
    put_site(0, 1);
}

static uint64_t hash_of(struct schedule_log *log, size_t *n) {
    struct schedule_event e = {.hash = 0};
    for (*n = 0; schedule_next(log, &e, &error); ++*n) {
        char *site = schedule_site(log, e.site);
        ck_assert_ptr_nonnull(site);
        free(site);
    }
    return e.hash;
}

TEST(schedule_next__a_log_that_is_cut_anywhere) {
    struct schedule_event events[256], e;
    size_t n = 0, n_cut_in_token = 0;
    put_all_kinds();
    struct schedule_log *log = opened();
    while (schedule_next(log, &events[n], &error))
        n++;
    ck_assert_uint_gt(n, 40);
    schedule_close(log);
    for (size_t size = HEADER; size <= here(); size++) {
        size_t i = 0;
        log = open_first(size);
        ck_assert_msg(log != NULL, "%zu bytes: %s", size, error);
        for (; schedule_next(log, &e, &error); i++) {
            ck_assert(e.kind == events[i].kind && e.what == events[i].what && e.thread == events[i].thread);
            ck_assert_uint_eq(e.time_ns, events[i].time_ns);
        }
        ck_assert_ptr_null(schedule_totals_of(log));
        ck_assert(size < here() || (i == n && error == NULL));
        n_cut_in_token += error != NULL;
        ck_assert(error == NULL || strstr(error, "the log is cut in ") != NULL);
        free(error);
        schedule_close(log);
    }
    ck_assert_uint_gt(n_cut_in_token, 100);
}

TEST(schedule_next__any_byte_that_is_damaged, "an answer, or a line with a place in the file") {
    put_all_kinds();
    struct schedule_log *log = opened();
    size_t n, n_refused = 0, n_read = 0, size = here();
    put_finish(hash_of(log, &n));
    schedule_close(log);
    size = here();
    for (size_t i = 0; i < size; i++) {
        const uint8_t is = bytes[i];
        const uint8_t others[] = {0, 1, 0x7F, 0x80, 0xFF, (uint8_t)(is + 1), (uint8_t)(is - 1), is ^ 0x40};
        for (size_t k = 0; k < sizeof others; k++) {
            unsigned long place = size + 1;
            bytes[i] = others[k];
            log = open_first(size);
            if (log != NULL) {
                hash_of(log, &n);
                schedule_close(log);
            }
            n_read += error == NULL;
            n_refused += error != NULL;
            if (error != NULL) {
                const char *said = strstr(error, "byte ");
                ck_assert(said != NULL && sscanf(said, "byte %lu: ", &place) == 1);
                ck_assert_msg(place <= size, "byte %zu is %u: %s", i, bytes[i], error);
                free(error);
            }
        }
        bytes[i] = is;
    }
    ck_assert_uint_gt(n_refused, 500);
    ck_assert_uint_gt(n_read, 100);
}

/* Long enough that it is not read at once. */
static size_t put_long_log(void) {
    size_t n = 0;
    for (begin(); here() < 300000; n++) {
        put_module("/usr/lib/a/name/of/some/length");
        put_site(n, n);
        put_op(SCHEDULE_YIELD, (uint32_t)n * 7, (uint32_t)n + 1);
    }
    return n;
}

TEST(schedule_next__a_long_log) {
    size_t n = put_long_log();
    struct schedule_log *log = opened();
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < n; i++) {
            char expected[64];
            struct schedule_event e = next(log);
            char *site = schedule_site(log, e.site);
            snprintf(expected, sizeof expected, "/usr/lib/a/name/of/some/length+0x%zx", i);
            ck_assert_uint_eq(e.thread, i * 7);
            ck_assert_str_eq(site, expected);
            free(site);
        }
        check_ends(log);
        schedule_rewind(log);
    }
    schedule_close(log);
}

TEST(schedule_next__a_file_that_becomes_shorter, "it is cut there, and its reader goes on") {
    size_t n = put_long_log(), i = 0;
    struct schedule_event e;
    struct schedule_log *log = open_named(here());
    ck_assert_ptr_nonnull(log);
    next(log);
    ck_assert_int_eq(truncate(path, 150000), 0);
    unlink(path);
    while (schedule_next(log, &e, &error))
        i++;
    ck_assert_msg(error == NULL || strstr(error, "the log is cut in ") != NULL, "%s", error);
    ck_assert(i > n / 3 && i < n * 2 / 3);
    free(error);
    schedule_close(log);
}
