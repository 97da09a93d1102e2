/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace made by hand, call by call, and its report. Times are microseconds, in which a scene is easy to draw. Between
 * its calls a thread works, unless `sleeps` says otherwise.
 */
#ifndef TESTS_REPORT_SCENE_H
#define TESTS_REPORT_SCENE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/suite.h"
#include "report.h"
#include "trace.h"

enum { SCENE_THREADS = 32 };

static struct {
    struct sbt_trace_writer *writer;
    struct sbt_trace *trace;
    struct rep_report *report;
    double ended_us[SCENE_THREADS];
    double slept_us; /* of the gap before the next call */
    char path[64];
} scene;

static void scene_begin(void) {
    memset(scene.ended_us, 0, sizeof scene.ended_us);
    snprintf(scene.path, sizeof scene.path, "scene.%d.sbt", (int)getpid());
    scene.writer = sbt_trace_create_timed(scene.path, "a scene", "by hand");
    ck_assert_ptr_nonnull(scene.writer);
}

static inline void sleeps(double us) {
    scene.slept_us = us;
}

static uint64_t us_to_ns(double us) {
    return (uint64_t)(us * 1000 + 0.5);
}

/* A call of the thread's; what is left zero in `e` is filled in: no object, no other. */
static void call(uint32_t thread, double from_us, double to_us, struct sbt_trace_event e) {
    e.at_ns = us_to_ns(from_us);
    e.took_ns = us_to_ns(to_us) - e.at_ns;
    e.work_ns = e.at_ns - us_to_ns(scene.ended_us[thread]) - us_to_ns(scene.slept_us);
    scene.ended_us[thread] = to_us;
    scene.slept_us = 0;
    ck_assert_int_eq(sbt_trace_append(scene.writer, thread, &e), 0);
}

#define NO_OBJECT .object = SBT_TRACE_NONE, .other = SBT_TRACE_NONE
#define AT(number) .site = (number)

/* Calls of mutexes; `number`: of the acquisition. Calls of 0.1 us. */
static inline void lock(uint32_t thread, double from_us, double to_us, uint32_t mutex, uint64_t number, uint32_t site) {
    call(thread, from_us, to_us,
         (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_LOCK,
                                  .type = SBT_TRACE_MUTEX,
                                  .object = mutex,
                                  .other = SBT_TRACE_NONE,
                                  .order = number,
                                  AT(site)});
}

static inline void unlock(uint32_t thread, double at_us, uint32_t mutex) {
    call(thread, at_us, at_us + 0.1,
         (struct sbt_trace_event){
             .op = SBT_TRACE_MUTEX_UNLOCK, .type = SBT_TRACE_MUTEX, .object = mutex, .other = SBT_TRACE_NONE, AT(99)});
}

static inline void trylock(uint32_t thread, double at_us, uint32_t mutex, uint64_t number, uint16_t result) {
    call(thread, at_us, at_us + 0.1,
         (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_TRYLOCK,
                                  .type = SBT_TRACE_MUTEX,
                                  .object = mutex,
                                  .other = SBT_TRACE_NONE,
                                  .order = number,
                                  .result = result,
                                  AT(98)});
}

static inline void signal_(uint32_t thread, double at_us, uint32_t cond, uint64_t number, bool broadcast) {
    call(thread, at_us, at_us + 0.1,
         (struct sbt_trace_event){.op = broadcast ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_SIGNAL,
                                  .type = SBT_TRACE_COND,
                                  .object = cond,
                                  .other = SBT_TRACE_NONE,
                                  .order = number,
                                  AT(97)});
}

static inline void wait_(uint32_t thread, double from_us, double to_us, uint32_t cond, uint64_t number, uint32_t mutex,
                         uint64_t relock) {
    call(thread, from_us, to_us,
         (struct sbt_trace_event){.op = SBT_TRACE_COND_WAIT,
                                  .type = SBT_TRACE_COND,
                                  .object = cond,
                                  .other = mutex,
                                  .order = number,
                                  .relock = relock,
                                  AT(96)});
}

static inline void meet(uint32_t thread, double from_us, double to_us, uint32_t barrier, uint64_t generation,
                        uint32_t count) {
    call(thread, from_us, to_us,
         (struct sbt_trace_event){.op = SBT_TRACE_BARRIER_WAIT,
                                  .type = SBT_TRACE_BARRIER,
                                  .object = barrier,
                                  .other = SBT_TRACE_NONE,
                                  .order = generation,
                                  .size = count,
                                  AT(95)});
}

static inline void create(uint32_t thread, double at_us, uint32_t made) {
    call(thread, at_us, at_us + 10,
         (struct sbt_trace_event){.op = SBT_TRACE_THREAD_CREATE, .object = SBT_TRACE_NONE, .other = made, AT(94)});
}

static inline void join(uint32_t thread, double from_us, double to_us, uint32_t other) {
    call(thread, from_us, to_us,
         (struct sbt_trace_event){.op = SBT_TRACE_THREAD_JOIN, .object = SBT_TRACE_NONE, .other = other, AT(93)});
}

static inline void end(uint32_t thread, double at_us) {
    call(thread, at_us, at_us, (struct sbt_trace_event){.op = SBT_TRACE_THREAD_END, NO_OBJECT, AT(92)});
}

/* The report of what was called. */
static const struct rep_report *scene_report(void) {
    struct sbt_trace_error error = {.offset = 0};
    ck_assert_int_eq(sbt_trace_finish(scene.writer), 0);
    scene.trace = sbt_trace_open(scene.path, &error);
    ck_assert_msg(scene.trace != NULL, "%s", error.reason);
    scene.report = rep_analyse(scene.trace, (struct rep_region){.size = 0}, NULL, NULL, &error);
    ck_assert_msg(scene.report != NULL, "%s", error.reason);
    return scene.report;
}

static void scene_end(void) {
    rep_free(scene.report);
    sbt_trace_close(scene.trace);
    unlink(scene.path);
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
