/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What happens when: events in the order of their times, and of those at the same time in the order they were put in.
 *
 * Nearly all events of a synchronization call are some hundred nanoseconds ahead: those go into a wheel with a slot for
 * each of the next SIM_WHEEL ns, where putting in and taking out is a few instructions and equals keep their order by
 * themselves. What is further ahead goes into a heap and is taken from there.
 */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "packet.h"

enum sim_event_kind { SIM_EV_CORE, SIM_EV_REQUEST, SIM_EV_SEND, SIM_EV_ANSWER, SIM_EV_TIMER, SIM_EV_BORN };

struct sim_event {
    uint64_t at;
    uint64_t sequence : 56;
    uint64_t kind : 8;
    union {
        struct hw_packet packet;
        struct {
            uint32_t index, generation; /* a core or thread; stale if the generation is not its own any more.
                                           SIM_EV_BORN: of this application */
        };
    };
    uint32_t next; /* in its slot of the wheel, or in the list of free ones; SIM_NO_EVENT: none */
};

#define SIM_WHEEL 4096
#define SIM_NO_EVENT UINT32_MAX

_Static_assert(SIM_WHEEL / 64 == 64, "one word tells which words have a bit");

struct sim_events {
    uint64_t now;
    uint64_t sequence;
    struct sim_event *pool; /* of the wheel's events */
    uint32_t n_pool, free;
    struct {
        uint32_t first, last;
    } slot[SIM_WHEEL];
    uint64_t used[SIM_WHEEL / 64]; /* a bit for each slot that is not empty */
    uint64_t used_words;           /* a bit for each word of them */
    struct sim_event *heap;
    uint32_t n_heap, heap_capacity;
    bool no_memory; /* an event was lost for want of memory */
    bool past;      /* one was to happen before now, and was refused */
};

bool sim_events_init(struct sim_events *e);
void sim_events_free(struct sim_events *e);

/* ---- what is not the usual case ---- */

bool sim_events_grow(struct sim_events *e);
void sim_events_put_far(struct sim_events *e, uint64_t at, const struct sim_event *event);
void sim_events_take_far(struct sim_events *e, struct sim_event *event);

static inline bool sim_event_before(const struct sim_event *a, const struct sim_event *b) {
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

/* ---- both ---- */

/* at >= now, or it is refused. Only kind and the union are used of *event. */
static inline void sim_events_put(struct sim_events *e, uint64_t at, const struct sim_event *event) {
    if (at - e->now >= SIM_WHEEL) {
        if (at < e->now)
            e->past = true;
        else
            sim_events_put_far(e, at, event);
        return;
    }
    if (e->free == SIM_NO_EVENT && !sim_events_grow(e)) {
        e->no_memory = true;
        return;
    }
    uint32_t i = e->free, s = at % SIM_WHEEL;
    struct sim_event *own = &e->pool[i];
    uint64_t bit = UINT64_C(1) << s % 64;
    e->free = own->next;
    own->at = at;
    own->sequence = e->sequence++;
    own->kind = event->kind;
    own->packet = event->packet;
    own->next = SIM_NO_EVENT;
    if (e->used[s / 64] & bit) {
        e->pool[e->slot[s].last].next = i;
    } else {
        e->slot[s].first = i;
        e->used[s / 64] |= bit;
        e->used_words |= UINT64_C(1) << s / 64;
    }
    e->slot[s].last = i;
}

/* The first slot that is not empty, from now's on and round; there is one. */
static inline uint32_t sim_events_first_slot(const struct sim_events *e) {
    uint32_t from = e->now % SIM_WHEEL, word = from / 64;
    uint64_t here = e->used[word] & UINT64_MAX << from % 64;
    if (here == 0) {
        uint64_t later = e->used_words & UINT64_MAX << word << 1;
        word = (uint32_t)__builtin_ctzll(later != 0 ? later : e->used_words);
        here = e->used[word]; /* round to now's own word again: its bits below now's */
    }
    return word * 64 + (uint32_t)__builtin_ctzll(here);
}

/* The next event, and now is when it happens. False: there is none. */
static inline bool sim_events_take(struct sim_events *e, struct sim_event *event) {
    uint32_t s = e->used_words != 0 ? sim_events_first_slot(e) : SIM_NO_EVENT;
    if (s == SIM_NO_EVENT && e->n_heap == 0)
        return false;
    if (s == SIM_NO_EVENT || (e->n_heap > 0 && sim_event_before(&e->heap[0], &e->pool[e->slot[s].first]))) {
        sim_events_take_far(e, event);
        e->now = event->at;
        return true;
    }
    uint32_t i = e->slot[s].first;
    struct sim_event *own = &e->pool[i];
    e->now = own->at;
    event->kind = own->kind;
    event->packet = own->packet;
    e->slot[s].first = own->next;
    if (own->next == SIM_NO_EVENT) {
        e->used[s / 64] &= ~(UINT64_C(1) << s % 64);
        if (e->used[s / 64] == 0)
            e->used_words &= ~(UINT64_C(1) << s / 64);
    }
    own->next = e->free;
    e->free = i;
    return true;
}

#endif
