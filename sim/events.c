/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events that are not in the wheel, and events that are cancelled. The wheel is in events.h. A node of the heap has
 * four children: half as deep as with two. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_POOL = 1024, FIRST_FAR = 16 }; /* events; they double when they are full */

bool sim_events_init(struct sim_events *e) {
    memset(e, 0, sizeof *e);
    e->free = SIM_NO_EVENT;
    e->far_at = e->near_at = UINT64_MAX;
    sim_events_begin_at(e, 0);
    return true;
}

void sim_events_free(struct sim_events *e) {
    free(e->pool);
    free(e->heap);
    free(e->first.ring);
    e->pool = NULL;
    e->heap = NULL;
    e->first.ring = NULL;
}

/* The cores' own events are in no list. */
static bool grow(struct sim_events *e) {
    uint32_t n = e->n_pool == 0 ? FIRST_POOL + e->n_own : 2 * e->n_pool;
    struct sim_near *pool = realloc(e->pool, n * sizeof *pool);
    if (pool == NULL)
        return false;
    for (uint32_t i = n; i-- > e->n_pool;) {
        pool[i].about = NULL;
        if (i < e->n_own) {
            pool[i].event.kind = SIM_EV_OWN;
            pool[i].event.index = i;
            continue;
        }
        pool[i].next = e->free;
        e->free = i;
    }
    e->pool = pool;
    e->n_pool = n;
    return true;
}

bool sim_events_reserve(struct sim_events *e, uint32_t n_own) {
    e->n_own = n_own;
    return grow(e);
}

/* ---- blocks ---- */

/* For a time that the wheel does not have: is it in a block? */
static bool is_in_block(const struct sim_events *e, uint64_t at) {
    return at > e->now && at - (e->near_end - SIM_WHEEL) < SIM_REACH;
}

static void put_into_block(struct sim_events *e, uint64_t at, uint32_t i) {
    uint32_t b = at / SIM_BLOCK % SIM_BLOCKS;
    bool used = (e->used_blocks >> b & 1) != 0;
    e->pool[i].next = SIM_NO_EVENT;
    e->pool[i].last = at % SIM_BLOCK;
    *(used ? &e->pool[e->block[b].last].next : &e->block[b].first) = i;
    e->block[b].last = i;
    e->used_blocks |= UINT32_C(1) << b;
}

/* Time has come to the next block: the list of the block behind it goes into the wheel. */
static inline void next_block(struct sim_events *e) {
    uint64_t begins = e->near_end;
    uint32_t b = begins / SIM_BLOCK % SIM_BLOCKS, i = e->block[b].first;
    e->near_end += SIM_BLOCK;
    if ((e->used_blocks >> b & 1) == 0)
        return;
    e->used_blocks &= ~(UINT32_C(1) << b);
    for (uint32_t next; i != SIM_NO_EVENT; i = next) {
        next = e->pool[i].next;
        sim_events_link(e, begins + e->pool[i].last, i, (enum sim_event_kind)e->pool[i].event.kind);
    }
}

void sim_events_advance(struct sim_events *e) {
    while (e->near_at >= e->near_end - SIM_BLOCK && e->far_at > e->near_end - SIM_BLOCK) {
        if (e->near_at == UINT64_MAX && e->used_blocks == 0) {
            if (e->far_at != UINT64_MAX)
                e->near_end = (e->far_at & ~(uint64_t)(SIM_BLOCK - 1)) + SIM_WHEEL;
            return;
        }
        next_block(e);
    }
}

bool sim_events_put_own_late(struct sim_events *e, uint64_t at, uint32_t core) {
    if (!is_in_block(e, at))
        return false;
    put_into_block(e, at, core);
    return true;
}

/* ---- the first far event ---- */

static bool before(const struct sim_far *a, const struct sim_far *b) {
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

static void find_first(struct sim_events *e) {
    const struct sim_far *first = e->first.n > 0 ? &e->first.ring[e->first.first] : NULL;
    e->far_in_heap = e->n_heap > 0 && (first == NULL || before(&e->heap[0], first));
    if (e->far_in_heap)
        first = &e->heap[0];
    e->far_at = first != NULL ? first->at : UINT64_MAX;
    e->far_kind = first != NULL ? first->event.kind : 0;
}

/* ---- the lane of those that come before others of their time ---- */

static bool grow_lane(struct sim_lane *lane) {
    uint32_t n = lane->capacity == 0 ? FIRST_FAR : 2 * lane->capacity;
    struct sim_far *ring = malloc(n * sizeof *ring);
    if (ring == NULL)
        return false;
    for (uint32_t i = 0; i < lane->n; i++)
        ring[i] = lane->ring[(lane->first + i) % lane->capacity];
    free(lane->ring);
    lane->ring = ring;
    lane->capacity = n;
    lane->first = 0;
    return true;
}

/* A place behind the lane's last event, for one at that time. NULL: no memory. */
static struct sim_far *lane_place(struct sim_lane *lane, uint64_t at) {
    if (lane->n == lane->capacity && !grow_lane(lane))
        return NULL;
    lane->last_at = at;
    return &lane->ring[(lane->first + lane->n++) & (lane->capacity - 1)];
}

/* ---- the heap ---- */

static bool heap_put(struct sim_events *e, const struct sim_far *far) {
    if (e->n_heap == e->heap_capacity) {
        uint32_t n = e->heap_capacity == 0 ? FIRST_FAR : 2 * e->heap_capacity;
        struct sim_far *heap = realloc(e->heap, n * sizeof *heap);
        if (heap == NULL)
            return false;
        e->heap = heap;
        e->heap_capacity = n;
    }
    uint32_t i = e->n_heap++;
    while (i > 0 && before(far, &e->heap[(i - 1) / 4])) {
        e->heap[i] = e->heap[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    e->heap[i] = *far;
    return true;
}

static void heap_drop(struct sim_events *e) {
    struct sim_far own = e->heap[--e->n_heap];
    uint32_t i = 0, n = e->n_heap;
    for (uint32_t child; (child = 4 * i + 1) < n; i = child) {
        uint32_t end = child + 4 < n ? child + 4 : n;
        for (uint32_t k = child + 1; k < end; k++)
            if (before(&e->heap[k], &e->heap[child]))
                child = k;
        if (!before(&e->heap[child], &own))
            break;
        e->heap[i] = e->heap[child];
    }
    e->heap[i] = own;
}

/* ---- putting in and taking ---- */

/* The words are written one by one, as they were given: see sim_events_put_words. */
static inline void write(struct sim_event *event, enum sim_event_kind kind, uint32_t word0, uint32_t word1,
                         uint32_t word2) {
    event->kind = kind;
    event->packet.flit[0] = word0;
    event->packet.flit[1] = word1;
    event->packet.flit[2] = word2;
}

uint32_t sim_events_put_unusual(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0,
                                uint32_t word1, uint32_t word2, const void *about) {
    bool near = sim_events_is_near(e, at), in_block = !near && is_in_block(e, at);
    struct sim_far far = {.at = at};
    if (at < e->now) {
        e->past = true;
        return SIM_NO_EVENT;
    }
    if ((near || in_block) && e->free == SIM_NO_EVENT && !grow(e)) {
        e->no_memory = true;
        return SIM_NO_EVENT;
    }
    if (near)
        return sim_events_put_words(e, at, kind, word0, word1, word2, about);
    if (in_block) {
        uint32_t i = e->free;
        e->free = e->pool[i].next;
        e->pool[i].about = about;
        write(&e->pool[i].event, kind, word0, word1, word2);
        put_into_block(e, at, i);
        return i;
    }
    far.sequence = ++e->sequence;
    write(&far.event, kind, word0, word1, word2);
    if (!heap_put(e, &far))
        e->no_memory = true;
    find_first(e);
    return SIM_NO_EVENT;
}

void sim_events_put_first(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0, uint32_t word1) {
    if (at < e->now || at < e->first.last_at) {
        e->past = true;
        return;
    }
    struct sim_far *far = lane_place(&e->first, at);
    if (far == NULL) {
        e->no_memory = true;
        return;
    }
    far->at = at;
    far->sequence = 0;
    write(&far->event, kind, word0, word1, 0);
    find_first(e);
}

/* What is taken from the lane stays where it was until an event is put in. */
const struct sim_event *sim_events_take_far(struct sim_events *e) {
    const struct sim_event *taken = &e->taken;
    e->now = e->far_at;
    if (e->far_in_heap) {
        e->taken = e->heap[0].event;
        heap_drop(e);
    } else {
        taken = &e->first.ring[e->first.first].event;
        e->first.first = (e->first.first + 1) & (e->first.capacity - 1);
        e->first.n--;
    }
    find_first(e);
    return taken;
}

/* ---- cancelling ---- */

/* Take an event out of its slot, in which it is not alone. */
static void unlink_near(struct sim_events *e, uint32_t slot, uint32_t i) {
    uint32_t first = e->slot[slot] >> SIM_KIND_BITS, before = first;
    if (first == i) {
        struct sim_near *next = &e->pool[e->pool[i].next];
        next->last = e->pool[i].last;
        e->slot[slot] = e->pool[i].next << SIM_KIND_BITS | next->event.kind;
        return;
    }
    while (e->pool[before].next != i)
        before = e->pool[before].next;
    if (e->pool[first].last == i)
        e->pool[first].last = before;
    else
        e->pool[before].next = e->pool[i].next;
}

static void cancel_near(struct sim_events *e, uint64_t at, uint32_t i) {
    uint32_t slot = at % SIM_WHEEL;
    uint64_t near_at = e->near_at;
    if (e->slot[slot] >> SIM_KIND_BITS != i || e->pool[i].last != i) {
        unlink_near(e, slot, i);
        return;
    }
    sim_events_find_near(e, at);
    if (at != near_at)
        e->near_at = near_at;
}

static void cancel_in_block(struct sim_events *e, uint32_t b, uint32_t i) {
    uint32_t before = SIM_NO_EVENT;
    for (uint32_t k = e->block[b].first; k != i; k = e->pool[k].next)
        before = k;
    *(before != SIM_NO_EVENT ? &e->pool[before].next : &e->block[b].first) = e->pool[i].next;
    if (e->block[b].last == i)
        e->block[b].last = before;
    if (e->block[b].first == SIM_NO_EVENT)
        e->used_blocks &= ~(UINT32_C(1) << b);
}

void sim_events_cancel(struct sim_events *e, uint64_t at, uint32_t ticket) {
    if (ticket == SIM_NO_EVENT)
        return;
    e->cancelled_to = at > e->cancelled_to ? at : e->cancelled_to;
    if (sim_events_is_near(e, at))
        cancel_near(e, at, ticket);
    else
        cancel_in_block(e, at / SIM_BLOCK % SIM_BLOCKS, ticket);
    if (ticket < e->n_own)
        return;
    e->pool[ticket].next = e->free;
    e->free = ticket;
}
