/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The constants of the software-only model (section III-C of the paper).
 *
 * attempt, futex, kernel and wake are fitted to the SW column of Table XI and to nothing else. The setting is the
 * table's, as far as the text describes it: the calls of bench/paper/producer.c, six threads, no work between the
 * calls, 200 rounds. The command is `build/bench/paper/producer-sim --fit`. It searches for the constants with the
 * best worst row, also when any of them is 1 % off. That matters because the constants decide races: on the edge of a
 * race there are nearer matches, which say less. Four constants for six rows leave two degrees of freedom. All six rows
 * are within 10 % (`producer-sim --check`, a test).
 *
 * A way through the kernel is one constant wherever a thread takes it: the waker's way in; the way in of a thread that
 * falls asleep at a condition or barrier, where there is nothing to attempt; and the way back of a woken thread. t2 has
 * its own constant, because the paper has the queue's lock and a second attempt on shared memory there, its "most
 * time-critical" point. That it costs eight times as much comes from the column, not from the text. The third attempt
 * is made in the library like the first, and costs the same.
 *
 * The fit is a long run of that program with one mutex, one condition and one barrier. The table is 32 times 15 rounds,
 * each time with other objects (producer.c).
 *
 * Three constants are ours, because the paper has no number: a cache line has the 18 flits of emu_hw's data packets; a
 * core needs 1 us to change to another thread, on both machines; and a waiting thread polls for as long before it gives
 * its core away.
 */
#include "costs.h"

struct sim_costs sim_costs_default(void) {
    return (struct sim_costs){.attempt_ns = 1588,
                              .futex_ns = 56645,
                              .kernel_ns = 7115,
                              .wake_ns = 13906,
                              .line_flits = 18,
                              .switch_ns = 1000,
                              .patience_ns = 1000};
}
