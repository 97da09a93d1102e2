/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether other programs want the CPUs; see beside.h. */
#include "core/beside.h"

#define OLD_NS 1000000000u /* an older look tells nothing of now */

/* Have the threads had less than seven eighths of the time that they want? */
static bool lacks_time(const struct sbt_beside *b, const struct sbt_beside_seen *seen) {
    const uint64_t ns = seen->now_ns - b->since_ns, n = seen->n_spin < seen->n_cpus ? seen->n_spin : seen->n_cpus;
    if (b->used_ns == 0 || ns > OLD_NS || seen->used_ns < b->used_ns)
        return false;
    return 8 * (seen->used_ns - b->used_ns) < 7 * ns * n;
}

bool sbt_beside_step(struct sbt_beside *b, const struct sbt_beside_seen *seen) {
    const bool is_crowded = seen->n_spin > 0 && seen->n_runnable > seen->n_cpus_most;
    const bool sees = is_crowded && (b->answer || lacks_time(b, seen));
    b->n_other = sees == b->answer ? 0 : b->n_other + 1;
    b->n_looks++;
    if (b->n_other == SBT_BESIDE_AGREE || (b->answer && b->n_looks == SBT_BESIDE_LOOKS)) {
        b->answer = !b->answer;
        b->n_other = b->n_looks = 0;
    }
    b->since_ns = seen->now_ns;
    b->used_ns = seen->used_ns;
    return b->answer;
}
