/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The work between two events: the time between them without what the recorder itself takes there.
 *
 * The clock's steps may be longer than the work: some processors count in steps of 10 ns. So what comes out below zero
 * is owed, and the next work is shorter by that. Then the mean is right; if it were forgotten, short work would come
 * out too long by up to half a step. A thread owes no more than one event costs. So a cost that is not as measured
 * makes no long work shorter.
 */
#ifndef SBT_OBSERVE_WORK_H
#define SBT_OBSERVE_WORK_H

#include <stdint.h>

/* overhead_ns is below 2^16. */
static inline uint64_t rec_work_of(uint64_t between_ns, uint32_t overhead_ns, uint16_t *owed_ns) {
    uint64_t cost = (uint64_t)overhead_ns + *owed_ns;
    if (between_ns >= cost) {
        *owed_ns = 0;
        return between_ns - cost;
    }
    *owed_ns = (uint16_t)(cost - between_ns < overhead_ns ? cost - between_ns : overhead_ns);
    return 0;
}

/*
 * The CPU time that a thread has used between two readings of it. A reading costs CPU time itself: what it takes before
 * it reads, and what the one before took after it had read, are between the two.
 */
static inline uint64_t rec_used_between(uint64_t from_ns, uint64_t to_ns, uint32_t reading_ns) {
    uint64_t least = from_ns + reading_ns;
    return to_ns > least ? to_ns - least : 0;
}

#endif
