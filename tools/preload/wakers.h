/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which call ended which wait, for the arrows of `subutai trace to-perfetto`. By the numbers that trace.h defines: an
 * acquisition was made possible by the end of the one before it, a wait for a condition by the signal of its number, a
 * barrier by the last arrival, a join by the thread's end.
 */
#ifndef CMD_WAKERS_H
#define CMD_WAKERS_H

#include "trace_events.h"

struct wakers;

/*
 * Reads the trace twice. Needs 60 bytes for each wait, and 16 for each object. A wait is a call that may wait and took
 * a microsecond or more. Refuses a damaged trace.
 */
struct wakers *wakers_find(const struct trace_request *r, const struct sbt_trace *trace);
void wakers_free(struct wakers *w);

/* How many waits have a known end. */
size_t wakers_count(const struct wakers *w);

/*
 * The two questions below are asked for all events in the order of wakers_read: thread by thread, from the beginning.
 * The number of the wait that this call was, from 1; 0: it was none, or what ended it is not known.
 */
uint32_t wakers_wait(struct wakers *w, uint32_t thread, uint64_t index);
/* The number of one wait that this call ended; again for the next one; 0: it ended no more. */
uint32_t wakers_ended(struct wakers *w, uint32_t thread, uint64_t index);
/*
 * The thread that had the lock when this call for it timed out, in the same order of questions; SBT_TRACE_NONE: it is
 * no such call, or no thread is known.
 */
uint32_t wakers_holder(struct wakers *w, uint32_t thread, uint64_t index);
/* When what ended this wait was called; of a join, when the thread had ended. */
uint64_t wakers_release_ns(const struct wakers *w, uint32_t wait);

/* A walk over the events of all threads. Times of generated traces are as if each thread ran from 0 on. */
struct wakers_walk {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event event;
    uint32_t thread;
    uint64_t index; /* of the event, in its thread */
    uint64_t clock_ns;
    bool begun;
};
/* The next event; false at the end. All-zero: before the first one. */
bool wakers_read(const struct trace_request *r, const struct sbt_trace *trace, struct wakers_walk *walk);

#endif
