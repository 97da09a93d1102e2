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
#include <stddef.h>
#include <stdint.h>

#include "packet.h"

enum sim_event_kind { SIM_EV_CORE, SIM_EV_REQUEST, SIM_EV_SEND, SIM_EV_ANSWER, SIM_EV_TIMER, SIM_EV_BORN };

struct sim_event {
    uint32_t kind;
    union {
        struct hw_packet packet;
        struct {
            uint32_t index, generation; /* a core or thread; stale if the generation is not its own any more.
                                           SIM_EV_BORN: of this application */
        };
    };
};

#define SIM_WHEEL 4096
#define SIM_NO_EVENT UINT32_MAX

_Static_assert(SIM_WHEEL / 64 == 64, "one word tells which words have a bit");

struct sim_near {
    struct sim_event event;
    uint32_t next;     /* in its slot of the wheel, round, or in the list of free ones; SIM_NO_EVENT: none */
    const void *about; /* what it will look at, only to have it in the host's cache by then */
};

struct sim_far {
    uint64_t at, sequence;
    struct sim_event event;
};

struct sim_events {
    uint64_t now;
    struct sim_near *pool; /* of the wheel's events */
    uint32_t n_pool, free;
    uint64_t used_words;           /* a bit for each word of `used` that is not 0 */
    uint64_t used[SIM_WHEEL / 64]; /* a bit for each slot that is not empty */
    uint32_t slot[SIM_WHEEL];      /* its last event, whose next is its first */
    uint64_t far_at;               /* the heap's first; UINT64_MAX: none */
    uint64_t sequence;
    struct sim_far *heap;
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

/* ---- both ---- */

/*
 * at >= now, or it is refused. The words of the union one by one: what has just been written in words and is then read
 * by twos has to wait until it has left the host's core.
 */
static inline void sim_events_put_words(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0,
                                        uint32_t word1, uint32_t word2, const void *about) {
    if (__builtin_expect(at - e->now >= SIM_WHEEL, 0)) { /* also if it is before now */
        struct sim_event event = {.kind = kind, .packet = {{word0, word1, word2}}};
        sim_events_put_far(e, at, &event);
        return;
    }
    if (__builtin_expect(e->free == SIM_NO_EVENT, 0) && !sim_events_grow(e)) {
        e->no_memory = true;
        return;
    }
    uint32_t i = e->free, s = at % SIM_WHEEL;
    struct sim_near *own = &e->pool[i];
    uint64_t bit = UINT64_C(1) << s % 64;
    e->free = own->next;
    own->event.kind = kind;
    own->event.packet.flit[0] = word0;
    own->event.packet.flit[1] = word1;
    own->event.packet.flit[2] = word2;
    own->about = about;
    own->next = i;
    if (__builtin_expect((e->used[s / 64] & bit) != 0, 0)) {
        struct sim_near *last = &e->pool[e->slot[s]];
        own->next = last->next;
        last->next = i;
    }
    e->used[s / 64] |= bit;
    e->used_words |= UINT64_C(1) << s / 64;
    e->slot[s] = i;
}

static inline void sim_events_put(struct sim_events *e, uint64_t at, const struct sim_event *event) {
    sim_events_put_words(e, at, (enum sim_event_kind)event->kind, event->packet.flit[0], event->packet.flit[1],
                         event->packet.flit[2], NULL);
}

static inline void sim_events_put_packet(struct sim_events *e, uint64_t at, enum sim_event_kind kind,
                                         const struct hw_packet *packet, const void *about) {
    sim_events_put_words(e, at, kind, packet->flit[0], packet->flit[1], packet->flit[2], about);
}

/*
 * The next event, and now is when it happens. False: there is none. Of those at the same time the heap's are first:
 * they were put in when the wheel did not reach so far yet.
 */
static inline bool sim_events_take(struct sim_events *e, struct sim_event *event) {
    if (__builtin_expect(e->used_words == 0, 0)) {
        if (e->n_heap == 0)
            return false;
        sim_events_take_far(e, event);
        return true;
    }
    /* The first slot that is not empty, from now's on and round. */
    uint32_t from = e->now % SIM_WHEEL, word = from / 64;
    uint64_t here = e->used[word] & UINT64_MAX << from % 64;
    if (here == 0) {
        uint64_t later = e->used_words & UINT64_MAX << word << 1;
        word = (uint32_t)__builtin_ctzll(later != 0 ? later : e->used_words);
        here = e->used[word]; /* round to now's own word again: its bits below now's */
    }
    uint32_t s = word * 64 + (uint32_t)__builtin_ctzll(here);
    uint64_t at = e->now + ((s - from) % SIM_WHEEL);
    if (__builtin_expect(e->far_at <= at, 0)) {
        sim_events_take_far(e, event);
        return true;
    }
    struct sim_near *last = &e->pool[e->slot[s]];
    uint32_t i = last->next;
    struct sim_near *own = &e->pool[i];
    e->now = at;
    *event = own->event;
    if (__builtin_expect(own != last, 0))
        last->next = own->next;
    else if ((e->used[word] ^= here & -here) == 0)
        e->used_words &= ~(UINT64_C(1) << word);
    own->next = e->free;
    e->free = i;
    /* Usually the one after it is at hand, too. */
    uint64_t rest = here & (here - 1);
    if (rest != 0) {
        uintptr_t about = (uintptr_t)e->pool[e->slot[word * 64 + (uint32_t)__builtin_ctzll(rest)]].about;
        for (size_t k = 0; k < 6; k++)
            __builtin_prefetch((const void *)(about + 64 * k));
    }
    return true;
}

#endif
