/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "polling.h"

#include <errno.h>

static bool tries(const struct sbt_trace_event *event, uint32_t mutex) {
    return event->op == SBT_TRACE_MUTEX_TRYLOCK && event->object == mutex;
}

bool sim_polling_goes_on(const struct sbt_trace_event *before, const struct sbt_trace_event *event) {
    return tries(before, event->object) && before->result == EBUSY;
}

static bool unlocks(const struct sbt_trace_event *event, uint32_t mutex) {
    return event->op == SBT_TRACE_MUTEX_UNLOCK && event->object == mutex && event->result == 0;
}

struct sim_polling sim_polling_ahead(struct sbt_trace_cursor *cursor, const struct sbt_trace_event *before,
                                     struct sbt_trace_event *event) {
    struct sim_polling none = {.condition = SBT_TRACE_NONE}, found = none;
    struct sbt_trace_cursor at = *cursor;
    struct sbt_trace_event next = *event;
    struct sbt_trace_error damage; /* ignored: the replay finds it again */
    if (event->object == SBT_TRACE_NONE)
        return none;
    while (next.result == EBUSY) {
        if (sbt_trace_next(&at, &next, &damage) <= 0 || !tries(&next, event->object) ||
            next.work_ns > SIM_POLLING_GAP_NS)
            return none;
        found.n_failed++;
        found.gaps_ns += next.work_ns;
    }
    if (next.result != 0)
        return none;
    next.work_ns = event->work_ns;
    *event = next;
    *cursor = at;
    if (!unlocks(before, event->object) || sbt_trace_next(&at, &next, &damage) <= 0)
        return found;
    if (next.op == SBT_TRACE_COND_WAIT && next.other == event->object && next.result == 0 && next.order != 0 &&
        next.object != SBT_TRACE_NONE) {
        found.condition = next.object;
        found.signal = next.order;
    }
    return found;
}
