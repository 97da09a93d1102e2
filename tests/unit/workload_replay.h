/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A trace in memory, and its replay on a machine where calls cost nothing and every thread has a core. */
#ifndef WORKLOAD_REPLAY_H
#define WORKLOAD_REPLAY_H

#include "workload.h"

#include <stdbool.h>
#include <stddef.h>

struct memory_trace {
    uint32_t n_threads;
    struct {
        struct sbt_trace_event *events;
        size_t n, room;
    } threads[WORKLOAD_MAX_THREADS];
    size_t n_events, fail_at; /* fail_at: the event that is refused, 0 none */
};

/* A workload_append; `to` is a struct memory_trace. */
int keep(void *to, uint32_t thread, const struct sbt_trace_event *event);
void discard(struct memory_trace *m);

/*
 * To the end; *held_ns is the work done under a mutex. Returns when thread 0 ended. Fails the test if a thread can not
 * go on, or calls what it may not. recorded: locks in their recorded order and exclusive; else the next one to come
 * takes it.
 */
uint64_t replay(const struct memory_trace *m, bool recorded, uint64_t *held_ns);

#endif
