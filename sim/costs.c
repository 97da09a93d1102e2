/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The constants of the software-only model (section III-C of the paper).
 *
 * attempt, futex, kernel and wake are fitted to the SW column of Table XI and to nothing else, in its setting as far as
 * the text tells it: bench/paper/producer.c's calls, six threads, no work between the calls, 200 rounds. The command is
 * `build/bench/paper/producer-sim --fit`; it searches for the least worst row, also when any one of them is 1 % off:
 * who wins a race hangs on them, and there are matches on the edge of one that are nearer and say less. Four constants
 * for six rows, so two degrees of freedom are left. All six are within 10 % (`producer-sim --check`, a test).
 *
 * A way through the kernel is one constant wherever it is gone: by who wakes others, by who falls asleep at a condition
 * or a barrier, where there is nothing to attempt, and back by who has been woken. t2 has another one, since the paper
 * has the queue's lock and a second attempt on shared memory there, its "most time-critical" point; that it costs eight
 * times as much is what the column says, not the text. The third attempt is made in the library, as the first, and
 * costs the same.
 *
 * They were fitted in a long run of that program with one mutex, one condition and one barrier; the table is of 32
 * times 15 rounds, each time with others (producer.c).
 *
 * Ours, since the paper has no number: a cache line has the 18 flits of emu_hw's data packets; a core that goes on with
 * another thread needs 1 us for that, on both machines, and a thread that waits polls for as long before it lets go.
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
