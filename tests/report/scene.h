/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A trace made by hand, and its report. */
#ifndef TESTS_REPORT_SCENE_H
#define TESTS_REPORT_SCENE_H

#include <unistd.h>

#include "lib/suite.h"
#include "report.h"
#include "scene_calls.h"

static struct {
    struct sbt_trace *trace;
    struct rep_report *report;
    char path[64];
} shown;

static void scene_begin(void) {
    snprintf(shown.path, sizeof shown.path, "scene.%d.sbt", (int)getpid());
    scene_write(shown.path);
}

/* The report of what was called. */
static const struct rep_report *scene_report(void) {
    struct sbt_trace_error error = {.offset = 0};
    ck_assert_int_eq(sbt_trace_finish(scene.writer), 0);
    shown.trace = sbt_trace_open(shown.path, &error);
    ck_assert_msg(shown.trace != NULL, "%s", error.reason);
    shown.report = rep_analyse(shown.trace, (struct rep_region){.size = 0}, NULL, NULL, &error);
    ck_assert_msg(shown.report != NULL, "%s", error.reason);
    return shown.report;
}

static void scene_end(void) {
    rep_free(shown.report);
    sbt_trace_close(shown.trace);
    unlink(shown.path);
}

#define CHECK_US(ns, us) ck_assert_uint_eq((ns), us_to_ns(us))

/* The sum of a waiter's waits for a holder at an object; 0: none. */
static inline uint64_t waited_for(const struct rep_report *r, uint32_t waiter, uint32_t holder, uint32_t object) {
    uint64_t ns = 0;
    for (size_t i = 0; i < r->n_pairs; i++)
        if (r->pairs[i].waiter == waiter && r->pairs[i].holder == holder && r->pairs[i].object == object)
            ns += r->pairs[i].sum.ns;
    return ns;
}

static inline const struct rep_advice *advice_of(const struct rep_report *r, enum rep_cause cause) {
    for (unsigned i = 0; i < r->n_advice; i++)
        if (r->advice[i].cause == cause)
            return &r->advice[i];
    return NULL;
}

#endif
