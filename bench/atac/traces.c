/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces of small programs with any number of threads, for bench/atac/networks.
 *
 *   build/bench/atac/traces barrier|broadcast|streamcluster THREADS FILE
 *
 *   barrier        20 barriers with nothing between them
 *   broadcast      all threads but one wait at a condition, and are woken by one broadcast, twice. Before each of them
 *                  the broadcasting thread works for 200 us for each thread, so that all wait
 *   streamcluster  the steps of clustering.h, 21 of them
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clustering.h"
#include "trace.h"

enum { BARRIERS = 20, BROADCASTS = 2, EPISODES = 21, MOST = 1024, PACE_NS = 200000 };
enum { MUTEX, CONDITION, BARRIER }; /* numbers of the objects */

static struct sbt_trace_writer *writer;

static void put(uint32_t thread, struct sbt_trace_event event) {
    event.site = SBT_TRACE_NONE;
    int error = sbt_trace_append(writer, thread, &event);
    if (error == 0)
        return;
    fprintf(stderr, "traces: %s\n", strerror(error));
    exit(1);
}

static void put_thread(uint32_t thread, enum sbt_trace_op op, uint32_t other) {
    put(thread, (struct sbt_trace_event){.op = (uint8_t)op, .object = SBT_TRACE_NONE, .other = other});
}

static void put_barrier(uint32_t thread, uint64_t work) {
    put(thread, (struct sbt_trace_event){.op = SBT_TRACE_BARRIER_WAIT,
                                         .type = SBT_TRACE_BARRIER,
                                         .object = BARRIER,
                                         .other = SBT_TRACE_NONE,
                                         .work_ns = work});
}

static void put_mutex(uint32_t thread, enum sbt_trace_op op) {
    put(thread,
        (struct sbt_trace_event){.op = (uint8_t)op, .type = SBT_TRACE_MUTEX, .object = MUTEX, .other = SBT_TRACE_NONE});
}

static void put_condition(uint32_t thread, enum sbt_trace_op op, uint32_t mutex, uint64_t number, uint64_t work) {
    put(thread, (struct sbt_trace_event){.op = (uint8_t)op,
                                         .type = SBT_TRACE_COND,
                                         .object = CONDITION,
                                         .other = mutex,
                                         .order = number,
                                         .work_ns = work});
}

static void barriers(uint32_t n) {
    for (uint32_t k = 0; k < BARRIERS; k++)
        for (uint32_t i = 0; i < n; i++)
            put_barrier(i, 0);
}

static void streamcluster(uint32_t n) {
    for (uint32_t k = 0; k < EPISODES; k++)
        for (uint32_t i = 0; i < n; i++)
            put_barrier(i, clustering_work(i, n, k));
}

static void broadcasts(uint32_t n) {
    for (uint64_t k = 1; k <= BROADCASTS; k++) {
        for (uint32_t i = 1; i < n; i++) {
            put_mutex(i, SBT_TRACE_MUTEX_LOCK);
            put_condition(i, SBT_TRACE_COND_WAIT, MUTEX, k, 0);
            put_mutex(i, SBT_TRACE_MUTEX_UNLOCK);
        }
        put_condition(0, SBT_TRACE_COND_BROADCAST, SBT_TRACE_NONE, k, (uint64_t)PACE_NS * n);
    }
}

static int usage(void) {
    fprintf(stderr, "usage: traces barrier|broadcast|streamcluster THREADS FILE (2 to %d threads)\n", MOST);
    return 2;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*events)(uint32_t n);
    } programs[] = {{"barrier", barriers}, {"broadcast", broadcasts}, {"streamcluster", streamcluster}};
    size_t p = 0;
    uint32_t n = argc == 4 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    while (argc == 4 && p < 3 && strcmp(argv[1], programs[p].name) != 0)
        p++;
    if (argc != 4 || p == 3 || n < 2 || n > MOST)
        return usage();
    if ((writer = sbt_trace_create(argv[3], argv[1])) == NULL) {
        fprintf(stderr, "traces: %s: %s\n", argv[3], strerror(errno));
        return 1;
    }
    put(0, (struct sbt_trace_event){
               .op = SBT_TRACE_INIT, .type = SBT_TRACE_BARRIER, .object = BARRIER, .other = SBT_TRACE_NONE, .size = n});
    for (uint32_t i = 1; i < n; i++)
        put_thread(0, SBT_TRACE_THREAD_CREATE, i);
    programs[p].events(n);
    for (uint32_t i = 1; i < n; i++) {
        put_thread(i, SBT_TRACE_THREAD_END, SBT_TRACE_NONE);
        put_thread(0, SBT_TRACE_THREAD_JOIN, i);
    }
    put_thread(0, SBT_TRACE_THREAD_END, SBT_TRACE_NONE);
    int error = sbt_trace_finish(writer);
    if (error != 0)
        fprintf(stderr, "traces: %s: %s\n", argv[3], strerror(error));
    return error != 0;
}
