/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The wheel and the heap; see events.h. The heap is quaternary: half as deep as a binary one. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

#define NO_EVENT UINT32_MAX
#define N_WORDS (SIM_WHEEL / 64)

_Static_assert(N_WORDS == 64, "one word tells which words have a bit");

bool sim_events_init(struct sim_events *e) {
    memset(e, 0, sizeof *e);
    e->free = NO_EVENT;
    return true;
}

void sim_events_free(struct sim_events *e) {
    free(e->pool);
    free(e->heap);
}

/* ---- wheel ---- */

static bool grow_pool(struct sim_events *e) {
    uint32_t n = e->n_pool == 0 ? 1024 : 2 * e->n_pool;
    struct sim_event *pool = realloc(e->pool, n * sizeof *pool);
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

static void put_near(struct sim_events *e, uint64_t at, const struct sim_event *event) {
    if (e->free == NO_EVENT && !grow_pool(e)) {
        e->no_memory = true;
        return;
    }
    uint32_t i = e->free, s = at % SIM_WHEEL;
    struct sim_event *own = &e->pool[i];
    e->free = own->next;
    *own = *event;
    own->at = at;
    own->sequence = e->sequence++;
    own->next = NO_EVENT;
    if (e->used[s / 64] >> s % 64 & 1) {
        e->pool[e->slot[s].last].next = i;
    } else {
        e->slot[s].first = i;
        e->used[s / 64] |= UINT64_C(1) << s % 64;
        e->used_words |= UINT64_C(1) << s / 64;
    }
    e->slot[s].last = i;
}

/* The first slot that is not empty, from now's on and round; there is one. */
static uint32_t first_slot(const struct sim_events *e) {
    uint32_t from = e->now % SIM_WHEEL, word = from / 64;
    uint64_t here = e->used[word] & UINT64_MAX << from % 64;
    if (here == 0) {
        uint64_t later = word + 1 < N_WORDS ? e->used_words & UINT64_MAX << (word + 1) : 0;
        word = (uint32_t)__builtin_ctzll(later != 0 ? later : e->used_words);
        here = e->used[word]; /* round to now's own word again: its bits below now's */
    }
    return word * 64 + (uint32_t)__builtin_ctzll(here);
}

static void take_near(struct sim_events *e, uint32_t s, struct sim_event *event) {
    uint32_t i = e->slot[s].first;
    struct sim_event *own = &e->pool[i];
    *event = *own;
    e->slot[s].first = own->next;
    if (own->next == NO_EVENT) {
        e->used[s / 64] &= ~(UINT64_C(1) << s % 64);
        if (e->used[s / 64] == 0)
            e->used_words &= ~(UINT64_C(1) << s / 64);
    }
    own->next = e->free;
    e->free = i;
}

/* ---- heap ---- */

static bool before(const struct sim_event *a, const struct sim_event *b) {
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

static void put_far(struct sim_events *e, uint64_t at, const struct sim_event *event) {
    if (e->n_heap == e->heap_capacity) {
        uint32_t n = e->heap_capacity == 0 ? 256 : 2 * e->heap_capacity;
        struct sim_event *heap = realloc(e->heap, n * sizeof *heap);
        if (heap == NULL) {
            e->no_memory = true;
            return;
        }
        e->heap = heap;
        e->heap_capacity = n;
    }
    struct sim_event own = *event;
    own.at = at;
    own.sequence = e->sequence++;
    uint32_t i = e->n_heap++;
    while (i > 0 && before(&own, &e->heap[(i - 1) / 4])) {
        e->heap[i] = e->heap[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    e->heap[i] = own;
}

static void take_far(struct sim_events *e, struct sim_event *event) {
    *event = e->heap[0];
    struct sim_event own = e->heap[--e->n_heap];
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

/* ---- both ---- */

void sim_events_put(struct sim_events *e, uint64_t at, const struct sim_event *event) {
    if (at < e->now)
        e->past = true;
    else if (at - e->now < SIM_WHEEL)
        put_near(e, at, event);
    else
        put_far(e, at, event);
}

bool sim_events_take(struct sim_events *e, struct sim_event *event) {
    if (e->used_words == 0) {
        if (e->n_heap == 0)
            return false;
        take_far(e, event);
    } else {
        uint32_t s = first_slot(e);
        if (e->n_heap > 0 && before(&e->heap[0], &e->pool[e->slot[s].first]))
            take_far(e, event);
        else
            take_near(e, s, event);
    }
    e->now = event->at;
    return true;
}
