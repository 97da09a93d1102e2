/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether other programs want the CPUs; see beside.h. */
#include "core/beside.h"

#define OLD_NS 1000000000u /* an older look tells nothing of now */

/*
 * A CPU that is shared with an equal is taken away every few ms, 24 at most. One that is shared with a thread of the
 * lowest priority, or that a kernel thread needs at times, less than once in 0.1 s.
 */
#define PREEMPTED_NS 64000000u

/* Have the threads had less than seven eighths of the time that they want, because of others? */
static bool lacks_time(const struct sbt_beside *b, const struct sbt_beside_seen *seen) {
    const uint64_t ns = seen->now_ns - b->since_ns, n = seen->n_spin < seen->n_cpus ? seen->n_spin : seen->n_cpus;
    if (b->used_ns == 0 || ns > OLD_NS || seen->used_ns < b->used_ns)
        return false;
    return 8 * (seen->used_ns - b->used_ns) < 7 * ns * n &&
           (seen->n_preempted - b->n_preempted) * PREEMPTED_NS >= ns * n;
}

bool sbt_beside_asks(const struct sbt_beside *b, const struct sbt_beside_seen *seen) {
    return seen->n_spin > 0 && (b->answer || lacks_time(b, seen));
}

bool sbt_beside_step(struct sbt_beside *b, const struct sbt_beside_seen *seen) {
    const bool sees = sbt_beside_asks(b, seen) && seen->n_runnable > seen->n_cpus_most;
    b->n_other = sees == b->answer ? 0 : b->n_other + 1;
    b->n_looks++;
    if (b->n_other == SBT_BESIDE_AGREE || (b->answer && b->n_looks == SBT_BESIDE_LOOKS)) {
        b->answer = !b->answer;
        b->n_other = b->n_looks = 0;
    }
    b->since_ns = seen->now_ns;
    b->used_ns = seen->used_ns;
    b->n_preempted = seen->n_preempted;
    return b->answer;
}
