/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barriers: arrivals and the generation, that is the number of rounds completed, in one 64-bit word.
 *
 * There is no queue. All threads wait for the same word to change, so the last arrival releases them by one
 * compare-and-swap, and by one futex call if a thread sleeps. ASLEEP, a flag beside the generation, says that a
 * thread sleeps; the last arrival learns it from the very operation that releases the others.
 *
 * `left` counts the threads that have left: (count - 1) a round, for the last arrival of a round is not counted. A
 * released waiter's last touch of the barrier is its increment of `left`. Destroy waits until `left` is the number of
 * rounds times (count - 1).
 *
 * A released thread may destroy the barrier, so without waiting fibers the last arriver touches it no more after the
 * compare-and-swap. With waiting fibers it does:
 *  1. A fiber that waits by switching joins the barrier's waiter stack (switch/switch.h), and sets the flag STACKED.
 *  2. The last arriver sees STACKED. Before the compare-and-swap it takes one off `left`: destroy now waits for it too.
 *  3. After the compare-and-swap it takes all fibers out of the waiter stack and gives each its token.
 *  4. It adds to `left` its own one, and one for each fiber that was PARKED for a round that is over. Those fibers
 *     (SBT_STACK_COUNTED) return without touching the barrier. That addition is the last arriver's last touch.
 *  5. Any other fiber that it took out looks at the barrier again: it was awake, or waits for a later round. When its
 *     round is over it adds itself to `left`.
 * A fiber may join after step 3. It looks at the word next, finds its round over, and takes the waiter stack itself.
 *
 * More threads than `count` may use a barrier at once. So an arrival reads the generation in the same step in which it
 * is counted. It knows its round even if the rounds before it are being completed just then: completing a round
 * subtracts `count` arrivals and adds a generation, in any order with other arrivals.
 */
#include <errno.h>

#include "core/handlers.h"
#include "core/object.h"
#include "core/probes.h"
#include "engine/direct/direct.h"
#include "os/futex.h"
#include "switch/switch.h"
#include "wait/park.h"

#define ASLEEP ((uint64_t)1 << 32)
#define STACKED ((uint64_t)2 << 32)
#define GENERATION ((uint64_t)4 << 32)
#define GENERATIONS (UINT32_MAX / 4) /* before the counter wraps */
#define FLAGS 3u                     /* in the generation's half */
#define YIELDS_BEFORE_PAUSE 100
#define DESTROY_PAUSE_NS 50000 /* between two looks of a destroy, after so many yields */
#define LEARN_ALWAYS 8         /* the first rounds of a barrier's life, */
#define LEARN_EVERY 16         /* and later ones now and then */

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
 * Take all fibers out of the waiter stack, now that the generation is reached. `joined`: the caller is one of them;
 * otherwise it is the last arriver, which gives back to `left` what it has taken off.
 */
static void disperse(struct sbt_barrier *bx, uint32_t generation, bool joined) {
    struct sbt_wake_list list;
    uint32_t n = sbt_waiter_stack_take(&bx->waiter_stack, generation, joined, &list) + !joined;
    if (n != 0)
        __atomic_fetch_add(&bx->left, n, __ATOMIC_RELEASE); /* pairs with the acquire in destroy */
    sbt_wake_list_end(&list);
}

/*
 * Round complete: release it. Release passes on what all its arrivers did before, which the additions have acquired.
 * Sequentially consistent: either this sees the flag or the waiter stack, or a fiber that has just joined sees the
 * generation.
 */
static SBT_NOINLINE void complete(struct sbt_barrier *bx, uint64_t seen) {
    uint32_t *word = generation_word(bx);
    uint64_t want;
    bool stands = false;
    sbt_handlers_hold(); /* until all are woken: no other thread wakes the threads that this releases */
    do {
        if ((seen & STACKED) != 0 && !stands) {
            __atomic_fetch_sub(&bx->left, 1, __ATOMIC_RELAXED);
            stands = true;
        }
        want = ((seen & ~(ASLEEP | STACKED)) - bx->count) + GENERATION;
    } while (!__atomic_compare_exchange_n(&bx->rounds, &seen, want, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    if (stands)
        disperse(bx, generation_in(want), false);
    if ((seen & ASLEEP) != 0)
        sbt_wake(word, INT_MAX);
    sbt_handlers_release();
}

static SBT_NOINLINE void see_to_stack(struct sbt_barrier *bx, uint32_t generation, uint64_t seen) {
    while (!is_over(seen, generation) && (seen & STACKED) == 0 &&
           !__atomic_compare_exchange_n(&bx->rounds, &seen, seen | STACKED, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    if (is_over(seen, generation)) /* the last arriver may have emptied the stack before this fiber joined */
        disperse(bx, generation, true);
}

/*
 * The caller's fiber has joined the waiter stack. True: it is counted in `left`, and must not touch the barrier. Of all
 * fibers of a round, only the first finds something to do here before it waits.
 */
static inline bool wait_on_stack(struct sbt_barrier *bx, uint32_t generation) {
    uint64_t seen = __atomic_load_n(&bx->rounds, __ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY(is_over(seen, generation) || (seen & STACKED) == 0))
        see_to_stack(bx, generation, seen);
    return sbt_waiter_stack_wait();
}

static SBT_NOINLINE int wait_actively(struct sbt_barrier *bx, uint32_t generation) {
    struct sbt_active active;
    sbt_active_begin(&active, &bx->adapt);
    for (;;) {
        uint64_t seen = __atomic_load_n(&bx->rounds, __ATOMIC_ACQUIRE); /* pairs with complete */
        if (is_over(seen, generation))
            break;
        if (sbt_active_step(&active))
            continue;
        if (SBT_UNLIKELY(sbt_self.fiber != NULL) && sbt_waiter_stack_join(&bx->waiter_stack, generation)) {
            if (wait_on_stack(bx, generation))
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

/* Rounds that earlier arrivals complete: none unless more threads than `count` use it. A division is slow. */
static SBT_NOINLINE uint32_t rounds_before(uint32_t arrived, uint32_t count) {
    return (arrived - 1) / count;
}

int direct_barrier_wait(pthread_barrier_t *b) {
    struct sbt_barrier *bx = sbt_barrier_of(b);
    uint64_t seen = __atomic_add_fetch(&bx->rounds, 1, __ATOMIC_ACQ_REL);
    uint32_t arrived = (uint32_t)seen, count = bx->count;
    uint32_t before = SBT_LIKELY(arrived <= count) ? 0 : rounds_before(arrived, count);
    if (arrived - before * count == count) {
        SBT_PROBE1(barrier_release, b);
        complete(bx, seen);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }

    /* The generation after this arrival's round, and the distance to it, which survives the counter's wrap. */
    uint32_t generation = generation_in(seen) + (uint32_t)(GENERATION >> 32) * (before + 1);
    sbt_switch_about_to_wait();
    /* Where another fiber is runnable that is what the first step of an active wait would find, at more cost. */
    if (SBT_LIKELY(sbt_waiter_stack_join_behind(&bx->waiter_stack, generation)) && wait_on_stack(bx, generation))
        return 0;
    return wait_actively(bx, generation);
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
            sbt_wait_yield(false);
        else
            sbt_pause_ns(DESTROY_PAUSE_NS);
    }
    return 0;
}
