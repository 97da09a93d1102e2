/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * IDs of primitives, kept in the objects.
 *
 * Mutexes and barriers go to the NIs in turn, by one counter, when they are initialised. A mutex with a static
 * initialiser gets its primitive at its first use, and a condition at its first wait, where its mutex lives.
 *
 * There are far more objects than control elements. So when all elements are taken an idle primitive is evicted. The
 * next use of the object that held its ID is refused as stale, and the object gets a new ID. An initialisation evicts
 * nothing: many objects are never used. It leaves the object without an ID, as a static initialiser does.
 *
 * One of the threads that want an ID for an object allocates, and the others wait for its result:
 *  1. A thread puts its claim into the word, in the place of zero or of a stale ID.
 *  2. The other threads see the claim and look again until it is gone.
 *  3. The thread replaces its claim by the ID.
 * A claim is void, and another thread may replace it, if the thread that made it will not come back to it: in a forked
 * child, and in a signal handler that has interrupted that thread. If a handler has done so, step 3 fails, and the
 * thread gives its own primitive back.
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
#include "engine/ni/thread.h"
#include "os/fork.h"
#include "os/futex.h"
#include "wait/park.h"

#define TRIES 8 /* evictions that gave the free element to another thread, before it gives up */

/* A claim: bit 1, the record of the thread that made it, and the low bits of its fork generation. Bit 31 is clear. */
#define CLAIM 2u
#define CLAIM_GENERATION_BITS 13

#define CLAIM_LOOKS 16        /* at another thread's claim, */
#define CLAIM_PAUSE_NS 50000  /* first pause, */
#define CLAIM_MOST_NS 1000000 /* and a longest one: with a time scale an allocation may last */

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
    if (__atomic_load_n(&ni_machine.n_full, __ATOMIC_RELAXED) == ni_machine.n_tiles)
        return 0;
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

/* Is it a barrier for more threads than any NI has queue elements for? */
static bool fits_nowhere(enum hw_op op, uint32_t flit1) {
    return op == HW_OP_ALLOC_BARRIER && ni_machine.config.reserve && flit1 - 1 > ni_machine.config.n_queue;
}

/* The new ID; 0: no NI has room. */
static uint32_t allocate(struct ni_thread *t, enum hw_op op, uint32_t flit1, const void *object) {
    if (fits_nowhere(op, flit1))
        return 0;
    uint32_t id = allocate_in_turn(t, op, flit1, object);
    for (uint32_t i = 0; id == 0 && ni_machine.evict && i < ni_machine.n_tiles; i++)
        id = allocate_evicting(t, next_tile(), op, flit1, object);
    return id;
}

/* ---- claims ---- */

static bool is_claim(uint32_t word) {
    return !ni_is_id(word) && (word & CLAIM) != 0;
}

static uint32_t claim_of(const struct ni_thread *t) {
    uint32_t generation = sbt_fork_generation() & ((1u << CLAIM_GENERATION_BITS) - 1);
    return generation << 18 | (uint32_t)t->id << 2 | CLAIM;
}

/* Will no thread replace this claim? `t` is the caller's record, and `outer` leads to those that it has interrupted. */
static bool is_void(const struct ni_thread *t, uint32_t claim) {
    if ((claim ^ claim_of(t)) >> 18 != 0)
        return true;
    while (t != NULL && claim_of(t) != claim)
        t = t->outer;
    return t != NULL;
}

static void wait_at_claim(uint32_t looks, long *pause_ns) {
    if (looks < CLAIM_LOOKS) {
        sbt_wait_yield(false);
        return;
    }
    sbt_pause_ns(*pause_ns);
    if (*pause_ns < CLAIM_MOST_NS)
        *pause_ns *= 2;
}

uint32_t ni_settled(const struct ni_thread *t, const uint32_t *word) {
    long pause_ns = CLAIM_PAUSE_NS;
    for (uint32_t looks = 0;; looks++) {
        uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (SBT_LIKELY(!is_claim(now)) || is_void(t, now))
            return now;
        wait_at_claim(looks, &pause_ns);
    }
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

/* For a thread that ends in a signal handler while it allocates. */
struct claimed {
    struct ni_thread *t;
    uint32_t *word, claim;
};

static void abandon(void *argument) {
    struct claimed *c = argument;
    __atomic_compare_exchange_n(c->word, &c->claim, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    ni_abandon(c->t);
}

static uint32_t allocate_claimed(struct claimed *c, enum hw_op op, uint32_t flit1) {
    uint32_t id;
    pthread_cleanup_push(abandon, c);
    id = allocate(c->t, op, flit1, c->word);
    pthread_cleanup_pop(0);
    return publish_id(c->t, c->word, c->claim, id != 0 ? id : NI_SOFTWARE);
}

/* The claim replaces what was seen by a compare-and-swap, relaxed if it fails: then the word is read again. */
uint32_t ni_obtain(struct ni_thread *t, uint32_t *word, uint32_t stale, enum hw_op op, uint32_t flit1) {
    struct claimed c = {t, word, claim_of(t)};
    for (;;) {
        uint32_t seen = ni_settled(t, word);
        if (seen == NI_SOFTWARE || (ni_is_id(seen) && seen != stale))
            return seen;
        if (!__atomic_compare_exchange_n(word, &seen, c.claim, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        if (ni_is_id(seen))
            count(&ni_machine.n_stale);
        uint32_t now = allocate_claimed(&c, op, flit1);
        if (now == NI_SOFTWARE || ni_is_id(now))
            return now;
    }
}

void ni_obtain_early(struct ni_thread *t, uint32_t *word, enum hw_op op, uint32_t flit1) {
    uint32_t id = fits_nowhere(op, flit1) ? 0 : allocate_in_turn(t, op, flit1, word);
    if (id != 0)
        __atomic_store_n(word, id, __ATOMIC_RELEASE);
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
