/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The heap; the wheel is in events.h. A node of the heap has four children: half as deep as with two. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_POOL = 1024, FIRST_HEAP = 256 }; /* events; both double when they are full */

bool sim_events_init(struct sim_events *e) {
    memset(e, 0, sizeof *e);
    e->free = SIM_NO_EVENT;
    e->far_at = UINT64_MAX;
    return true;
}

void sim_events_free(struct sim_events *e) {
    free(e->pool);
    free(e->heap);
    e->pool = NULL;
    e->heap = NULL;
}

bool sim_events_grow(struct sim_events *e) {
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

static bool before(const struct sim_far *a, const struct sim_far *b) {
    return a->at != b->at ? a->at < b->at : a->sequence < b->sequence;
}

void sim_events_put_far(struct sim_events *e, uint64_t at, const struct sim_event *event) {
    if (at < e->now) {
        e->past = true;
        return;
    }
    if (e->n_heap == e->heap_capacity) {
        uint32_t n = e->heap_capacity == 0 ? FIRST_HEAP : 2 * e->heap_capacity;
        struct sim_far *heap = realloc(e->heap, n * sizeof *heap);
        if (heap == NULL) {
            e->no_memory = true;
            return;
        }
        e->heap = heap;
        e->heap_capacity = n;
    }
    struct sim_far own = {.at = at, .sequence = e->sequence++, .event = *event};
    uint32_t i = e->n_heap++;
    while (i > 0 && before(&own, &e->heap[(i - 1) / 4])) {
        e->heap[i] = e->heap[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    e->heap[i] = own;
    e->far_at = e->heap[0].at;
}

const struct sim_event *sim_events_take_far(struct sim_events *e) {
    e->taken = e->heap[0].event;
    e->now = e->heap[0].at;
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
    e->far_at = n > 0 ? e->heap[0].at : UINT64_MAX;
    return &e->taken;
}
