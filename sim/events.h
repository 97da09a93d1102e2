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

enum sim_event_kind { SIM_EV_CORE, SIM_EV_REQUEST, SIM_EV_SEND, SIM_EV_ANSWER, SIM_EV_TIMER };

struct sim_event {
    uint64_t at;
    uint64_t sequence : 56;
    uint64_t kind : 8;
    union {
        struct hw_packet packet;
        struct {
            uint32_t index, generation; /* a core or thread; stale if the generation is not its own any more */
        };
    };
    uint32_t next; /* in its slot of the wheel, or in the list of free ones; NO_EVENT: none */
};

#define SIM_WHEEL 4096

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

/* at >= now, or it is refused. Only kind and the union are used of *event. */
void sim_events_put(struct sim_events *e, uint64_t at, const struct sim_event *event);

/* The next event, and now is when it happens. False: there is none. */
bool sim_events_take(struct sim_events *e, struct sim_event *event);

#endif
