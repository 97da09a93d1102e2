/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/held.h"

#include <stddef.h>

void ni_held_clear(struct ni_held *held, uint32_t n_elements) {
    struct ni_held_queue *element = held->element;
    for (uint32_t i = 0; i < n_elements; i++)
        element[i] = (struct ni_held_queue){NULL, NULL};
    *held = (struct ni_held){.element = element};
}

static struct ni_held_queue *queue_of(struct ni_held *held, uint32_t place) {
    return place == NI_HELD_NOWHERE ? &held->others : &held->element[place];
}

static void note_emptiness(struct ni_held *held, uint32_t place) {
    uint64_t bit;
    if (place == NI_HELD_NOWHERE)
        return;
    bit = (uint64_t)1 << place % 64;
    if (held->element[place].first != NULL)
        held->not_empty[place / 64] |= bit;
    else
        held->not_empty[place / 64] &= ~bit;
}

/* Link a request into the list of all, behind `before`; NULL: at its head. */
static void link_all(struct ni_held *held, struct ni_held_request *r, struct ni_held_request *before) {
    r->previous = before;
    r->next = before != NULL ? before->next : held->all.first;
    *(before != NULL ? &before->next : &held->all.first) = r;
    *(r->next != NULL ? &r->next->previous : &held->all.last) = r;
}

static void link_same(struct ni_held_queue *q, struct ni_held_request *r, struct ni_held_request *before) {
    r->previous_same = before;
    r->next_same = before != NULL ? before->next_same : q->first;
    *(before != NULL ? &before->next_same : &q->first) = r;
    *(r->next_same != NULL ? &r->next_same->previous_same : &q->last) = r;
}

void ni_held_add(struct ni_held *held, struct ni_held_request *r, uint32_t place) {
    struct ni_held_queue *q = queue_of(held, place);
    r->set = held;
    r->place = place;
    r->order = held->n_ever++;
    link_all(held, r, held->all.last);
    link_same(q, r, q->last);
    note_emptiness(held, place);
}

void ni_held_remove(struct ni_held_request *r) {
    struct ni_held *held = r->set;
    struct ni_held_queue *q = queue_of(held, r->place);
    *(r->previous != NULL ? &r->previous->next : &held->all.first) = r->next;
    *(r->next != NULL ? &r->next->previous : &held->all.last) = r->previous;
    *(r->previous_same != NULL ? &r->previous_same->next_same : &q->first) = r->next_same;
    *(r->next_same != NULL ? &r->next_same->previous_same : &q->last) = r->previous_same;
    r->set = NULL;
    note_emptiness(held, r->place);
}

/* The request was at the head of its element's list or of the list of all, so the walks are short. */
void ni_held_put_back(struct ni_held *held, struct ni_held_request *r) {
    struct ni_held_queue *q = queue_of(held, r->place);
    struct ni_held_request *before = NULL, *before_same = NULL;
    for (struct ni_held_request *x = held->all.first; x != NULL && x->order < r->order; x = x->next)
        before = x;
    for (struct ni_held_request *x = q->first; x != NULL && x->order < r->order; x = x->next_same)
        before_same = x;
    r->set = held;
    link_all(held, r, before);
    link_same(q, r, before_same);
    note_emptiness(held, r->place);
}

static struct ni_held_request *earlier(struct ni_held_request *a, struct ni_held_request *b) {
    return a == NULL || (b != NULL && b->order < a->order) ? b : a;
}

struct ni_held_request *ni_held_next(struct ni_held *held, bool room,
                                     bool (*waits)(const void *tile, const struct ni_held_request *r),
                                     const void *tile) {
    struct ni_held_request *found = room ? held->all.first : held->others.first;
    held->n_looks += found != NULL;
    for (uint32_t i = 0; !room && i < NI_HELD_ELEMENTS / 64; i++)
        for (uint64_t bits = held->not_empty[i]; bits != 0; bits &= bits - 1) {
            struct ni_held_request *first = held->element[i * 64 + (uint32_t)__builtin_ctzll(bits)].first;
            held->n_looks++;
            if (!waits(tile, first))
                found = earlier(found, first);
        }
    return found;
}
