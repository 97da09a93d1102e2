/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "workload_replay.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

int keep(void *to, uint32_t thread, const struct sbt_trace_event *event) {
    struct memory_trace *m = to;
    if (m->fail_at && m->n_events + 1 == m->fail_at)
        return ENOSPC;
    ck_assert_uint_lt(thread, WORKLOAD_MAX_THREADS);
    if (m->threads[thread].n == m->threads[thread].room) {
        m->threads[thread].room = m->threads[thread].room * 2 + 64;
        m->threads[thread].events =
            realloc(m->threads[thread].events, m->threads[thread].room * sizeof *m->threads[thread].events);
        ck_assert_ptr_nonnull(m->threads[thread].events);
    }
    m->threads[thread].events[m->threads[thread].n++] = *event;
    m->n_events++;
    return 0;
}

void discard(struct memory_trace *m) {
    for (uint32_t i = 0; i < WORKLOAD_MAX_THREADS; i++)
        free(m->threads[i].events);
    free(m);
}

enum { MAX_OBJECTS = 256 };
enum { MAX_WAKES = 4096 };

struct replay {
    const struct memory_trace *m;
    bool recorded; /* locks in their recorded order, and exclusive; else the next one to come takes it */
    struct {
        size_t next;
        uint64_t now;
        bool live, waiting, arrived;
        uint32_t holds; /* a mutex, or SBT_TRACE_NONE */
        uint64_t held_ns;
    } threads[WORKLOAD_MAX_THREADS];
    struct {
        uint32_t size, n_arrived;
        uint64_t generation, latest[2]; /* barrier: when its last thread arrived; no thread is two generations ahead */
        uint64_t acquired;
        bool held;
        bool loose; /* a condition: woken without a mutex, so the order of locks says nothing about it */
    } objects[MAX_OBJECTS];
    uint64_t *woken[MAX_OBJECTS]; /* time + 1 of each signal or broadcast of a condition */
};

static bool take(struct replay *r, uint32_t thread, uint32_t mutex, uint64_t order) {
    ck_assert_uint_eq(r->threads[thread].holds, SBT_TRACE_NONE);
    ck_assert_uint_gt(order, 0);
    if (r->recorded && (r->objects[mutex].held || r->objects[mutex].acquired != order - 1))
        return false;
    r->objects[mutex].acquired++;
    r->objects[mutex].held = true;
    r->threads[thread].holds = mutex;
    return true;
}

static void release(struct replay *r, uint32_t thread, uint32_t mutex) {
    ck_assert_uint_eq(r->threads[thread].holds, mutex);
    r->objects[mutex].held = false;
    r->threads[thread].holds = SBT_TRACE_NONE;
}

/* False: it cannot go on yet. */
static bool step(struct replay *r, uint32_t t) {
    const struct sbt_trace_event *e = &r->m->threads[t].events[r->threads[t].next];
    uint64_t at = r->threads[t].now + e->work_ns, until = at;
    bool again = r->threads[t].waiting || r->threads[t].arrived;
    uint32_t o = e->object;
    if (o != SBT_TRACE_NONE)
        ck_assert_uint_lt(o, MAX_OBJECTS);
    if (r->threads[t].holds != SBT_TRACE_NONE && !again && e->op != SBT_TRACE_MUTEX_LOCK)
        r->threads[t].held_ns += e->work_ns;
    switch (e->op) {
    case SBT_TRACE_INIT:
        ck_assert_uint_eq(t, 0);
        r->objects[o].size = e->size;
        r->woken[o] = calloc(MAX_WAKES, sizeof *r->woken[o]);
        break;
    case SBT_TRACE_DESTROY:
        ck_assert(!r->objects[o].held && r->objects[o].n_arrived == 0 && r->objects[o].size != UINT32_MAX);
        r->objects[o].size = UINT32_MAX; /* once */
        break;
    case SBT_TRACE_THREAD_CREATE:
        ck_assert(!r->threads[e->other].live);
        r->threads[e->other].live = true;
        r->threads[e->other].now = at;
        break;
    case SBT_TRACE_THREAD_JOIN:
        if (r->threads[e->other].next < r->m->threads[e->other].n)
            return false;
        until = r->threads[e->other].now;
        break;
    case SBT_TRACE_THREAD_END:
        ck_assert_uint_eq(r->threads[t].next + 1, r->m->threads[t].n);
        ck_assert_uint_eq(r->threads[t].holds, SBT_TRACE_NONE);
        break;
    case SBT_TRACE_MUTEX_LOCK:
        if (!take(r, t, o, e->order))
            return false;
        break;
    case SBT_TRACE_MUTEX_UNLOCK:
        release(r, t, o);
        break;
    case SBT_TRACE_COND_SIGNAL:
    case SBT_TRACE_COND_BROADCAST:
        ck_assert_uint_lt(e->order, MAX_WAKES);
        ck_assert_uint_eq(r->woken[o][e->order], 0);
        r->woken[o][e->order] = at + 1;
        r->objects[o].loose |= r->threads[t].holds == SBT_TRACE_NONE;
        break;
    case SBT_TRACE_COND_WAIT:
        ck_assert_uint_gt(e->order, 0);
        ck_assert_uint_lt(e->order, MAX_WAKES);
        if (!r->threads[t].waiting) {
            /* In the recorded order no thread may wait for what has happened: that wake-up would be lost. */
            ck_assert(!r->recorded || r->objects[o].loose || !r->woken[o][e->order]);
            release(r, t, e->other);
            r->threads[t].waiting = true;
        }
        if (!r->woken[o][e->order] || !take(r, t, e->other, e->relock))
            return false;
        r->threads[t].waiting = false;
        until = r->woken[o][e->order] - 1;
        break;
    case SBT_TRACE_BARRIER_WAIT:
        if (!r->threads[t].arrived) {
            ck_assert_uint_eq(e->order, r->objects[o].generation + 1);
            r->threads[t].arrived = true;
            if (r->objects[o].n_arrived == 0 || at > r->objects[o].latest[e->order % 2])
                r->objects[o].latest[e->order % 2] = at;
            if (++r->objects[o].n_arrived == r->objects[o].size) {
                r->objects[o].n_arrived = 0;
                r->objects[o].generation++;
            }
        }
        if (r->objects[o].generation < e->order)
            return false;
        r->threads[t].arrived = false;
        until = r->objects[o].latest[e->order % 2];
        break;
    default:
        ck_abort_msg("op %d", e->op);
    }
    r->threads[t].now = until > at ? until : at;
    r->threads[t].next++;
    return true;
}

uint64_t replay(const struct memory_trace *m, bool recorded, uint64_t *held_ns) {
    struct replay *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->m = m;
    r->recorded = recorded;
    for (uint32_t i = 0; i < m->n_threads; i++)
        r->threads[i].holds = SBT_TRACE_NONE;
    r->threads[0].live = true;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < m->n_threads; i++)
            while (r->threads[i].live && r->threads[i].next < m->threads[i].n && step(r, i))
                moved = true;
    }
    *held_ns = 0;
    for (uint32_t i = 0; i < m->n_threads; i++) {
        ck_assert_msg(r->threads[i].next == m->threads[i].n, "thread %u is stuck at event %zu of %zu", i,
                      r->threads[i].next, m->threads[i].n);
        *held_ns += r->threads[i].held_ns;
    }
    uint64_t end = r->threads[0].now;
    for (uint32_t i = 0; i < MAX_OBJECTS; i++)
        free(r->woken[i]);
    free(r);
    return end;
}
