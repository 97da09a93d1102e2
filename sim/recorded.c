/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorded.h"

#include <stdlib.h>

struct slots {
    uint64_t length_ns; /* of each */
    uint64_t work_ns[SIM_RECORDED_SLOTS];
};

static void add_work(struct slots *slots, uint64_t end_ns, uint64_t work_ns) {
    uint64_t from = work_ns < end_ns ? end_ns - work_ns : 0;
    for (uint64_t at = from, next; at < end_ns; at = next) {
        uint64_t slot = at / slots->length_ns;
        slot = slot < SIM_RECORDED_SLOTS - 1 ? slot : SIM_RECORDED_SLOTS - 1;
        next = slot < SIM_RECORDED_SLOTS - 1 ? (slot + 1) * slots->length_ns : end_ns;
        next = next < end_ns ? next : end_ns;
        slots->work_ns[slot] += next - at;
    }
}

static bool add_thread(struct slots *slots, const struct sbt_trace *trace, uint32_t thread) {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event event;
    struct sbt_trace_error damage; /* ignored: the replay finds it again */
    int got;
    sbt_trace_cursor_begin(trace, thread, &cursor);
    while ((got = sbt_trace_next(&cursor, &event, &damage)) == 1)
        add_work(slots, event.at_ns, event.work_ns);
    return got == 0;
}

/* Of a slot with less than one core's work the work was done by one core. */
static void sum_up(struct sim_recorded *recorded, const struct slots *slots) {
    for (uint32_t i = 0; i < SIM_RECORDED_SLOTS; i++) {
        double work = (double)slots->work_ns[i], cores = work / (double)slots->length_ns;
        recorded->work_ns += work;
        recorded->by_cores_ns += work * (cores > 1 ? cores : 1);
    }
}

bool sim_recorded_add(struct sim_recorded *recorded, const struct sbt_trace *trace) {
    const struct sbt_trace_info *info = sbt_trace_info(trace);
    if (info->generated)
        return true;
    struct slots *slots = calloc(1, sizeof *slots);
    if (slots == NULL)
        return false;
    slots->length_ns = info->duration_ns / SIM_RECORDED_SLOTS + 1;
    bool good = true;
    for (uint32_t thread = 0; thread < info->n_threads && good; thread++)
        good = add_thread(slots, trace, thread);
    if (good)
        sum_up(recorded, slots);
    free(slots);
    return good;
}

uint32_t sim_recorded_cores(const struct sim_recorded *recorded, uint32_t most) {
    double cores = recorded->work_ns > 0 ? recorded->by_cores_ns / recorded->work_ns : 1;
    return cores < 1 ? 1000 : cores > most ? 1000 * most : (uint32_t)(1000 * cores);
}
