/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/turn.h"

#include "core/arch.h"
#include "core/clock.h"
#include "wait/futex.h"

/*
 * A turn longer than SBT_LONG_TURN_NS went to somebody who computes. It is well above what a round through a run queue
 * of 32 short turns takes (100 to 200 us on the two cores where this was measured). One of them is the machine's noise,
 * which all who wait notice at once. A second one that begins after its end and ends within NEAR times its own length
 * closes the gate for CLOSED times that length, and each that begins soon after the last has ended for twice as long.
 * When that time has passed one thread finds out for all.
 */
#define NEAR 8
#define CLOSED 16
#define MAX_CLOSED_NS 256000000u
#define TURN_PAUSE_NS 20000

/* Of the process. Relaxed everywhere: they steer waiting and decide nothing. */
uint64_t sbt_turn_closed_until_ns; /* 0: open */
static uint64_t last_long_ns;
static uint64_t closed_ns, opens_ns; /* how long it is or was last closed, and until when */

static SBT_NOINLINE void long_turn(uint64_t took, uint64_t now, bool probe) {
    uint64_t last = __atomic_load_n(&last_long_ns, __ATOMIC_RELAXED);
    if (!probe && (now - took < last || sbt_turn_closed()))
        return;
    __atomic_store_n(&last_long_ns, now, __ATOMIC_RELAXED);
    if (!probe && now - last > NEAR * took)
        return;
    uint64_t closed = __atomic_load_n(&closed_ns, __ATOMIC_RELAXED);
    bool again = now < __atomic_load_n(&opens_ns, __ATOMIC_RELAXED) + 2 * closed;
    closed = again ? 2 * closed : CLOSED * took;
    closed = closed < MAX_CLOSED_NS ? closed : MAX_CLOSED_NS;
    __atomic_store_n(&closed_ns, closed, __ATOMIC_RELAXED);
    __atomic_store_n(&opens_ns, now + closed, __ATOMIC_RELAXED);
    __atomic_store_n(&sbt_turn_closed_until_ns, now + closed, __ATOMIC_RELAXED);
}

uint64_t sbt_turn_give(uint64_t *now_ns) {
    uint64_t begin = *now_ns, until = __atomic_load_n(&sbt_turn_closed_until_ns, __ATOMIC_RELAXED);
    bool probe = until != 0;
    if (SBT_UNLIKELY(probe)) {
        uint64_t next = begin + __atomic_load_n(&closed_ns, __ATOMIC_RELAXED);
        if (begin < until || !__atomic_compare_exchange_n(&sbt_turn_closed_until_ns, &until, next, false,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return 0;
    }
    sbt_yield();
    *now_ns = sbt_now_ns();
    uint64_t took = *now_ns - begin;
    if (SBT_UNLIKELY(took > SBT_LONG_TURN_NS))
        long_turn(took, *now_ns, probe);
    else if (SBT_UNLIKELY(probe))
        __atomic_store_n(&sbt_turn_closed_until_ns, 0, __ATOMIC_RELAXED);
    return took + (took == 0);
}

bool sbt_turn_offer(void) {
    uint64_t now = sbt_now_ns();
    return sbt_turn_give(&now) != 0;
}

void sbt_turn_give_or_pause(void) {
    if (!sbt_turn_offer())
        sbt_pause_ns(TURN_PAUSE_NS);
}
