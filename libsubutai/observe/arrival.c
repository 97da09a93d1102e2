/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arrivals at the end of an OpenMP region (openmp.c). A worker waits there for the others, and then for the next
 * region, in one call of the run-time library's. When the last thread came is noted in the barrier's node, so one wait
 * becomes two events: until then at the barrier, and from then on for the next region. A thread that never gets another
 * region has an arrival when the trace ends, and that is the first of the two.
 */
#include "observe/profile.h"

static uint64_t above_zero(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

void rec_arrived(struct rec_call *c) {
    struct rec_thread *t = c->thread;
    if (t == NULL || c->nested || c->event.order == 0 || !rec_busy_begin(t))
        return;
    t->arrival = c->event;
    t->arrival.at_ns = above_zero(c->begin_ns, rec.start_ns);
    t->has_arrived = true;
    if (c->said_to_wait_for != NULL) /* no call that ends waits looks for this one */
        rec_profile_end_wait(c->said_to_wait_for);
    c->said_to_wait_for = NULL;
    rec_busy_end(t);
}

/* SHORT_IDLE_NS: of less than that no event is made, as between tasks that lie ready. */
enum { SHORT_IDLE_NS = 1000 };

void rec_interrupt(struct rec_call *c, struct sbt_trace_event *as, const void *object) {
    struct rec_thread *t = c->thread;
    if (t == NULL || c->nested || !rec_busy_begin(t))
        return;
    rec_settle();
    uint64_t now = rec_now_ns(), took = above_zero(now, c->begin_ns);
    t->has_arrived = false;
    if (took < SHORT_IDLE_NS) {
        t->carried_ns += c->event.work_ns;
    } else {
        as->object = rec_number_of(t, as->type, (uintptr_t)object);
        as->work_ns = c->event.work_ns;
        as->at_ns = above_zero(c->begin_ns, rec.start_ns);
        as->took_ns = took;
        rec_put(t, as);
    }
    rec_left(c, took, now);
}

/*
 * When the last threads came, for a while: a worker looks when it gets the next region. By two hashes of object and
 * generation, in two places: each may be taken over, both seldom are. A place's key is written last, and is 0
 * meanwhile; all atomic.
 */
enum { LOG_PLACES = 12, N_PLACES = 1 << LOG_PLACES };
static struct place { uint64_t key, ns; } whole[2][N_PLACES];

static uint64_t key_of(uint32_t object, uint64_t generation) {
    return ((uint64_t)object + 1) << 40 | (generation & ((UINT64_C(1) << 40) - 1));
}

static struct place *place_of(unsigned way, uint64_t key) {
    static const uint64_t factors[2] = {UINT64_C(0x9E3779B97F4A7C15), UINT64_C(0xD6E8FEB86659FD93)};
    return &whole[way][key * factors[way] >> (64 - LOG_PLACES)];
}

void rec_all_arrived(uint32_t object, uint64_t generation, uint64_t ns) {
    uint64_t key = key_of(object, generation);
    for (unsigned way = 0; way < 2; way++) {
        struct place *place = place_of(way, key);
        __atomic_store_n(&place->key, 0, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        __atomic_store_n(&place->ns, ns, __ATOMIC_RELAXED);
        __atomic_store_n(&place->key, key, __ATOMIC_RELEASE);
    }
}

/* 0: it is not known. If two threads write a place at once the time may be the other one's: see the callers. */
static uint64_t whole_ns(uint32_t object, uint64_t generation) {
    uint64_t key = key_of(object, generation);
    for (unsigned way = 0; way < 2; way++) {
        const struct place *place = place_of(way, key);
        if (__atomic_load_n(&place->key, __ATOMIC_ACQUIRE) != key)
            continue;
        uint64_t ns = __atomic_load_n(&place->ns, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&place->key, __ATOMIC_RELAXED) == key)
            return ns;
    }
    return 0;
}

void rec_put_arrival(struct rec_thread *t) {
    uint64_t ns = t->has_arrived ? whole_ns(t->arrival.object, t->arrival.order) : 0;
    t->has_arrived = false;
    if (ns == 0 || ns > rec_now_ns())
        return;
    t->arrival.took_ns = above_zero(ns, rec.start_ns + t->arrival.at_ns);
    rec_put(t, &t->arrival);
    rec_encode_full(t);
}

void rec_end_arrival(struct rec_thread *t) {
    if (!t->has_arrived || !rec_busy_begin(t))
        return;
    rec_put_arrival(t);
    struct rec_call c = {.thread = t, .begin_ns = t->end_ns, .event = t->arrival};
    uint64_t now = rec_now_ns();
    rec_left(&c, above_zero(now, c.begin_ns), now);
}

void rec_leave_then(struct rec_call *c, const struct sbt_trace_event *then) {
    struct rec_thread *t = c->thread;
    if (t == NULL || c->nested || !rec_busy_begin(t))
        return;
    rec_settle();
    uint64_t now = rec_now_ns(), took = above_zero(now, c->begin_ns);
    uint64_t ns = above_zero(whole_ns(c->event.object, c->event.order), c->begin_ns);
    struct sbt_trace_event rest = *then;
    t->has_arrived = false;
    c->event.at_ns = above_zero(c->begin_ns, rec.start_ns);
    c->event.took_ns = ns < took ? ns : took;
    c->event.stack = 0;
    rec_put(t, &c->event);
    rec_encode_full(t);
    rest.at_ns = c->event.at_ns + c->event.took_ns;
    if (then->at_ns < rest.at_ns)
        rest.order = 0;
    rest.took_ns = took - c->event.took_ns;
    rec_put(t, &rest);
    rec_left(c, took, now);
}
