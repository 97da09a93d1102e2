/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Costs, in cycles of the one clock that network interfaces and routers share.
 *
 * Source: Table IV for c, m, entry and exit; section V-B for the clock. The paper gives no cost of a hop. The three
 * cycles of a router are one for each of its parts that the paper names (buffer, switch allocator, crossbar); the one
 * cycle of a link is a 32-bit flit per cycle. The hand-over is the time of Table XI's calls without a response. The way
 * back to a thread that slept is fitted to Table XI, where it is a part of the calls that wait
 * (bench/paper/producer-sim --fit-subutai); the paper names an interrupt, its driver and a context switch for it
 * (sections III-A and IV), and no cost.
 */
#ifndef HW_TIMING_H
#define HW_TIMING_H

#include <stdint.h>

struct hw_timing {
    uint32_t fsm_cycles;      /* c: one step of the state machine */
    uint32_t memory_cycles;   /* m: one 32-bit scratchpad access */
    uint32_t entry_cycles;    /* three flits in, one to choose the state */
    uint32_t exit_cycles;     /* one to set a flag */
    uint32_t router_cycles;   /* header through one router, no other packet in the way; ours */
    uint32_t link_cycles;     /* one flit over one link; ours */
    uint32_t handover_cycles; /* program to network interface, before the request is a packet */
    uint32_t resume_cycles;   /* network interface to a thread that has waited for others, hw_packet_ends_wait() */
    uint32_t clock_mhz;
};

struct hw_timing hw_timing_default(void);

/* Nanoseconds of a number of cycles, rounded down. */
uint64_t hw_timing_ns(const struct hw_timing *timing, uint64_t cycles);

/*
 * Model time by a wall clock that runs `scale` times as fast. Cycles are rounded down: only whole ones have passed.
 * Nanoseconds are rounded up: what waits for a cycle's end does not wake before it.
 */
uint64_t hw_timing_cycles_of_wall(const struct hw_timing *timing, uint64_t wall_ns, uint32_t scale);
uint64_t hw_timing_wall_ns(const struct hw_timing *timing, uint64_t cycles, uint32_t scale);

/*
 * A core hands over one request at a time, and each takes handover_cycles. A request that is made at `now` is handed
 * over when this returns; *until: when the core's last request was, and now when this one is.
 */
static inline uint64_t hw_timing_hand_over(const struct hw_timing *timing, uint64_t *until, uint64_t now) {
    *until = (*until > now ? *until : now) + timing->handover_cycles;
    return *until;
}

#endif
