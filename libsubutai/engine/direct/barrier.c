/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barriers: arrivals and the generation, that is the rounds completed, in one 64-bit word.
 *
 * No queue: everybody waits for the same word to change, so releasing them is one compare-and-swap, and one futex call
 * if anybody sleeps, which a flag beside the generation says; the last arriver learns it from the very operation that
 * releases the others, after which it does not touch the barrier: a released thread may destroy it. A released waiter's
 * last touch is its increment of `left`, for which destroy waits.
 *
 * Who waits by switching joins a crowd (switch/switch.h), says so in another flag, and is as a rule counted in `left`
 * by whoever takes it out. The last arriver does that after the release; so that the barrier still stands then, it
 * takes one off `left` before.
 *
 * More threads than `count` may use a barrier at once. So an arrival reads the generation in the same step in which it
 * is counted, and knows its round even if the rounds before it are being completed just then: completing one subtracts
 * `count` arrivals and adds a generation, in any order with others.
 */
#include <errno.h>

#include "core/handlers.h"
#include "core/object.h"
#include "engine/direct/direct.h"
#include "switch/switch.h"
#include "wait/futex.h"
#include "wait/park.h"

#define ASLEEP ((uint64_t)1 << 32)
#define CROWDED ((uint64_t)2 << 32)
#define GENERATION ((uint64_t)4 << 32)
#define GENERATIONS (UINT32_MAX / 4) /* before the counter wraps */
#define FLAGS 3u                     /* in the generation's half */
#define YIELDS_BEFORE_PAUSE 100
#define LEARN_ALWAYS 8 /* the first rounds of a barrier's life, */
#define LEARN_EVERY 16 /* and later ones now and then */

int direct_barrier_init(pthread_barrier_t *b, unsigned count) {
    struct sbt_barrier *bx = sbt_barrier_of(b);
    *bx = (struct sbt_barrier){.count = count};
    return 0;
}

/* The generation's half, for the kernel. */
static uint32_t *generation_word(struct sbt_barrier *bx) {
    return (uint32_t *)(void *)&bx->rounds + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

/* The half of `seen` that counts generations, without the flags. */
static uint32_t generation_in(uint64_t seen) {
    return (uint32_t)(seen >> 32) & ~FLAGS;
}

static bool is_over(uint64_t seen, uint32_t generation) {
    return (int32_t)(generation_in(seen) - generation) >= 0;
}

/*
 * Everybody out of the crowd, now that the generation is reached. `joined`: says one of them; otherwise it is the last
 * arriver, who gives back to `left` what it has taken off.
 */
static void disperse(struct sbt_barrier *bx, uint32_t generation, bool joined) {
    struct sbt_chain chain;
    uint32_t n = sbt_crowd_take(&bx->crowd, generation, joined, &chain) + !joined;
    if (n != 0)
        __atomic_fetch_add(&bx->left, n, __ATOMIC_RELEASE); /* pairs with the acquire in destroy */
    sbt_chain_end(&chain);
}

/*
 * Round complete: release it. Release passes on what all its arrivers did before, which the additions have acquired.
 * Sequentially consistent: either this sees the flag or the crowd, or who has just joined sees the generation.
 */
static void complete(struct sbt_barrier *bx, uint64_t seen) {
    uint32_t *word = generation_word(bx);
    uint64_t want;
    bool stands = false;
    sbt_handlers_hold(); /* whom this releases is woken by nobody else */
    do {
        if ((seen & CROWDED) != 0 && !stands) {
            __atomic_fetch_sub(&bx->left, 1, __ATOMIC_RELAXED);
            stands = true;
        }
        want = ((seen & ~(ASLEEP | CROWDED)) - bx->count) + GENERATION;
    } while (!__atomic_compare_exchange_n(&bx->rounds, &seen, want, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    if (stands)
        disperse(bx, generation_in(want), false);
    if ((seen & ASLEEP) != 0)
        sbt_wake(word, INT_MAX);
    sbt_handlers_release();
}

/* The caller's context has joined the crowd. True: it has finished with the object. */
static bool wait_in_crowd(struct sbt_barrier *bx, uint32_t generation) {
    uint64_t seen = __atomic_load_n(&bx->rounds, __ATOMIC_SEQ_CST);
    while (!is_over(seen, generation) && (seen & CROWDED) == 0 &&
           !__atomic_compare_exchange_n(&bx->rounds, &seen, seen | CROWDED, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    if (is_over(seen, generation)) /* perhaps nobody else takes it out */
        disperse(bx, generation, true);
    return sbt_crowd_wait();
}

int direct_barrier_wait(pthread_barrier_t *b) {
    struct sbt_barrier *bx = sbt_barrier_of(b);
    uint64_t seen = __atomic_add_fetch(&bx->rounds, 1, __ATOMIC_ACQ_REL);
    uint32_t arrived = (uint32_t)seen;
    if (arrived % bx->count == 0) {
        complete(bx, seen);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }

    /* The generation after this arrival's round, and the distance to it, which survives the counter's wrap. */
    uint32_t generation = generation_in(seen) + (uint32_t)(GENERATION >> 32) * ((arrived - 1) / bx->count + 1);
    struct sbt_active active;
    sbt_active_begin(&active, &bx->adapt);
    for (;;) {
        seen = __atomic_load_n(&bx->rounds, __ATOMIC_ACQUIRE); /* pairs with complete */
        if (is_over(seen, generation))
            break;
        if (sbt_active_step(&active))
            continue;
        if (SBT_UNLIKELY(sbt_self.context != NULL) && sbt_crowd_join(&bx->crowd, generation)) {
            if (wait_in_crowd(bx, generation))
                return 0;
        } else if ((seen & ASLEEP) != 0 || __atomic_compare_exchange_n(&bx->rounds, &seen, seen | ASLEEP, false,
                                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            sbt_park(generation_word(bx), (uint32_t)((seen | ASLEEP) >> 32), NULL);
        }
    }
    /* Not every round: all waiters read this cache line, and each write takes it away from the others. */
    uint32_t round = generation / (uint32_t)(GENERATION >> 32);
    if (round <= LEARN_ALWAYS || round % LEARN_EVERY == 0)
        sbt_active_end(&active, &bx->adapt);
    __atomic_fetch_add(&bx->left, 1, __ATOMIC_RELEASE); /* pairs with the acquire in destroy */
    return 0;
}

int direct_barrier_destroy(pthread_barrier_t *b) {
    struct sbt_barrier *bx = sbt_barrier_of(b);
    uint64_t seen = __atomic_load_n(&bx->rounds, __ATOMIC_RELAXED);
    if ((uint32_t)seen != 0)
        return EBUSY;
    uint32_t rounds = (uint32_t)(seen / GENERATION);
    for (int i = 0; ((rounds * (bx->count - 1) - __atomic_load_n(&bx->left, __ATOMIC_ACQUIRE)) & GENERATIONS) != 0;
         i++) {
        if (i < YIELDS_BEFORE_PAUSE)
            sbt_give_way(false);
        else
            sbt_pause_ns(50000);
    }
    return 0;
}
