/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace as large as one likes, for measuring the report: report-trace FILE EVENTS. Sixteen threads take one hot lock
 * and their own locks, hand work through a bounded queue, and meet at a barrier, on a clock that this program makes up.
 * The same arguments give the same file.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

enum { THREADS = 16, OWN = 4096, HOT = 0, QUEUE = 1, NOT_EMPTY = 2, MEETING = 3, FIRST_OWN = 4 };

static struct sbt_trace_writer *writer;
static uint64_t at[THREADS], lock_free_ns[FIRST_OWN + THREADS * OWN], n_taken[FIRST_OWN + THREADS * OWN];
static uint64_t n_events, n_signals, n_generations, state = 1;

static uint64_t draw(uint64_t below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static void put(uint32_t thread, struct sbt_trace_event e) {
    e.at_ns = at[thread] + e.work_ns;
    at[thread] = e.at_ns + e.took_ns;
    int error = sbt_trace_append(writer, thread, &e);
    if (error != 0) {
        fprintf(stderr, "report-trace: %s\n", strerror(error));
        exit(1);
    }
    n_events++;
}

static struct sbt_trace_event event(enum sbt_trace_op op, enum sbt_trace_type type, uint32_t object, uint64_t work_ns,
                                    uint64_t took_ns) {
    return (struct sbt_trace_event){.op = (uint8_t)op,
                                    .type = (uint8_t)type,
                                    .object = object,
                                    .other = SBT_TRACE_NONE,
                                    .site = object < FIRST_OWN ? object * 8 + (uint32_t)op : 64 + (uint32_t)op,
                                    .work_ns = work_ns,
                                    .took_ns = took_ns};
}

static void section(uint32_t thread, uint32_t object, uint64_t hold_ns) {
    uint64_t work_ns = 200 + draw(400), from_ns = at[thread] + work_ns;
    uint64_t got_ns = from_ns + 40 > lock_free_ns[object] ? from_ns + 40 : lock_free_ns[object] + 3000;
    struct sbt_trace_event e = event(SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, object, work_ns, got_ns - from_ns);
    e.order = ++n_taken[object];
    put(thread, e);
    put(thread, event(SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, object, hold_ns, 40));
    lock_free_ns[object] = at[thread] - 40;
}

static void hand_over(uint32_t from, uint32_t to) {
    struct sbt_trace_event e = event(SBT_TRACE_COND_SIGNAL, SBT_TRACE_COND, NOT_EMPTY, 500, 100);
    e.order = ++n_signals;
    put(from, e);
    uint64_t got_ns = at[from] + 5000 > at[to] + 1000 ? at[from] + 5000 : at[to] + 1000;
    struct sbt_trace_event w = event(SBT_TRACE_COND_WAIT, SBT_TRACE_COND, NOT_EMPTY, 100, got_ns - at[to] - 100);
    w.other = QUEUE;
    w.order = e.order;
    w.relock = ++n_taken[QUEUE];
    struct sbt_trace_event l = event(SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, QUEUE, 0, 30);
    l.order = n_taken[QUEUE]++;
    w.relock = n_taken[QUEUE];
    put(to, l);
    w.took_ns = w.took_ns > 30 ? w.took_ns - 30 : 0;
    put(to, w);
    put(to, event(SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, QUEUE, 100, 30));
}

static void meet(void) {
    uint64_t last_ns = 0;
    n_generations++;
    for (uint32_t t = 0; t < THREADS; t++)
        last_ns = at[t] + 100 > last_ns ? at[t] + 100 : last_ns;
    for (uint32_t t = 0; t < THREADS; t++) {
        struct sbt_trace_event e =
            event(SBT_TRACE_BARRIER_WAIT, SBT_TRACE_BARRIER, MEETING, 100, last_ns - at[t] - 100 + 2000 + t * 500);
        e.order = n_generations;
        e.size = n_generations == 1 ? THREADS : 0;
        put(t, e);
    }
}

int main(int argc, char **argv) {
    uint64_t wanted = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (wanted == 0) {
        fprintf(stderr, "usage: report-trace FILE EVENTS\n");
        return 2;
    }
    if ((writer = sbt_trace_create_timed(argv[1], "report-trace", "made up")) == NULL) {
        fprintf(stderr, "report-trace: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    for (uint64_t round = 0; n_events < wanted; round++) {
        uint32_t thread = (uint32_t)(round % THREADS);
        for (uint32_t other = 0; other < THREADS; other++) /* the thread that is behind goes on */
            thread = at[other] < at[thread] ? other : thread;
        for (int i = 0; i < 3; i++)
            section(thread, FIRST_OWN + thread * OWN + (uint32_t)draw(OWN), 100);
        if (round % 4 == 0)
            section(thread, HOT, 1000);
        if (round % 32 == 1 && thread > 0)
            hand_over(thread, thread - 1);
        if (round % 512 == 511)
            meet();
    }
    int error = sbt_trace_finish(writer);
    if (error != 0)
        fprintf(stderr, "report-trace: %s: %s\n", argv[1], strerror(error));
    return error != 0;
}
