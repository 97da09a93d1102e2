/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The yield gate: a thread yields here, unless yielding costs more than it can bring.
 *
 * Among threads that wait for each other a yield is the cheapest way to let the right one run. Beside a thread that
 * computes, of this process or of another, it is the dearest. The yielding thread forfeits the rest of a time slice
 * (Linux since 6.18 has it pay for all of the slice). The other thread runs for milliseconds, whereas a sleeper would
 * be given a core as soon as it is woken. So when yields take that long the gate closes, and no thread of the process
 * yields for a while.
 */
#ifndef SBT_WAIT_YIELD_GATE_H
#define SBT_WAIT_YIELD_GATE_H

#include <stdbool.h>
#include <stdint.h>

/* A yield that lasted longer gave the core to a thread that computes. */
#define SBT_LONG_YIELD_NS 700000u
/* A thread that can do nothing but look again sleeps for so long while the gate is closed. */
#define SBT_YIELD_GATE_PAUSE_NS 20000
/* The gate is never closed for longer. */
#define SBT_YIELD_GATE_MOST_NS 256000000u

/* What waiting does with time. A test has functions of its own. */
struct sbt_wait_ops {
    uint64_t (*now_ns)(void);
    void (*yield)(void);
    void (*pause_ns)(long ns);
};
extern const struct sbt_wait_ops *sbt_wait_ops;

/* Relaxed everywhere: it steers waiting and decides nothing. All-zero is an open gate that knows nothing. */
struct sbt_yield_gate {
    uint64_t closed_until_ns;     /* 0: open */
    uint64_t last_long_ns;        /* when the last long yield ended */
    uint64_t closed_ns, opens_ns; /* how long it is or was last closed, and until when */
};
extern struct sbt_yield_gate sbt_yield_gate; /* the process's */

/* Is it closed? One thread still passes, and finds out whether it must stay closed. */
static inline bool sbt_yield_gate_closed(const struct sbt_yield_gate *gate) {
    return __atomic_load_n(&gate->closed_until_ns, __ATOMIC_RELAXED) != 0;
}

/*
 * Yield. Returns for how long the core was away, ns, at least 1. 0: there was no yield, and to park is better. *now_ns
 * is the time before the yield, and is set to the time after it. Never sleeps; may last as long as other threads use
 * the core.
 */
uint64_t sbt_yield_gate_pass(struct sbt_yield_gate *gate, uint64_t *now_ns);

/*
 * For a thread that the program has yield: it yields, however long that takes. But while the gate is closed the first
 * few yields before a wait on a futex are left out, *spare of them, which this counts down. A thread that yields that
 * seldom sleeps until it is woken, and a thread of the process need not give its core to other programs for that.
 */
void sbt_yield_gate_asked(struct sbt_yield_gate *gate, uint8_t *spare);

/* What *spare is after a wait on a futex: libstdc++ yields four times before each. */
#define SBT_SPARE_YIELDS 8

/*
 * A wait on a futex has ended with that result of the system call's. One that has not waited, because the word had
 * changed or the time had passed, spares nothing: a loop of such calls waits by its yields alone, and threads of its
 * real-time priority would not get its core.
 */
static inline void sbt_yield_gate_waited(uint8_t *spare, long result) {
    if (result == 0)
        *spare = SBT_SPARE_YIELDS;
}

/* For a thread that need not yield at all: yield if that pays. True: it has yielded. */
bool sbt_yield_gate_offer(struct sbt_yield_gate *gate);

/* For a thread that can do nothing but look again: yield, or where that does not pay sleep for a moment. */
void sbt_yield_gate_offer_or_pause(struct sbt_yield_gate *gate);

#endif
