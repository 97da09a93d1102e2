/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What happens when: events in the order of their times. Events at the same time come in the order in which they were
 * put in, but for those of sim_events_put_first, which come before the others.
 *
 * Nearly all events of a synchronization call are some hundred nanoseconds ahead. They go into a wheel with a slot for
 * each of the next ns. There putting in and taking out takes a few instructions, and equal times keep their order. Most
 * others are some ten microseconds ahead: wake-ups, or a thread's last yields. They go into the list of their block of
 * SIM_BLOCK ns. The wheel has the present block and the next one; as time comes to a block, the list of the block
 * behind it goes into the wheel, in its order. All that is further ahead is in a heap.
 *
 * A core of the host has at most one event at a time, so its place in the wheel's memory is its own.
 *
 * (This is no library's queue: those do not use that distances are small, and cost a tree's depth for each event.
 * Blocks of blocks, which the kernel's timers have, would be for events that are rare here.)
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
    SIM_EV_MESSAGE,
    SIM_EV_CIRCLES,
    SIM_EV_OWN /* a core's own (sim_events_put_own): it is never stale */
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

#define SIM_BLOCK 2048
#define SIM_WHEEL (2 * SIM_BLOCK)
#define SIM_BLOCKS 32                      /* from the present one on */
#define SIM_REACH (SIM_BLOCKS * SIM_BLOCK) /* of the wheel and the blocks */
#define SIM_NO_EVENT UINT32_MAX

enum {
    SIM_KIND_BITS = 4,
    SIM_PREFETCH_LINES = 6, /* the part of a thread that most calls look at, */
    SIM_PREFETCH_HOST = 12, /* and what they look at on the host: from that line on, */
    SIM_PREFETCH_HOST_LINES = 3
};

_Static_assert(SIM_WHEEL / 64 == 64, "used_words has a bit for each word of `used`");
_Static_assert(SIM_EV_OWN < 1 << SIM_KIND_BITS, "a slot has the kind in that many bits");

struct sim_near {
    struct sim_event event;
    uint32_t next;     /* the next event in its slot or block, or in the list of free ones; SIM_NO_EVENT: none */
    uint32_t last;     /* in a slot's first event: the slot's last. In a block: the time in it */
    const void *about; /* memory that its function will look at: prefetched into the host's cache */
};

struct sim_far {
    uint64_t at, sequence; /* when it happens; in which order it was put in */
    struct sim_event event;
};

/* A ring of events that come before others of their time, in the order of their times. */
struct sim_lane {
    struct sim_far *ring;
    uint32_t first, n, capacity; /* events; the capacity is 0 or a power of two */
    uint64_t last_at;            /* time of its last event, which may have been taken */
};

struct sim_events {
    uint64_t now;
    uint64_t near_at;      /* time of the wheel's first event; UINT64_MAX: it is empty */
    uint64_t near_end;     /* the wheel has all events before that time, and the blocks those behind it */
    struct sim_near *pool; /* the events of the wheel and the blocks */
    uint32_t n_pool, free;
    uint32_t n_own;                /* the first events of the pool, one for each core */
    uint32_t used_blocks;          /* a bit for each block that is not empty */
    uint64_t used_words;           /* a bit for each word of `used` that is not 0 */
    uint64_t used[SIM_WHEEL / 64]; /* a bit for each slot that is not empty */
    /*
     * The number of the slot's first event, and in the low bits that event's kind. So the next function is known before
     * the event is loaded.
     */
    uint32_t slot[SIM_WHEEL];
    struct {
        uint32_t first, last;
    } block[SIM_BLOCKS];
    uint64_t far_at;       /* time of the first far event; UINT64_MAX: none */
    uint32_t far_kind;     /* its kind */
    bool far_in_heap;      /* and where it is */
    struct sim_lane first; /* of sim_events_put_first */
    uint64_t sequence;
    uint64_t cancelled_to;  /* no event was cancelled that would have come later */
    struct sim_event taken; /* the last event that was taken from the heap */
    struct sim_far *heap;
    uint32_t n_heap, heap_capacity;
    bool no_memory; /* an event was lost for want of memory */
    bool past;      /* an event was refused, because its time had passed */
};

bool sim_events_init(struct sim_events *e);
/* Before any event: so many cores have events of their own. False: no memory. */
bool sim_events_reserve(struct sim_events *e, uint32_t n_own);
void sim_events_free(struct sim_events *e);

/* ---- the unusual cases ---- */

/* sim_events_put_words where the pool has no free event, or the wheel does not have that time. */
uint32_t sim_events_put_unusual(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0,
                                uint32_t word1, uint32_t word2, const void *about);
/* Let time come to the block of the next event, unless a far event comes before it. */
void sim_events_advance(struct sim_events *e);
const struct sim_event *sim_events_take_far(struct sim_events *e);

/*
 * Put in an event that comes before all others of its time, but for those that were put in so before it. at >= now,
 * and at is not before that of the last such call, or the event is refused.
 */
void sim_events_put_first(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0, uint32_t word1);

/* There is no event: it is that time now. */
static inline void sim_events_begin_at(struct sim_events *e, uint64_t now) {
    e->now = now;
    e->near_end = (now & ~(uint64_t)(SIM_BLOCK - 1)) + SIM_WHEEL;
}

/* There is no event: time passes until then, if that is not past. */
static inline void sim_events_rest(struct sim_events *e, uint64_t until) {
    if (until > e->now)
        sim_events_begin_at(e, until);
}

/* ---- putting in and taking ---- */

/* The event, of that kind, is the last one of its slot. */
static inline __attribute__((always_inline)) void sim_events_link(struct sim_events *e, uint64_t at, uint32_t i,
                                                                  enum sim_event_kind kind) {
    uint32_t s = at % SIM_WHEEL;
    struct sim_near *own = &e->pool[i];
    uint64_t bit = UINT64_C(1) << s % 64, used = e->used[s / 64];
    if (__builtin_expect((used & bit) != 0, 0)) {
        struct sim_near *first = &e->pool[e->slot[s] >> SIM_KIND_BITS];
        e->pool[first->last].next = i;
        first->last = i;
        return;
    }
    own->last = i;
    e->slot[s] = i << SIM_KIND_BITS | (uint32_t)kind;
    e->near_at = at < e->near_at ? at : e->near_at;
    e->used[s / 64] = used | bit;
    e->used_words |= UINT64_C(1) << s / 64;
}

/* Is that the time of an event for the wheel? For a time before now the difference wraps round. */
static inline bool sim_events_is_near(const struct sim_events *e, uint64_t at) {
    return at - e->now < e->near_end - e->now;
}

/*
 * Put an event in. at >= now, or it is refused. The result is a ticket for sim_events_cancel; SIM_NO_EVENT: there is
 * none. The words of the union are written one by one, as they are read: a load of two words that were stored one by
 * one would wait until the stores have left the host's core.
 */
static inline __attribute__((always_inline)) uint32_t sim_events_put_words(struct sim_events *e, uint64_t at,
                                                                           enum sim_event_kind kind, uint32_t word0,
                                                                           uint32_t word1, uint32_t word2,
                                                                           const void *about) {
    uint32_t i = e->free;
    if (__builtin_expect(!sim_events_is_near(e, at) || i == SIM_NO_EVENT, 0))
        return sim_events_put_unusual(e, at, kind, word0, word1, word2, about);
    struct sim_near *own = &e->pool[i];
    e->free = own->next;
    own->event.kind = kind;
    own->event.packet.flit[0] = word0;
    own->event.packet.flit[1] = word1;
    own->event.packet.flit[2] = word2;
    own->about = about;
    sim_events_link(e, at, i, kind);
    return i;
}

/* sim_events_put_own where the wheel does not have that time. */
bool sim_events_put_own_late(struct sim_events *e, uint64_t at, uint32_t core);

/*
 * The event of a core that has none. The ticket is the core's number, which no other event has; so is the index of the
 * event that is taken. False: it is too far ahead, or its time has passed.
 */
static inline __attribute__((always_inline)) bool sim_events_put_own(struct sim_events *e, uint64_t at, uint32_t core,
                                                                     const void *about) {
    e->pool[core].about = about;
    if (__builtin_expect(!sim_events_is_near(e, at), 0))
        return sim_events_put_own_late(e, at, core);
    sim_events_link(e, at, core, SIM_EV_OWN);
    return true;
}

/*
 * Take back an event that has not come, is not of sim_events_put_first, and was put in for the time `at`. With
 * SIM_NO_EVENT it comes all the same, so it needs a generation by which its taker knows that it is stale.
 */
void sim_events_cancel(struct sim_events *e, uint64_t at, uint32_t ticket);

static inline void sim_events_put(struct sim_events *e, uint64_t at, const struct sim_event *event) {
    sim_events_put_words(e, at, (enum sim_event_kind)event->kind, event->packet.flit[0], event->packet.flit[1],
                         event->packet.flit[2], NULL);
}

static inline void sim_events_put_packet(struct sim_events *e, uint64_t at, enum sim_event_kind kind,
                                         const struct hw_packet *packet, const void *about) {
    sim_events_put_words(e, at, kind, packet->flit[0], packet->flit[1], packet->flit[2], about);
}

/* The slot of that time has become empty, and was the first in the wheel. */
static inline __attribute__((always_inline)) void sim_events_find_near(struct sim_events *e, uint64_t at) {
    uint32_t word = at / 64 % 64;
    uint64_t rest = e->used[word] &= ~(UINT64_C(1) << at % 64), begins = at & ~UINT64_C(63);
    if (rest == 0) {
        uint64_t words = e->used_words &= ~(UINT64_C(1) << word);
        if (words == 0) {
            e->near_at = UINT64_MAX;
            return;
        }
        /* How many words behind this one: those before it in the array have the next block. */
        uint32_t n = (uint32_t)__builtin_ctzll(words >> word | words << (64 - word) % 64);
        begins += UINT64_C(64) * n;
        rest = e->used[(word + n) % 64];
    }
    e->near_at = begins + (uint32_t)__builtin_ctzll(rest);
}

/*
 * Take the next event; now becomes its time, *kind its kind. It stays valid until another event is put in. NULL: there
 * is no event. At equal times the far event is first: it was put in when the blocks did not reach that time, or by
 * sim_events_put_first. `host` is a constant: threads on the host look at other parts of their memory, too.
 */
static inline __attribute__((always_inline)) const struct sim_event *
sim_events_take_for(struct sim_events *e, enum sim_event_kind *kind, bool host) {
    if (__builtin_expect(e->near_at >= e->near_end - SIM_BLOCK, 0))
        sim_events_advance(e);
    uint64_t at = e->near_at;
    if (__builtin_expect(e->far_at <= at, 0)) {
        *kind = (enum sim_event_kind)e->far_kind;
        return e->far_at != UINT64_MAX ? sim_events_take_far(e) : NULL;
    }
    uint32_t slot = e->slot[at % SIM_WHEEL], i = slot >> SIM_KIND_BITS;
    struct sim_near *own = &e->pool[i];
    *kind = (enum sim_event_kind)(slot & ((1u << SIM_KIND_BITS) - 1));
    e->now = at;
    if (__builtin_expect(own->last != i, 0)) {
        struct sim_near *next = &e->pool[own->next];
        next->last = own->last;
        e->slot[at % SIM_WHEEL] = own->next << SIM_KIND_BITS | next->event.kind;
    } else {
        sim_events_find_near(e, at);
    }
    if (!host || *kind != SIM_EV_OWN) {
        own->next = e->free;
        e->free = i;
    }
    /* Load what the wheel's following event will look at. In an empty wheel that is any event. */
    uint32_t after = e->slot[e->near_at % SIM_WHEEL] >> SIM_KIND_BITS;
    uintptr_t about = (uintptr_t)e->pool[after].about;
    for (size_t k = 0; k < SIM_PREFETCH_LINES; k++)
        __builtin_prefetch((const void *)(about + SIM_LINE * k));
    for (size_t k = 0; host && k < SIM_PREFETCH_HOST_LINES; k++)
        __builtin_prefetch((const void *)(about + SIM_LINE * (SIM_PREFETCH_HOST + k)));
    return &own->event;
}

static inline const struct sim_event *sim_events_take(struct sim_events *e, enum sim_event_kind *kind) {
    return sim_events_take_for(e, kind, false);
}

#endif
