/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Schedule logs that the reader's tests write, token by token, into memory; then they are files that are read. */
#ifndef TESTS_UNIT_SCHEDULE_WRITING_H
#define TESTS_UNIT_SCHEDULE_WRITING_H

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

static inline void begin(void) {
    const struct schedule_header header = {
        .magic = SCHEDULE_MAGIC, .version = SCHEDULE_VERSION, .bytes = HEADER, .seed = 7, .turn_ns = TURN};
    memcpy(bytes, &header, sizeof header);
    at = bytes + sizeof header;
}

static inline void put(uint64_t number) {
    at = schedule_put(at, number);
}

static inline void put_kind(unsigned kind) {
    *at++ = (uint8_t)kind;
}

static inline void put_head(unsigned kind, uint32_t thread, uint64_t passed) {
    put_kind(kind);
    put(thread);
    put(passed);
}

static inline void put_op(enum schedule_op op, uint32_t thread, uint32_t site) {
    put_head(SCHEDULE_OP + op, thread, TURN);
    put(site);
}

static inline void put_module(const char *name) {
    put_kind(SCHEDULE_MODULE);
    put(strlen(name));
    at = (uint8_t *)stpcpy((char *)at, name);
}

static inline void put_site(uint64_t module, uint64_t offset) {
    put_kind(SCHEDULE_SITE);
    put(module);
    put(offset);
}

static inline void put_finish(uint64_t hash) {
    const struct schedule_totals totals = {.hash = hash};
    put_kind(SCHEDULE_FINISH);
    memcpy(at, &totals, sizeof totals);
    at += sizeof totals;
}

/* The name stays. */
static inline struct schedule_log *open_named(size_t n) {
    snprintf(path, sizeof path, "schedule-test.%d", (int)getpid());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    fclose(file);
    return schedule_open(path, &error);
}

static inline struct schedule_log *open_first(size_t n) {
    struct schedule_log *log = open_named(n);
    unlink(path);
    return log;
}

static inline struct schedule_log *opened(void) {
    struct schedule_log *log = open_first((size_t)(at - bytes));
    ck_assert_msg(log != NULL, "%s", error);
    return log;
}

static inline struct schedule_event next(struct schedule_log *log) {
    struct schedule_event e;
    ck_assert_msg(schedule_next(log, &e, &error), "%s", error != NULL ? error : "the log ends");
    return e;
}

static inline void check_ends(struct schedule_log *log) {
    struct schedule_event e;
    ck_assert(!schedule_next(log, &e, &error));
    ck_assert_msg(error == NULL, "%s", error);
}

/* The log is read up to a token that is refused, with that place and that reason. */
static inline void check_refused(size_t place, const char *reason) {
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

static inline size_t here(void) {
    return (size_t)(at - bytes);
}

#endif
