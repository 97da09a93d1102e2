/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fifo_mesh.h"

#include <stdlib.h>

/* A packet's header is at a tile, ready to leave by its next port. */
struct event {
    uint64_t at;
    uint32_t packet, tile;
    bool injected;
};

static struct event *heap;
static uint32_t n_heap;

static bool before(const struct event *a, const struct event *b) {
    return a->at < b->at || (a->at == b->at && a->packet < b->packet);
}

static void swap(uint32_t i, uint32_t k) {
    struct event e = heap[i];
    heap[i] = heap[k];
    heap[k] = e;
}

static void push(const struct event *e) {
    uint32_t i = n_heap++;
    heap[i] = *e;
    for (; i > 0 && before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
}

static struct event pop(void) {
    struct event first = heap[0];
    heap[0] = heap[--n_heap];
    for (uint32_t i = 0, k; (k = 2 * i + 1) < n_heap; i = k) {
        if (k + 1 < n_heap && before(&heap[k + 1], &heap[k]))
            k++;
        if (!before(&heap[k], &heap[i]))
            break;
        swap(i, k);
    }
    return first;
}

/* The port by which the packet leaves, and the tile that it comes to. */
static enum hw_direction leave(const struct event *e, uint32_t to, uint32_t width, uint32_t *tile) {
    uint32_t x = e->tile % width, y = e->tile / width, to_x = to % width, to_y = to / width;
    *tile = e->tile;
    if (!e->injected)
        return HW_INJECT;
    if (x != to_x) {
        *tile += x < to_x ? 1u : -1u;
        return x < to_x ? HW_EAST : HW_WEST;
    }
    if (y != to_y) {
        *tile += y < to_y ? width : -width;
        return y < to_y ? HW_SOUTH : HW_NORTH;
    }
    return HW_EJECT;
}

uint64_t fifo_mesh(const struct hw_mesh_config *config, struct fifo_packet *packets, uint32_t n) {
    uint32_t hop = config->timing.router_cycles + config->timing.link_cycles;
    uint32_t length = HW_MESH_N_FLITS * config->timing.link_cycles;
    uint64_t *until = calloc(hw_mesh_n_ports(config->width, config->height), sizeof *until), sum = 0;
    heap = malloc((n + 1) * sizeof *heap);
    if (until == NULL || heap == NULL)
        abort();
    for (uint32_t i = 0; i < n; i++) {
        packets[i].contention_cycles = 0;
        if (packets[i].from != packets[i].to)
            push(&(struct event){packets[i].at_cycles, i, packets[i].from, false});
    }
    while (n_heap > 0) {
        struct event e = pop();
        struct fifo_packet *p = &packets[e.packet];
        uint32_t next;
        enum hw_direction direction = leave(&e, p->to, config->width, &next);
        uint64_t *port = &until[e.tile * HW_N_DIRECTIONS + (uint32_t)direction];
        uint64_t start = e.at > *port ? e.at : *port;
        p->contention_cycles += (uint32_t)(start - e.at);
        sum += start - e.at;
        *port = start + length;
        if (direction != HW_EJECT)
            push(&(struct event){start + hop, e.packet, next, true});
    }
    free(heap);
    free(until);
    return sum;
}
