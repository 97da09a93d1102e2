/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What happens when: events in the order of their times. Events at the same time come in the order in which they were
 * put in, but for those of sim_events_put_first, which come before the others.
 *
 * Nearly all events of a synchronization call are some hundred nanoseconds ahead. They go into a wheel with a slot for
 * each of the next SIM_WHEEL ns. There putting in and taking out takes a few instructions, and equal times keep their
 * order.
 *
 * Events that are further ahead mostly are one of a few lengths ahead: what a wake-up takes, or a thread's last yields.
 * The times of events of one length ascend. So such an event goes behind the last one of a lane: the first lane with no
 * later event. If each lane has one it goes into a heap.
 *
 * (This is no library's queue: those do not use that distances are small or the same, and cost a tree's depth for each
 * event. A wheel of wheels, which the kernel's timers have, was slower here: it costs two slots for each event.)
 */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "line.h"
#include "packet.h"

enum sim_event_kind {
    SIM_EV_CORE,
    SIM_EV_REQUEST,
    SIM_EV_SEND,
    SIM_EV_ANSWER,
    SIM_EV_TIMER,
    SIM_EV_BORN,
    SIM_EV_SEARCH,
    SIM_EV_FIBER,
    SIM_EV_MESSAGE
};

struct sim_event {
    uint32_t kind;
    union {
        struct hw_packet packet;
        struct {
            /*
             * of a core or thread: the event is stale if its generation differs. SIM_EV_BORN: of a thread, and its
             * application. SIM_EV_FIBER: of a simulated thread.
             * SIM_EV_MESSAGE: a core, and the generation of its port in the third word
             */
            uint32_t index, generation;
        };
    };
};

#define SIM_WHEEL 4096
/* Less than a round, so the word of `used` that contains the present time has only slots of this round. */
#define SIM_REACH (SIM_WHEEL - 64)
#define SIM_NO_EVENT UINT32_MAX

enum {
    SIM_KIND_BITS = 4,
    SIM_LANES = 4,
    SIM_PREFETCH_LINES = 6, /* the part of a thread that most calls look at, */
    SIM_PREFETCH_HOST = 12, /* and what they look at on the host: from that line on, */
    SIM_PREFETCH_HOST_LINES = 3
};

_Static_assert(SIM_WHEEL / 64 == 64, "used_words has a bit for each word of `used`");
_Static_assert(SIM_EV_MESSAGE < 1 << SIM_KIND_BITS, "a slot has the kind in that many bits");

struct sim_near {
    struct sim_event event;
    uint32_t next;     /* the next event in its slot of the wheel, or in the list of free ones; SIM_NO_EVENT: none */
    uint32_t last;     /* in a slot's first event: the slot's last */
    const void *about; /* memory that its function will look at: prefetched into the host's cache */
};

struct sim_far {
    uint64_t at, sequence; /* when it happens; in which order it was put in */
    struct sim_event event;
};

/* A ring of far events in the order of their times. */
struct sim_lane {
    struct sim_far *ring;
    uint32_t first, n, capacity; /* events; the capacity is 0 or a power of two */
    uint64_t last_at;            /* time of its last event, which may have been taken */
};

struct sim_events {
    uint64_t now;
    struct sim_near *pool; /* the wheel's events */
    uint32_t n_pool, free;
    uint64_t used_words;           /* a bit for each word of `used` that is not 0 */
    uint64_t used[SIM_WHEEL / 64]; /* a bit for each slot that is not empty */
    /*
     * The number of the slot's first event, and in the low bits that event's kind. So the next function is known before
     * the event is loaded.
     */
    uint32_t slot[SIM_WHEEL];
    uint64_t far_at;                 /* time of the first far event; UINT64_MAX: none */
    uint32_t far_kind;               /* its kind, */
    uint32_t far_lane;               /* and where it is: SIM_LANES is the heap */
    uint64_t lane_at[SIM_LANES + 1]; /* time of the first event there; UINT64_MAX: none */
    struct sim_lane lane[SIM_LANES]; /* lane 0 is of sim_events_put_first */
    uint64_t sequence;
    struct sim_event taken; /* the last event that was taken from the heap */
    struct sim_far *heap;
    uint32_t n_heap, heap_capacity;
    bool no_memory; /* an event was lost for want of memory */
    bool past;      /* an event was refused, because its time had passed */
};

bool sim_events_init(struct sim_events *e);
void sim_events_free(struct sim_events *e);

/* ---- the unusual cases ---- */

/* sim_events_put_words where the pool has no free event. */
void sim_events_put_grown(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0, uint32_t word1,
                          uint32_t word2, const void *about);
void sim_events_put_far(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0, uint32_t word1,
                        uint32_t word2);
const struct sim_event *sim_events_take_far(struct sim_events *e);

/*
 * Put in an event that comes before all others of its time, but for those that were put in so before it. at >= now,
 * and at is not before that of the last such call, or the event is refused.
 */
void sim_events_put_first(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0, uint32_t word1);

/* There is no event: time passes until then, if that is not past. */
static inline void sim_events_rest(struct sim_events *e, uint64_t until) {
    if (until > e->now)
        e->now = until;
}

/* ---- putting in and taking ---- */

/*
 * Put an event in. at >= now, or it is refused. The words of the union are written one by one, as they are read: a load
 * of two words that were stored one by one would wait until the stores have left the host's core.
 */
static inline __attribute__((always_inline)) void sim_events_put_words(struct sim_events *e, uint64_t at,
                                                                       enum sim_event_kind kind, uint32_t word0,
                                                                       uint32_t word1, uint32_t word2,
                                                                       const void *about) {
    if (__builtin_expect(at - e->now >= SIM_REACH, 0)) { /* also for a time before now: the difference wraps round */
        sim_events_put_far(e, at, kind, word0, word1, word2);
        return;
    }
    if (__builtin_expect(e->free == SIM_NO_EVENT, 0)) {
        sim_events_put_grown(e, at, kind, word0, word1, word2, about);
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
    if (__builtin_expect((e->used[s / 64] & bit) != 0, 0)) {
        struct sim_near *first = &e->pool[e->slot[s] >> SIM_KIND_BITS];
        e->pool[first->last].next = i;
        first->last = i;
        return;
    }
    own->last = i;
    e->slot[s] = i << SIM_KIND_BITS | (uint32_t)kind;
    e->used[s / 64] |= bit;
    e->used_words |= UINT64_C(1) << s / 64;
}

static inline void sim_events_put(struct sim_events *e, uint64_t at, const struct sim_event *event) {
    sim_events_put_words(e, at, (enum sim_event_kind)event->kind, event->packet.flit[0], event->packet.flit[1],
                         event->packet.flit[2], NULL);
}

static inline void sim_events_put_packet(struct sim_events *e, uint64_t at, enum sim_event_kind kind,
                                         const struct hw_packet *packet, const void *about) {
    sim_events_put_words(e, at, kind, packet->flit[0], packet->flit[1], packet->flit[2], about);
}

/* How many words of `used`, the last of which is not 0, come behind that one. There is an event in the wheel. */
static inline uint32_t sim_events_words_ahead(const struct sim_events *e, uint32_t word) {
    return (uint32_t)__builtin_ctzll(e->used_words >> word | e->used_words << (64 - word) % 64);
}

/*
 * Take the next event; now becomes its time, *kind its kind. It stays valid until another event is put in. NULL: there
 * is no event. At equal times the far event is first: it was put in when the wheel did not reach that time, or by
 * sim_events_put_first. `host` is a constant: threads on the host look at other parts of their memory, too.
 */
static inline __attribute__((always_inline)) const struct sim_event *
sim_events_take_for(struct sim_events *e, enum sim_event_kind *kind, bool host) {
    uint32_t word = e->now / 64 % 64;
    uint64_t begins = e->now & ~UINT64_C(63), here = e->used[word];
    if (__builtin_expect(here == 0, 0)) {
        if (e->used_words == 0) {
            *kind = (enum sim_event_kind)e->far_kind;
            return e->far_at != UINT64_MAX ? sim_events_take_far(e) : NULL;
        }
        uint32_t n = sim_events_words_ahead(e, word);
        begins += UINT64_C(64) * n;
        word = (word + n) % 64;
        here = e->used[word];
    }
    uint32_t bit = (uint32_t)__builtin_ctzll(here), slot = e->slot[word * 64 + bit];
    *kind = (enum sim_event_kind)(slot & ((1u << SIM_KIND_BITS) - 1));
    if (__builtin_expect(e->far_at <= begins + bit, 0)) {
        *kind = (enum sim_event_kind)e->far_kind;
        return sim_events_take_far(e);
    }
    e->now = begins + bit;
    uint32_t i = slot >> SIM_KIND_BITS;
    struct sim_near *own = &e->pool[i];
    uint64_t rest = here & (here - 1);
    if (__builtin_expect(own->last != i, 0)) {
        struct sim_near *next = &e->pool[own->next];
        next->last = own->last;
        e->slot[word * 64 + bit] = own->next << SIM_KIND_BITS | next->event.kind;
    } else {
        e->used[word] = rest;
        if (rest == 0)
            e->used_words &= ~(UINT64_C(1) << word);
    }
    own->next = e->free;
    e->free = i;
    /* Load what the following event will look at, if that is in the wheel. */
    if (rest == 0 && e->used_words != 0) {
        word = (word + sim_events_words_ahead(e, word)) % 64;
        rest = e->used[word];
    }
    if (rest != 0) {
        uint32_t after = e->slot[word * 64 + (uint32_t)__builtin_ctzll(rest)] >> SIM_KIND_BITS;
        uintptr_t about = (uintptr_t)e->pool[after].about;
        for (size_t k = 0; k < SIM_PREFETCH_LINES; k++)
            __builtin_prefetch((const void *)(about + SIM_LINE * k));
        for (size_t k = 0; host && k < SIM_PREFETCH_HOST_LINES; k++)
            __builtin_prefetch((const void *)(about + SIM_LINE * (SIM_PREFETCH_HOST + k)));
    }
    return &own->event;
}

static inline const struct sim_event *sim_events_take(struct sim_events *e, enum sim_event_kind *kind) {
    return sim_events_take_for(e, kind, false);
}

#endif
