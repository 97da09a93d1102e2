/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Far events: lanes and a heap. The wheel is in events.h. A node of the heap has four children: half as deep as with
 * two. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_POOL = 1024, FIRST_FAR = 16 }; /* events; they double when they are full */

bool sim_events_init(struct sim_events *e) {
    memset(e, 0, sizeof *e);
    e->free = SIM_NO_EVENT;
    e->far_at = UINT64_MAX;
    for (uint32_t i = 0; i <= SIM_LANES; i++)
        e->lane_at[i] = UINT64_MAX;
    return true;
}

void sim_events_free(struct sim_events *e) {
    free(e->pool);
    free(e->heap);
    e->pool = NULL;
    e->heap = NULL;
    for (uint32_t i = 0; i < SIM_LANES; i++) {
        free(e->lane[i].ring);
        e->lane[i].ring = NULL;
    }
}

static bool grow(struct sim_events *e) {
    uint32_t n = e->n_pool == 0 ? FIRST_POOL : 2 * e->n_pool;
    struct sim_near *pool = realloc(e->pool, n * sizeof *pool);
    if (pool == NULL)
        return false;
    for (uint32_t i = n; i-- > e->n_pool;) {
        pool[i].next = e->free;
        e->free = i;
    }
    e->pool = pool;
    e->n_pool = n;
    return true;
}

void sim_events_put_grown(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0, uint32_t word1,
                          uint32_t word2, const void *about) {
    if (grow(e))
        sim_events_put_words(e, at, kind, word0, word1, word2, about);
    else
        e->no_memory = true;
}

static bool before(const struct sim_far *a, const struct sim_far *b) {
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

/* ---- the first far event ---- */

static const struct sim_far *first_in(const struct sim_events *e, uint32_t lane) {
    return lane == SIM_LANES ? &e->heap[0] : &e->lane[lane].ring[e->lane[lane].first];
}

static void find_first(struct sim_events *e) {
    uint32_t first = 0;
    for (uint32_t i = 1; i <= SIM_LANES; i++)
        if (e->lane_at[i] < e->lane_at[first] ||
            (__builtin_expect(e->lane_at[i] == e->lane_at[first], 0) && e->lane_at[i] != UINT64_MAX &&
             before(first_in(e, i), first_in(e, first))))
            first = i;
    e->far_at = e->lane_at[first];
    e->far_lane = first;
    if (e->far_at != UINT64_MAX)
        e->far_kind = first_in(e, first)->event.kind;
}

/* An event was put into the lane, or the heap, and is the first there. */
static void is_first(struct sim_events *e, uint32_t lane, uint64_t at) {
    e->lane_at[lane] = at;
    if (at <= e->far_at)
        find_first(e);
}

/* ---- lanes ---- */

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
static inline struct sim_far *lane_place(struct sim_lane *lane, uint64_t at) {
    if (lane->n == lane->capacity && !grow_lane(lane))
        return NULL;
    lane->last_at = at;
    return &lane->ring[(lane->first + lane->n++) & (lane->capacity - 1)];
}

static inline void lane_drop(struct sim_events *e, uint32_t number) {
    struct sim_lane *lane = &e->lane[number];
    lane->first = (lane->first + 1) & (lane->capacity - 1);
    lane->n--;
    e->lane_at[number] = lane->n > 0 ? lane->ring[lane->first].at : UINT64_MAX;
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
    if (i == 0)
        is_first(e, SIM_LANES, far->at);
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
    e->lane_at[SIM_LANES] = n > 0 ? e->heap[0].at : UINT64_MAX;
}

/* ---- putting in and taking ---- */

/* The words are written one by one, as they were given: see sim_events_put_words. */
static inline void write(struct sim_far *far, uint64_t at, uint64_t sequence, enum sim_event_kind kind, uint32_t word0,
                         uint32_t word1, uint32_t word2) {
    far->at = at;
    far->sequence = sequence;
    far->event.kind = kind;
    far->event.packet.flit[0] = word0;
    far->event.packet.flit[1] = word1;
    far->event.packet.flit[2] = word2;
}

void sim_events_put_far(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0, uint32_t word1,
                        uint32_t word2) {
    if (at < e->now) {
        e->past = true;
        return;
    }
    uint32_t number = 1;
    while (number < SIM_LANES && e->lane[number].n > 0 && e->lane[number].last_at > at)
        number++;
    struct sim_far own, *far = number < SIM_LANES ? lane_place(&e->lane[number], at) : &own;
    if (far == NULL) {
        e->no_memory = true;
        return;
    }
    write(far, at, ++e->sequence, kind, word0, word1, word2);
    if (number < SIM_LANES && e->lane[number].n == 1)
        is_first(e, number, at);
    else if (number == SIM_LANES && !heap_put(e, far))
        e->no_memory = true;
}

void sim_events_put_first(struct sim_events *e, uint64_t at, enum sim_event_kind kind, uint32_t word0, uint32_t word1) {
    if (at < e->now || at < e->lane[0].last_at) {
        e->past = true;
        return;
    }
    struct sim_far *far = lane_place(&e->lane[0], at);
    if (far == NULL) {
        e->no_memory = true;
        return;
    }
    write(far, at, 0, kind, word0, word1, 0);
    if (e->lane[0].n == 1)
        is_first(e, 0, at);
}

/* What is taken from a lane stays where it was until an event is put in. */
const struct sim_event *sim_events_take_far(struct sim_events *e) {
    const struct sim_far *first = first_in(e, e->far_lane);
    const struct sim_event *taken = &first->event;
    e->now = e->far_at;
    if (e->far_lane < SIM_LANES) {
        lane_drop(e, e->far_lane);
    } else {
        e->taken = *taken;
        taken = &e->taken;
        heap_drop(e);
    }
    find_first(e);
    return taken;
}
