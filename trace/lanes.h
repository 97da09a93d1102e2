/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace as a timeline of a fixed size: a lane for each thread, of equal cells, however many events there are. Part of
 * libsubutai-trace.so, as columns.h is; the report's pictures are drawn from it. Needs memory for what the caller wants
 * and one thread's cell, and none for events. Reads the threads of `lanes` from their beginning to their end, tens of
 * nanoseconds an event.
 *
 * The threads of a generated trace, which has no times of day, begin at 0 and run without a break.
 */
#ifndef SBT_TRACE_LANES_H
#define SBT_TRACE_LANES_H

#include "trace.h"

/* A call that may wait and took less has not waited: that is what a lock takes which is free. */
#define SBT_TRACE_WAIT_NS 1000

enum sbt_trace_activity {
    SBT_TRACE_ABSENT,  /* before the thread's first event or after its last one */
    SBT_TRACE_RUNNING, /* between calls, and in calls that do not wait */
    SBT_TRACE_SECTION, /* the same with a lock held; the object: the one that was locked last. Not in profiles */
    SBT_TRACE_JOINING, /* waits for another thread's end; the object: that thread */
    SBT_TRACE_WAITING, /* WAITING + t - 1: waits for an object of the type t, enum sbt_trace_type */
    SBT_TRACE_OUTSIDE = SBT_TRACE_WAITING + SBT_TRACE_N_TYPES - 1, /* waits for other processes, devices or time */
    SBT_TRACE_OFF_CPU /* between calls, without a lock held, if that took 10 us and more than twice its work */
};

enum { SBT_TRACE_LAYER_HELD = 1, SBT_TRACE_LAYER_WAITED = 2 };

struct sbt_trace_lanes {
    uint64_t from_ns, to_ns; /* what the cells share evenly; from_ns < to_ns */
    uint32_t n_lanes;
    const uint32_t *thread; /* of each lane */

    /* [lane][cell]: the activity and object that took most of the cell's time. Either may be NULL. */
    uint32_t n_cells;
    uint8_t *activity;
    uint32_t *object; /* SBT_TRACE_NONE: the activity has none */

    /* [layer][lane][cell]: was this object held in the cell, or waited for, if only for a moment? Zeroed by the caller.
     */
    uint32_t n_layers, n_layer_cells;
    const uint32_t *layer_object; /* ascending */
    uint8_t *layer;               /* SBT_TRACE_LAYER_ bits; NULL: not wanted */
};

/* When the last event of any thread ends; reads all events of generated traces and of those that are not whole.
 * 0, or -1 and *error. */
int sbt_trace_end(const struct sbt_trace *trace, uint64_t *end_ns, struct sbt_trace_error *error);

/* 0, or -1: *error says where the trace is damaged; what has been filled in by then has no meaning. */
int sbt_trace_read_lanes(const struct sbt_trace *trace, const struct sbt_trace_lanes *lanes,
                         struct sbt_trace_error *error);

#endif
