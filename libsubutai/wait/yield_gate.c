/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/yield_gate.h"

#include "os/arch.h"
#include "os/clock.h"
#include "os/futex.h"

/*
 * A yield longer than SBT_LONG_YIELD_NS gave the core to a thread that computes. That is well above what a round
 * through a run queue of 32 short turns takes (100 to 200 us on the two cores where this was measured). One long yield
 * is the machine's noise, which all threads that wait notice at once. A second one that begins after its end, and ends
 * within NEAR times its own length, closes the gate for CLOSED times that length; and each that begins soon after the
 * last closing has ended, for twice as long. When the time has passed one thread finds out for all.
 */
#define NEAR 8
#define CLOSED 16

static uint64_t now_ns(void) {
    return sbt_now_ns();
}

static void yield(void) {
    sbt_yield();
}

static void pause_ns(long ns) {
    sbt_pause_ns(ns);
}

static const struct sbt_wait_ops of_the_kernel = {now_ns, yield, pause_ns};
const struct sbt_wait_ops *sbt_wait_ops = &of_the_kernel;

struct sbt_yield_gate sbt_yield_gate;

static SBT_NOINLINE void long_yield(struct sbt_yield_gate *gate, uint64_t took, uint64_t now, bool probe) {
    uint64_t last = __atomic_load_n(&gate->last_long_ns, __ATOMIC_RELAXED);
    if (!probe && (now - took < last || sbt_yield_gate_closed(gate)))
        return;
    __atomic_store_n(&gate->last_long_ns, now, __ATOMIC_RELAXED);
    if (!probe && now - last > NEAR * took)
        return;
    uint64_t closed = __atomic_load_n(&gate->closed_ns, __ATOMIC_RELAXED);
    bool again = now < __atomic_load_n(&gate->opens_ns, __ATOMIC_RELAXED) + 2 * closed;
    closed = again ? 2 * closed : CLOSED * took;
    closed = closed < SBT_YIELD_GATE_MOST_NS ? closed : SBT_YIELD_GATE_MOST_NS;
    __atomic_store_n(&gate->closed_ns, closed, __ATOMIC_RELAXED);
    __atomic_store_n(&gate->opens_ns, now + closed, __ATOMIC_RELAXED);
    __atomic_store_n(&gate->closed_until_ns, now + closed, __ATOMIC_RELAXED);
}

uint64_t sbt_yield_gate_pass(struct sbt_yield_gate *gate, uint64_t *now_ns) {
    uint64_t begin = *now_ns, until = __atomic_load_n(&gate->closed_until_ns, __ATOMIC_RELAXED);
    bool probe = until != 0;
    if (SBT_UNLIKELY(probe)) {
        uint64_t next = begin + __atomic_load_n(&gate->closed_ns, __ATOMIC_RELAXED);
        if (begin < until || !__atomic_compare_exchange_n(&gate->closed_until_ns, &until, next, false, __ATOMIC_RELAXED,
                                                          __ATOMIC_RELAXED))
            return 0;
    }
    sbt_wait_ops->yield();
    *now_ns = sbt_wait_ops->now_ns();
    uint64_t took = *now_ns - begin;
    if (SBT_UNLIKELY(took > SBT_LONG_YIELD_NS))
        long_yield(gate, took, *now_ns, probe);
    else if (SBT_UNLIKELY(probe))
        __atomic_store_n(&gate->closed_until_ns, 0, __ATOMIC_RELAXED);
    return took + (took == 0);
}

bool sbt_yield_gate_offer(struct sbt_yield_gate *gate) {
    uint64_t now = sbt_wait_ops->now_ns();
    return sbt_yield_gate_pass(gate, &now) != 0;
}

void sbt_yield_gate_asked(struct sbt_yield_gate *gate, uint8_t *spare) {
    if (*spare == 0) { /* the program waits by yields alone */
        sbt_wait_ops->yield();
        return;
    }
    --*spare;
    sbt_yield_gate_offer(gate);
}

void sbt_yield_gate_offer_or_pause(struct sbt_yield_gate *gate) {
    if (!sbt_yield_gate_offer(gate))
        sbt_wait_ops->pause_ns(SBT_YIELD_GATE_PAUSE_NS);
}
