/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Giving the core away, unless that costs more than it can bring.
 *
 * Among threads that wait for each other a yield is the cheapest way to let the right one run. Beside somebody who
 * computes, another process or a thread of this one, it is the dearest: it forfeits the rest of a time slice (Linux
 * since 6.18 has it pay for all of that), milliseconds in which the other one runs, whereas who sleeps is given a core
 * as soon as it is woken. So when yields take that long nobody in the process yields for a while.
 */
#ifndef SBT_WAIT_TURN_H
#define SBT_WAIT_TURN_H

#include <stdbool.h>
#include <stdint.h>

/* A turn that lasted longer went to somebody who computes. */
#define SBT_LONG_TURN_NS 700000u

/*
 * Yield; for how long the core was away, ns, at least 1. 0: it did not, and to park is better. *now_ns is the time
 * before, and then the time after. Never sleeps; may last as long as others have use for the core.
 */
uint64_t sbt_turn_give(uint64_t *now_ns);

/* Is it closed to all but one that finds out? */
extern uint64_t sbt_turn_closed_until_ns;
static inline bool sbt_turn_closed(void) {
    return __atomic_load_n(&sbt_turn_closed_until_ns, __ATOMIC_RELAXED) != 0;
}

/* For who can do nothing but look again: yield, or where that does not pay sleep for TURN_PAUSE_NS. */
void sbt_turn_give_or_pause(void);

/* The same for who need not give it away at all: yield if that pays. Has it? */
bool sbt_turn_offer(void);

#endif
