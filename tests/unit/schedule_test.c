/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reader of schedule logs: each token by itself, and each way in which a log may be damaged, with its place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/suite.h"
#include "schedule_read.h"

enum { ROOM = 400000, HEADER = sizeof(struct schedule_header), TURN = 1000 };

static _Alignas(8) uint8_t bytes[ROOM];
static uint8_t *at;
static char path[64];
static char *error;

static void begin(void) {
    const struct schedule_header header = {
        .magic = SCHEDULE_MAGIC, .version = SCHEDULE_VERSION, .bytes = HEADER, .seed = 7, .turn_ns = TURN};
    memcpy(bytes, &header, sizeof header);
    at = bytes + sizeof header;
}

static void put(uint64_t number) {
    at = schedule_put(at, number);
}

static void put_kind(unsigned kind) {
    *at++ = (uint8_t)kind;
}

static void put_head(unsigned kind, uint32_t thread, uint64_t passed) {
    put_kind(kind);
    put(thread);
    put(passed);
}

static void put_op(enum schedule_op op, uint32_t thread, uint32_t site) {
    put_head(SCHEDULE_OP + op, thread, TURN);
    put(site);
}

static void put_module(const char *name) {
    put_kind(SCHEDULE_MODULE);
    put(strlen(name));
    at = (uint8_t *)stpcpy((char *)at, name);
}

static void put_site(uint64_t module, uint64_t offset) {
    put_kind(SCHEDULE_SITE);
    put(module);
    put(offset);
}

static void put_finish(uint64_t hash) {
    const struct schedule_totals totals = {.hash = hash};
    put_kind(SCHEDULE_FINISH);
    memcpy(at, &totals, sizeof totals);
    at += sizeof totals;
}

/* The name stays. */
static struct schedule_log *open_named(size_t n) {
    snprintf(path, sizeof path, "schedule-test.%d", (int)getpid());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    fclose(file);
    return schedule_open(path, &error);
}

static struct schedule_log *open_first(size_t n) {
    struct schedule_log *log = open_named(n);
    unlink(path);
    return log;
}

static struct schedule_log *opened(void) {
    struct schedule_log *log = open_first((size_t)(at - bytes));
    ck_assert_msg(log != NULL, "%s", error);
    return log;
}

static struct schedule_event next(struct schedule_log *log) {
    struct schedule_event e;
    ck_assert_msg(schedule_next(log, &e, &error), "%s", error != NULL ? error : "the log ends");
    return e;
}

static void check_ends(struct schedule_log *log) {
    struct schedule_event e;
    ck_assert(!schedule_next(log, &e, &error));
    ck_assert_msg(error == NULL, "%s", error);
}

/* The log is read up to a token that is refused, with that place and that reason. */
static void check_refused(size_t place, const char *reason) {
    char expected[256];
    struct schedule_event e;
    struct schedule_log *log = opened();
    while (schedule_next(log, &e, &error))
        ;
    snprintf(expected, sizeof expected, "byte %zu: %s", place, reason);
    ck_assert_msg(error != NULL, "not refused: %s", expected);
    ck_assert_msg(strstr(error, expected) != NULL, "%s, and not: %s", error, expected);
    free(error);
    schedule_close(log);
}

static void check_not_opened(size_t n, const char *reason) {
    struct schedule_log *log = open_first(n);
    ck_assert_ptr_null(log);
    ck_assert_msg(strstr(error, reason) != NULL, "%s, and not: %s", error, reason);
    free(error);
}

static size_t here(void) {
    return (size_t)(at - bytes);
}

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
                                       SCHEDULE_PCS_RETURN + 1,
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
