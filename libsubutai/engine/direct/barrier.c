/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barriers: arrivals and the generation, that is the rounds completed, in one 64-bit word.
 *
 * No queue: everybody waits for the same word to change, so releasing them is one compare-and-swap, and one futex call
 * if anybody sleeps. Bit 0 of the generation says so; the last arriver learns it from the very operation that releases
 * the others, after which it does not touch the barrier: a released thread may destroy it. A released waiter's last
 * touch is its increment of `left`, for which destroy waits.
 *
 * More threads than `count` may use a barrier at once. So an arrival reads the generation in the same step in which it
 * is counted, and knows its round even if the rounds before it are being completed just then: completing one subtracts
 * `count` arrivals and adds a generation, in any order with others.
 */
#include <errno.h>

#include "core/object.h"
#include "engine/direct/direct.h"
#include "wait/futex.h"
#include "wait/park.h"

#define ASLEEP ((uint64_t)1 << 32)
#define GENERATION ((uint64_t)2 << 32)
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

/* Round complete: release it. Release passes on what all its arrivers did before, which the additions have acquired. */
static void complete(struct sbt_barrier *bx, uint64_t seen) {
    uint32_t *word = generation_word(bx);
    uint64_t want;
    do {
        want = ((seen & ~ASLEEP) - bx->count) + GENERATION;
    } while (!__atomic_compare_exchange_n(&bx->rounds, &seen, want, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    if ((seen & ASLEEP) != 0)
        sbt_wake(word, INT_MAX);
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
    uint32_t generation = ((uint32_t)(seen >> 32) & ~1u) + 2 * ((arrived - 1) / bx->count + 1);
    struct sbt_active active;
    sbt_active_begin(&active, &bx->adapt);
    for (;;) {
        seen = __atomic_load_n(&bx->rounds, __ATOMIC_ACQUIRE); /* pairs with complete */
        uint32_t now = (uint32_t)(seen >> 32);
        if ((int32_t)((now & ~1u) - generation) >= 0)
            break;
        if (sbt_active_step(&active))
            continue;
        if ((seen & ASLEEP) != 0 ||
            __atomic_compare_exchange_n(&bx->rounds, &seen, seen | ASLEEP, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            sbt_park(generation_word(bx), now | 1, NULL);
    }
    /* Not every round: all waiters read this cache line, and each write takes it away from the others. */
    if (generation <= 2 * LEARN_ALWAYS || generation % (2 * LEARN_EVERY) == 0)
        sbt_active_end(&active, &bx->adapt);
    __atomic_fetch_add(&bx->left, 1, __ATOMIC_RELEASE); /* pairs with the acquire in destroy */
    return 0;
}

int direct_barrier_destroy(pthread_barrier_t *b) {
    struct sbt_barrier *bx = sbt_barrier_of(b);
    uint64_t seen = __atomic_load_n(&bx->rounds, __ATOMIC_RELAXED);
    if ((uint32_t)seen != 0)
        return EBUSY;
    /* In halves of the word's range because the generation counts twos. */
    uint32_t rounds = (uint32_t)(seen >> 33);
    for (int i = 0; ((rounds * (bx->count - 1) - __atomic_load_n(&bx->left, __ATOMIC_ACQUIRE)) & 0x7FFFFFFF) != 0;
         i++) {
        if (i < YIELDS_BEFORE_PAUSE)
            sbt_give_way();
        else
            sbt_pause_ns(50000);
    }
    return 0;
}
