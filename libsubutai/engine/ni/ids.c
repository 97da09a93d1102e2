/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * IDs of primitives, kept in the objects.
 *
 * A primitive is allocated when its object is first used: at the next NI in turn, or for a condition, where its mutex
 * lives. There are far more objects than control elements. So when all elements are taken an idle primitive is evicted.
 * The next use of the object that held its ID is refused as stale, and the object gets a new ID.
 *
 * The tags and words of the scratchpad say which primitives are idle, and which is evicted next. They are read without
 * an access that the hardware would count, because a driver would keep a list of its own.
 *
 * If no primitive is idle, or evicting is switched off, the object is served in software from then on.
 */
#include "engine/ni/ids.h"

#include "core/object.h"
#include "engine/ni/await.h"
#include "engine/ni/mailbox.h"
#include "engine/ni/serve.h"

#define TRIES 8 /* evictions that gave the free element to another thread, before it gives up */

uint32_t *ni_mutex_word(pthread_mutex_t *m) {
    return &sbt_mutex_of(m)->hw_id;
}

uint32_t *ni_cond_word(pthread_cond_t *c) {
    return &sbt_cond_of(c)->hw_id;
}

uint32_t *ni_barrier_word(pthread_barrier_t *b) {
    return &sbt_barrier_of(b)->hw_id;
}

/* Relaxed: only the report reads it. */
static void count(uint64_t *counter) {
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- eviction ---- */

/* The next idle primitive of this NI, other than `but`; 0: none. */
static uint32_t victim(struct ni_thread *t, struct ni_tile *tile, uint32_t but) {
    ni_go_inside(t);
    ni_tile_take(tile);
    uint32_t found = hw_spm_next_idle(&tile->ni.spm, &tile->hand, but);
    ni_tile_release(tile);
    if (ni_has_arrivals(tile)) /* another thread has handed in a request and found the lock taken */
        ni_serve(tile);
    ni_leave_inside(t);
    return found;
}

/* Make room at this NI. False: it has no idle primitive. */
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
        if (ni_refused(&answer, HW_REASON_STALE)) /* another thread has made room */
            return true;
    }
    return false;
}

/* ---- allocation ---- */

/* A hint, so relaxed: a full NI refuses the allocation in any case. */
static bool is_full(const struct ni_tile *tile) {
    return __atomic_load_n(&tile->n_used, __ATOMIC_RELAXED) >= ni_machine.config.n_control;
}

static struct ni_tile *next_tile(void) {
    return &ni_machine.tiles[__atomic_fetch_add(&ni_machine.next_ni, 1, __ATOMIC_RELAXED) % ni_machine.n_tiles];
}

static struct hw_message allocate_at(struct ni_thread *t, const struct ni_tile *tile, enum hw_op op, uint32_t flit1,
                                     const void *object) {
    struct hw_message answer;
    ni_post_alloc(t, op, ni_number_of(tile), flit1, object);
    ni_await(t, NI_ANSWER_MAIN, NULL, NULL, false, &answer);
    return answer;
}

/* Ask each NI once, in turn, until one has room. The new ID; 0: none has. */
static uint32_t allocate_in_turn(struct ni_thread *t, enum hw_op op, uint32_t flit1, const void *object) {
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        struct ni_tile *tile = next_tile();
        if (is_full(tile))
            continue;
        struct hw_message answer = allocate_at(t, tile, op, flit1, object);
        if (answer.op == HW_OP_ALLOCATED)
            return answer.primitive;
    }
    return 0;
}

/* Evict an idle primitive at this NI and allocate there. The new ID; 0: that failed. */
static uint32_t allocate_evicting(struct ni_thread *t, struct ni_tile *tile, enum hw_op op, uint32_t flit1,
                                  const void *object) {
    for (uint32_t tries = 0; tries < TRIES; tries++) {
        if (is_full(tile) && !evict_at(t, tile, 0))
            break;
        struct hw_message answer = allocate_at(t, tile, op, flit1, object);
        if (answer.op == HW_OP_ALLOCATED)
            return answer.primitive;
        if (answer.op == HW_OP_NO_SPACE && answer.argument == HW_SPACE_QUEUE)
            break;
    }
    return 0;
}

/* The new ID; 0: no NI has room. */
static uint32_t allocate(struct ni_thread *t, enum hw_op op, uint32_t flit1, const void *object) {
    if (op == HW_OP_ALLOC_BARRIER && ni_machine.config.reserve && flit1 - 1 > ni_machine.config.n_queue)
        return 0; /* it fits into no NI */
    uint32_t id = allocate_in_turn(t, op, flit1, object);
    for (uint32_t i = 0; id == 0 && ni_machine.evict && i < ni_machine.n_tiles; i++)
        id = allocate_evicting(t, next_tile(), op, flit1, object);
    return id;
}

/*
 * Replace `seen` by the new word. If another thread was quicker, its word counts. The release pairs with the acquire of
 * each thread that reads the word.
 */
static uint32_t publish_id(struct ni_thread *t, uint32_t *word, uint32_t seen, uint32_t new) {
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
    return publish_id(t, word, seen, id != 0 ? id : NI_SOFTWARE);
}

uint32_t ni_obtain_condition(struct ni_thread *t, uint32_t *word, uint32_t mutex) {
    struct ni_tile *tile = ni_home(mutex);
    uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (ni_is_id(seen)) {
        /* The condition was evicted, or it lives with another mutex. A thread that waits on it keeps it there. */
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
            uint32_t now = publish_id(t, word, seen, answer.primitive);
            return ni_is_id(now) && hw_id_is_bound_to(&ni_machine.layout, now, mutex) ? now : 0;
        }
        if (answer.op != HW_OP_NO_SPACE || !ni_machine.evict || !evict_at(t, tile, mutex))
            return 0;
    }
    return 0;
}
