/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events as the analysis may rely on them. A file may come from anywhere: its numbers are in range (trace.h), but it
 * may lock no object, and have times that no clock has.
 */
#include <stdio.h>

#include "walk.h"

#define LAST_NS (UINT64_C(1) << 60) /* 36 years */

/* A wait for the outside that is left has times that make no sense. */
static bool needs_object(unsigned op) {
    return op >= SBT_TRACE_INIT && op != SBT_TRACE_OUTSIDE_WAIT;
}

int rep_next_of(struct sbt_trace_cursor *cursor, struct sbt_trace_event *e, uint64_t *outside_ns,
                struct sbt_trace_error *error) {
    uint64_t work_ns = 0;
    int got;
    *outside_ns = 0;
    while ((got = sbt_trace_next(cursor, e, error)) == 1) {
        if (e->op == SBT_TRACE_OUTSIDE_WAIT && (work_ns | e->work_ns | e->took_ns) < LAST_NS) {
            work_ns += e->work_ns;
            *outside_ns += e->took_ns;
            continue;
        }
        e->work_ns += work_ns;
        if (needs_object(e->op) && e->object == SBT_TRACE_NONE)
            continue;
        if (e->at_ns < LAST_NS && e->took_ns < LAST_NS && e->work_ns < LAST_NS)
            return 1;
        *error = (struct sbt_trace_error){.offset = 0};
        snprintf(error->reason, sizeof error->reason, "thread %u has times that make no sense", cursor->thread);
        return -1;
    }
    return got;
}

int rep_next(struct sbt_trace_cursor *cursor, struct sbt_trace_event *e, struct sbt_trace_error *error) {
    uint64_t outside_ns;
    return rep_next_of(cursor, e, &outside_ns, error);
}

bool rep_plausible(const struct sbt_trace_info *info, struct sbt_trace_error *error) {
    uint64_t most = 16 * (info->n_events + info->n_tallies) + (1 << 20);
    if (info->n_threads < most && info->n_objects < most && info->n_sites < most)
        return true;
    *error = (struct sbt_trace_error){.offset = 0};
    snprintf(error->reason, sizeof error->reason, "%u threads, %u objects and %u sites in %ju events make no sense",
             info->n_threads, info->n_objects, info->n_sites, (uintmax_t)info->n_events);
    return false;
}
