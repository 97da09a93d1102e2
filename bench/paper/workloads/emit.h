/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a model is written in: work, and calls in a thread's name. Events of different threads may be emitted in any
 * order that could have happened; the numbers of acquisitions, broadcasts and barrier generations follow that order.
 */
#ifndef WORKLOAD_EMIT_H
#define WORKLOAD_EMIT_H

#include "workload.h"

enum { WORKLOAD_MAX_OBJECTS = 256 };

struct workload {
    const struct workload_request *request;
    uint32_t size; /* index of n_threads in workload_sizes */
    workload_append *append;
    void *to;
    struct workload_counts *counts;
    int error; /* the first one; what follows it is not appended */
    uint64_t random;
    uint64_t held;                          /* mean work of a critical section, see workload_held */
    uint64_t work_ns[WORKLOAD_MAX_THREADS]; /* not yet in an event */
    struct {
        uint8_t type;
        uint32_t size;
        uint64_t order; /* acquisitions, signals and broadcasts, barrier arrivals */
    } objects[WORKLOAD_MAX_OBJECTS];
    uint32_t n_objects;
};

/* worker_ns or `mean`, +- the spread. */
uint64_t workload_draw(struct workload *w, uint64_t mean);
/* What the slowest of n draws of worker_ns is on average. */
uint64_t workload_slowest(const struct workload *w, uint32_t n);
/* Makes critical sections so long that `n` of them are `millionths` of `path_ns`. */
void workload_set_held(struct workload *w, uint64_t path_ns, uint64_t millionths, uint64_t n);
/* The i-th of `parts` about equal parts of `total` things; they add up. */
uint64_t workload_part(uint64_t total, uint64_t parts, uint64_t i);

uint32_t workload_init(struct workload *w, enum sbt_trace_type type, uint32_t size); /* by thread 0 */
void workload_work(struct workload *w, uint32_t thread, uint64_t ns);
void workload_create(struct workload *w, uint32_t thread);
void workload_lock(struct workload *w, uint32_t thread, uint32_t mutex);
void workload_hold(struct workload *w, uint32_t thread); /* the work of one critical section */
void workload_unlock(struct workload *w, uint32_t thread, uint32_t mutex);
/* lock, hold, unlock */
void workload_section(struct workload *w, uint32_t thread, uint32_t mutex);
/* Numbers of signals and broadcasts are per condition, from 1. Emit a wait after what ends it. */
uint64_t workload_broadcast(struct workload *w, uint32_t thread, uint32_t condition);
uint64_t workload_signal(struct workload *w, uint32_t thread, uint32_t condition);
void workload_wait(struct workload *w, uint32_t thread, uint32_t condition, uint32_t mutex, uint64_t ended_by);
void workload_barrier(struct workload *w, uint32_t thread, uint32_t barrier);
/* All threads but 0 end, thread 0 joins them, destroys all objects and ends. */
void workload_finish(struct workload *w);

void workload_bodytrack(struct workload *w);
void workload_streamcluster(struct workload *w);
void workload_x264(struct workload *w);
void workload_facesim(struct workload *w);

#endif
