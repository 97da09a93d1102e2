/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace made by hand, call by call. Times are microseconds, in which a scene is easy to draw. Between its calls a
 * thread works, unless `sleeps` says otherwise.
 */
#ifndef TESTS_REPORT_SCENE_CALLS_H
#define TESTS_REPORT_SCENE_CALLS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

enum { SCENE_THREADS = 32 };

static struct {
    struct sbt_trace_writer *writer;
    double ended_us[SCENE_THREADS];
    double slept_us; /* of the gap before the next call */
} scene;

static void scene_must(bool condition) {
    if (!condition) {
        perror("scene");
        abort();
    }
}

static void scene_write(const char *path) {
    memset(scene.ended_us, 0, sizeof scene.ended_us);
    scene.writer = sbt_trace_create_timed(path, "a scene", "by hand");
    scene_must(scene.writer != NULL);
}

static inline void sleeps(double us) {
    scene.slept_us = us;
}

static inline uint64_t us_to_ns(double us) {
    return (uint64_t)(us * 1000 + 0.5);
}

/* A call of the thread's; what is left zero in `e` is filled in: no object, no other. */
static void call(uint32_t thread, double from_us, double to_us, struct sbt_trace_event e) {
    e.at_ns = us_to_ns(from_us);
    e.took_ns = us_to_ns(to_us) - e.at_ns;
    e.work_ns = e.at_ns - us_to_ns(scene.ended_us[thread]) - us_to_ns(scene.slept_us);
    scene.ended_us[thread] = to_us;
    scene.slept_us = 0;
    scene_must(sbt_trace_append(scene.writer, thread, &e) == 0);
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

#endif
