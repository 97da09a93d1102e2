/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests that a network interface has set aside for want of a queue element.
 *
 * Each is in two lists: all requests of the interface in the order of their coming, and the requests for the same
 * control element. A thousand threads may wait for a mutex, and each unlock asks which of their requests can go on: the
 * head of one of the two lists answers that, however long they are. A withdrawal finds its request in the record of its
 * thread.
 *
 * All functions are called under the tile's lock; none blocks. All-zero, with room for the elements' lists, is the
 * empty set.
 */
#ifndef SBT_ENGINE_NI_HELD_H
#define SBT_ENGINE_NI_HELD_H

#include <stdbool.h>
#include <stdint.h>

struct ni_held_request;

struct ni_held_queue {
    struct ni_held_request *first, *last;
};

enum { NI_HELD_ELEMENTS = 256, NI_HELD_NOWHERE = NI_HELD_ELEMENTS };

struct ni_held {
    struct ni_held_queue all;      /* linked by `next` and `previous` */
    struct ni_held_queue *element; /* for each control element a list, linked by `next_same` and `previous_same` */
    /* requests for no element of this interface, or of a kind that does not wait for an element */
    struct ni_held_queue others;
    uint64_t not_empty[NI_HELD_ELEMENTS / 64]; /* a bit for each element: its list has a request */
    uint64_t n_ever;                           /* requests set aside so far: the place of the next in the order */
    uint64_t n_looks;                          /* requests looked at, to find those that can go on */
};

/* The links of a request. A thread has at most one request that can be set aside, and keeps it in its record. */
struct ni_held_request {
    struct ni_held_request *next, *previous, *next_same, *previous_same;
    struct ni_held *set; /* the set that it is in; NULL: none */
    uint64_t order;
    uint32_t place; /* index of its element; or NI_HELD_NOWHERE */
};

/* Forget all requests. For a forked child; it makes the threads' records anew elsewhere. */
void ni_held_clear(struct ni_held *held, uint32_t n_elements);

/* Add a request behind all others. `place`: its control element, or NI_HELD_NOWHERE. */
void ni_held_add(struct ni_held *held, struct ni_held_request *r, uint32_t place);
void ni_held_remove(struct ni_held_request *r);
/* After ni_held_remove: put it back where it was. */
void ni_held_put_back(struct ni_held *held, struct ni_held_request *r);

/*
 * The first request, in the order of their coming, that can go on; NULL: none. With `room` there is a queue element, so
 * any request can. Otherwise a request can if `waits` is false for it. `waits` is the same for all requests of an
 * element.
 */
struct ni_held_request *ni_held_next(struct ni_held *held, bool room,
                                     bool (*waits)(const void *tile, const struct ni_held_request *r),
                                     const void *tile);

#endif
