/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * IDs: a primitive is allocated when its object is first used, at the NI whose turn it is; a condition where its mutex
 * is. The ID is kept in the object. Objects outnumber the control elements by far, so when all are taken an idle
 * primitive is evicted: the object that held its ID finds that out at its next use (the request is refused as stale)
 * and gets a new one. What is idle and whose turn it is, is seen in the tags and words of the scratchpad, without an
 * access that the hardware would count: a driver would keep such a list.
 *
 * When nothing is idle, or evicting is switched off, the object is served in software from then on.
 */
#include "engine/ni/ni.h"

#define TRIES 8 /* evict, allocate, and find another thread to have been quicker */

uint32_t *ni_mutex_word(pthread_mutex_t *m) {
    return &sbt_mutex_of(m)->hw_id;
}

uint32_t *ni_cond_word(pthread_cond_t *c) {
    return &sbt_cond_of(c)->hw_id;
}

uint32_t *ni_barrier_word(pthread_barrier_t *b) {
    return &sbt_barrier_of(b)->hw_id;
}

static void count(uint64_t *counter) {
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- eviction ---- */

/* The next idle primitive of this NI, other than `but`; 0 if there is none. */
static uint32_t victim(struct ni_thread *t, struct ni_tile *tile, uint32_t but) {
    ni_go_inside(t);
    ni_take(&tile->lock);
    uint32_t found = hw_spm_next_idle(&tile->ni.spm, &tile->hand, but);
    __atomic_exchange_n(&tile->lock, 0, __ATOMIC_SEQ_CST);
    NI_BARRIER();
    if (ni_has_arrivals(tile)) /* somebody has handed in a request and found the lock taken */
        ni_serve(tile);
    ni_leave_inside(t);
    return found;
}

/* Make room at this NI. */
static bool evict_at(struct ni_thread *t, struct ni_tile *tile, uint32_t but) {
    for (uint32_t i = 0; i < ni_machine.config.n_control; i++) {
        uint32_t id = victim(t, tile, but);
        if (id == 0)
            return false;
        struct hw_message answer = ni_ask(t, HW_OP_EVICT, id, NULL);
        if (answer.op == HW_OP_EVICTED) {
            count(&tile->n_evicted);
            return true;
        }
        if (ni_refused(&answer, HW_REASON_STALE)) /* somebody else has made room */
            return true;
    }
    return false;
}

/* ---- allocation ---- */

static bool is_full(const struct ni_tile *tile) {
    return __atomic_load_n(&tile->n_used, __ATOMIC_RELAXED) >= ni_machine.config.n_control;
}

static struct ni_tile *next_tile(void) {
    return &ni_machine.tiles[__atomic_fetch_add(&ni_machine.next_ni, 1, __ATOMIC_RELAXED) % ni_machine.n_tiles];
}

static struct hw_message allocate_at(struct ni_thread *t, const struct ni_tile *tile, enum hw_op op, uint32_t flit1,
                                     const void *object) {
    struct hw_message answer;
    ni_post_alloc(t, op, (uint32_t)(tile - ni_machine.tiles), flit1, object);
    ni_await(t, NI_ANSWER_MAIN, NULL, NULL, false, &answer);
    return answer;
}

/* An ID, or 0. */
static uint32_t allocate(struct ni_thread *t, enum hw_op op, uint32_t flit1, const void *object) {
    if (op == HW_OP_ALLOC_BARRIER && ni_machine.config.reserve && flit1 - 1 > ni_machine.config.n_queue)
        return 0; /* there is no NI that it would fit into */
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        struct ni_tile *tile = next_tile();
        if (is_full(tile))
            continue;
        struct hw_message answer = allocate_at(t, tile, op, flit1, object);
        if (answer.op == HW_OP_ALLOCATED)
            return answer.primitive;
    }
    if (!ni_machine.evict)
        return 0;
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        struct ni_tile *tile = next_tile();
        for (uint32_t tries = 0; tries < TRIES; tries++) {
            if (is_full(tile) && !evict_at(t, tile, 0))
                break;
            struct hw_message answer = allocate_at(t, tile, op, flit1, object);
            if (answer.op == HW_OP_ALLOCATED)
                return answer.primitive;
            if (answer.op == HW_OP_NO_SPACE && answer.argument == HW_SPACE_QUEUE)
                break;
        }
    }
    return 0;
}

/* Put the new word where `seen` was. Not if somebody was quicker: then their word is it. */
static uint32_t settle(struct ni_thread *t, uint32_t *word, uint32_t seen, uint32_t new) {
    if (__atomic_compare_exchange_n(word, &seen, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (new == NI_SOFTWARE)
            count(&ni_machine.n_software);
        return new;
    }
    if (ni_is_id(new))
        ni_post(t, HW_OP_DEALLOC, new, word);
    return seen;
}

uint32_t ni_obtain(struct ni_thread *t, uint32_t *word, uint32_t seen, enum hw_op op, uint32_t flit1) {
    if (ni_is_id(seen))
        count(&ni_machine.n_stale);
    uint32_t id = allocate(t, op, flit1, word);
    return settle(t, word, seen, id != 0 ? id : NI_SOFTWARE);
}

uint32_t ni_obtain_condition(struct ni_thread *t, uint32_t *word, uint32_t mutex) {
    struct ni_tile *tile = ni_home(mutex);
    uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (ni_is_id(seen)) {
        /* It has lived with another mutex, or was evicted. Who waits on it keeps it where it is. */
        struct hw_message answer = ni_ask(t, HW_OP_EVICT, seen, word);
        if (answer.op != HW_OP_EVICTED && !ni_refused(&answer, HW_REASON_STALE))
            return 0;
        count(&ni_machine.n_stale);
    }
    for (uint32_t tries = 0; tries < TRIES; tries++) {
        struct hw_message answer = {.op = HW_OP_NO_SPACE};
        if (!is_full(tile))
            answer = allocate_at(t, tile, HW_OP_ALLOC_CONDITION, mutex, word);
        if (answer.op == HW_OP_ALLOCATED) {
            uint32_t now = settle(t, word, seen, answer.primitive);
            return ni_is_id(now) && hw_id_is_bound_to(&ni_machine.layout, now, mutex) ? now : 0;
        }
        if (answer.op != HW_OP_NO_SPACE || !ni_machine.evict || !evict_at(t, tile, mutex))
            return 0;
    }
    return 0;
}
