/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results of simulations as rows; see predict_rows.h. */
#include "predict_rows.h"

#include <math.h>
#include <stdlib.h>

static double makespan(const struct predict *p, size_t run) {
    return (double)sim_summary(p->runs[run].sim).makespan_ns;
}

/* Relative to the first run; NaN if that or this takes no time. */
static double speedup(const struct predict *p, size_t run) {
    double first = makespan(p, 0), own = makespan(p, run);
    return first > 0 && own > 0 ? first / own : NAN;
}

static double duration(const struct sim *sim, uint32_t application) {
    const struct sim_application *a = sim_application(sim, application);
    return (double)(a->to_ns - a->from_ns);
}

/* From the common beginning: the time for which an application's user waits. */
static double mean_end(const struct sim *sim) {
    double sum = 0;
    for (uint32_t i = 0; i < sim_n_applications(sim); i++)
        sum += (double)sim_application(sim, i)->to_ns;
    return sum / sim_n_applications(sim);
}

/* Eq. 1; NaN without --unfairness. Waiting for its turn counts as slowing an application down. */
static double unfairness(const struct predict *p, size_t run) {
    size_t n = p->n_applications;
    if (!p->unfairness)
        return NAN;
    double *scheduled = cmd_allocate(n, sizeof *scheduled), *alone = cmd_allocate(n, sizeof *alone);
    for (size_t i = 0; i < n; i++) {
        scheduled[i] = (double)sim_application(p->runs[run].sim, (uint32_t)i)->to_ns;
        alone[i] = p->files[p->application[i]].alone_ns[run];
    }
    double result = sim_unfairness(scheduled, alone, n);
    free(scheduled);
    free(alone);
    return result;
}

static double section_share(const struct sim *sim) {
    double held = 0, all = 0;
    struct sim_summary s = sim_summary(sim);
    for (uint32_t i = 0; i < sim_n_applications(sim); i++)
        held += (double)sim_application(sim, i)->sections.sum_ns;
    all = (double)(s.work_ns + s.call_ns + s.wait_ns + s.ready_ns + s.outside_ns);
    return all > 0 ? held / all : 0;
}

static double utilisation(const struct predict *p, size_t run) {
    struct sim_summary s = sim_summary(p->runs[run].sim);
    double all = (double)s.makespan_ns * p->runs[run].chip.n_cores;
    return s.makespan_ns > 0 ? (double)(s.work_ns + s.call_ns) / all : 0;
}

/* Of all applications: they begin at once, or come one after another. */
static struct sim_bounds bounds(const struct predict *p, size_t run) {
    struct sim_bounds all = {0};
    for (size_t i = 0; i < p->n_applications; i++) {
        struct sim_bounds own = sim_survey_bounds(p->files[p->application[i]].survey);
        all.work_ns += own.work_ns;
        if (p->runs[run].sched == CSA_OAT)
            all.path_ns += own.path_ns;
        else
            all.path_ns = own.path_ns > all.path_ns ? own.path_ns : all.path_ns;
    }
    uint64_t n = p->runs[run].chip.n_cores;
    all.work_ns = all.work_ns / n + (all.work_ns % n != 0);
    return all;
}

static uint64_t n_recorded(const struct predict *p) {
    uint64_t n = 0;
    for (size_t i = 0; i < p->n_applications; i++)
        n += sbt_trace_info(p->files[p->application[i]].trace)->n_events;
    return n;
}

static uint64_t n_deviations(const struct sim *sim) {
    struct sim_summary s = sim_summary(sim);
    uint64_t n = 0;
    for (int i = 0; i < SIM_N_DEVIATIONS; i++)
        n += s.n_deviations[i];
    return n;
}

/* ---- rows ---- */

#define RUN(member) offsetof(struct run_row, member)
#define DEVIATIONS(kind) (RUN(sum.n_deviations) + (kind) * sizeof(uint64_t))
const struct field predict_run_fields[] = {
    {NULL, "machine", "machine", COLUMN_MACHINE, FIELD_TEXT, RUN(machine), 0},
    {NULL, "sync", "sync", 2, FIELD_TEXT, RUN(sync), 0},
    {NULL, "sched", "sched", 3, FIELD_TEXT, RUN(sched), 0},
    {NULL, "cores", "cores", 4, FIELD_UINT32, RUN(chip.n_cores), 0},
    {NULL, "width", NULL, 0, FIELD_UINT32, RUN(chip.width), 0},
    {NULL, "height", NULL, 0, FIELD_UINT32, RUN(chip.height), 0},
    {NULL, "makespan_ns", "time", 5, FIELD_NS64, RUN(sum.makespan_ns), 0},
    {NULL, "critical_path_ns", "critical path", 6, FIELD_NS64, RUN(bounds.path_ns), 0},
    {NULL, "work_by_cores_ns", "work / cores", 7, FIELD_NS64, RUN(bounds.work_ns), 0},
    {NULL, "speedup", "speed-up", 8, FIELD_RATIO, RUN(speedup), 4},
    {NULL, "mean_end_ns", "mean end", 9, FIELD_NS, RUN(mean_end_ns), 0},
    {NULL, "utilisation", "cores busy", 10, FIELD_SHARE, RUN(utilisation), 4},
    {NULL, "section_share", "in sections", 11, FIELD_SHARE_2, RUN(section_share), 6},
    {NULL, "unfairness", "unfairness", COLUMN_UNFAIRNESS, FIELD_INDEX, RUN(unfairness), 4},
    {NULL, "n_events", NULL, 0, FIELD_UINT64, RUN(sum.n_events), 0},
    {NULL, "n_calls", "calls", 12, FIELD_UINT64, RUN(sum.n_calls), 0},
    {NULL, "n_steps", NULL, 0, FIELD_UINT64, RUN(sum.n_steps), 0},
    {NULL, "work_ns", NULL, 0, FIELD_UINT64, RUN(sum.work_ns), 0},
    {NULL, "call_ns", NULL, 0, FIELD_UINT64, RUN(sum.call_ns), 0},
    {NULL, "wait_ns", NULL, 0, FIELD_UINT64, RUN(sum.wait_ns), 0},
    {NULL, "ready_ns", NULL, 0, FIELD_UINT64, RUN(sum.ready_ns), 0},
    {NULL, "outside_ns", NULL, 0, FIELD_UINT64, RUN(sum.outside_ns), 0},
    {NULL, "n_outside", NULL, 0, FIELD_UINT64, RUN(sum.n_outside), 0},
    {NULL, "n_switches", NULL, 0, FIELD_UINT64, RUN(sum.n_switches), 0},
    {NULL, "n_migrations", NULL, 0, FIELD_UINT64, RUN(sum.n_migrations), 0},
    {"not_as_recorded", "n", NULL, 0, FIELD_UINT64, RUN(n_deviations), 0},
    {"not_as_recorded", "share", NULL, 0, FIELD_SHARE, RUN(deviation_share), 6},
    {"not_as_recorded", "unknown_joins", NULL, 0, FIELD_UINT64, DEVIATIONS(SIM_UNKNOWN_JOIN), 0},
    {"not_as_recorded", "unknown_creations", NULL, 0, FIELD_UINT64, DEVIATIONS(SIM_UNKNOWN_CREATE), 0},
    {"not_as_recorded", "without_lock", NULL, 0, FIELD_UINT64, DEVIATIONS(SIM_NOT_HELD), 0},
    {"not_as_recorded", "unknown_objects", NULL, 0, FIELD_UINT64, DEVIATIONS(SIM_UNKNOWN_OBJECT), 0},
    {"not_as_recorded", "let_pass", NULL, 0, FIELD_UINT64, DEVIATIONS(SIM_LET_PASS), 0},
    {"not_as_recorded", "not_replayed", NULL, 0, FIELD_UINT64, DEVIATIONS(SIM_NOT_REPLAYED), 0},
    {"waits_by_calling", "trylocks", NULL, 0, FIELD_UINT64, RUN(sum.n_polls), 0},
    {"waits_by_calling", "looks", NULL, 0, FIELD_UINT64, RUN(sum.n_looks), 0},
    {"schedule_requests", "outside", NULL, 0, FIELD_UINT64, RUN(sum.sched.n_outside), 0},
    {"schedule_requests", "csa", NULL, 0, FIELD_UINT64, RUN(sum.sched.n_priority), 0},
    {"schedule_requests", "rr", NULL, 0, FIELD_UINT64, RUN(sum.sched.n_rr), 0},
    {"schedule_requests", "rr_capped", NULL, 0, FIELD_UINT64, RUN(sum.sched.n_rr_capped), 0},
    {"schedule_requests", "limits_used_up", NULL, 0, FIELD_UINT64, RUN(sum.sched.n_limited), 0},
    {"schedule_requests", "sections_begun_alone", NULL, 0, FIELD_UINT64, RUN(sum.sched.n_alone), 0},
    {"schedule_requests", "frames_capped", NULL, 0, FIELD_UINT64, RUN(sum.sched.n_capped), 0},
    {"software", "futex_waits", NULL, 0, FIELD_UINT64, RUN(sum.n_futex_waits), 0},
    {"software", "futex_wakes", NULL, 0, FIELD_UINT64, RUN(sum.n_futex_wakes), 0},
    {"software", "lost_races", NULL, 0, FIELD_UINT64, RUN(sum.n_lost_races), 0},
    {0},
};
/* For the paper's hardware only. */
const struct field predict_hardware_fields[] = {
    {"hardware", "packets", NULL, 0, FIELD_UINT64, RUN(sum.n_packets), 0},
    {"hardware", "hops", NULL, 0, FIELD_UINT64, RUN(sum.n_hops), 0},
    {"hardware", "contention_ns", NULL, 0, FIELD_UINT64, RUN(sum.contention_ns), 0},
    {"hardware", "fsm_steps", NULL, 0, FIELD_UINT64, RUN(sum.n_fsm_steps), 0},
    {"hardware", "fsm_busy_ns", NULL, 0, FIELD_UINT64, RUN(sum.fsm_busy_ns), 0},
    {"hardware", "held", NULL, 0, FIELD_UINT64, RUN(sum.n_held), 0},
    {"hardware", "evictions", NULL, 0, FIELD_UINT64, RUN(sum.n_evictions), 0},
    {"hardware", "software_objects", NULL, 0, FIELD_UINT64, RUN(sum.n_software_objects), 0},
    {"hardware", "passed_on", NULL, 0, FIELD_UINT64, RUN(sum.n_passed_on), 0},
    {0},
};
/* For the optical network only. */
const struct field predict_optical_fields[] = {
    {"optical", "messages", NULL, 0, FIELD_UINT64, RUN(sum.n_messages), 0},
    {"optical", "retrieved", NULL, 0, FIELD_UINT64, RUN(sum.n_retrieved), 0},
    {"optical", "transferred", NULL, 0, FIELD_UINT64, RUN(sum.n_transferred), 0},
    {"optical", "delay_ns", NULL, 0, FIELD_UINT64, RUN(sum.message_delay_ns), 0},
    {"optical", "max_lambda_queue", NULL, 0, FIELD_UINT64, RUN(sum.max_lambda), 0},
    {"optical", "max_buffer", NULL, 0, FIELD_UINT64, RUN(sum.max_buffer), 0},
    {"optical", "without_channel", NULL, 0, FIELD_UINT64, RUN(sum.n_without_channel), 0},
    {0},
};

struct run_row predict_run_row(const struct predict *p, size_t i) {
    const struct predict_run *run = &p->runs[i];
    return (struct run_row){
        .machine = run->machine->name,
        .sync = sim_sync_name(run->sync),
        .sched = predict_sched_name(run),
        .chip = run->chip,
        .bounds = bounds(p, i),
        .n_deviations = n_deviations(run->sim),
        .deviation_share = (double)n_deviations(run->sim) / (double)n_recorded(p),
        .speedup = speedup(p, i),
        .mean_end_ns = mean_end(run->sim),
        .utilisation = utilisation(p, i),
        .section_share = section_share(run->sim),
        .unfairness = unfairness(p, i),
        .sum = sim_summary(run->sim),
    };
}

/* The first columns of a table with several rows for a run. */
#define RUN_COLUMNS(row)                                                                                               \
    {NULL, NULL, "machine", COLUMN_MACHINE, FIELD_TEXT, offsetof(struct row, run.machine), 0},                         \
        {NULL, NULL, "sync", 2, FIELD_TEXT, offsetof(struct row, run.sync), 0},                                        \
        {NULL, NULL, "sched", 3, FIELD_TEXT, offsetof(struct row, run.sched), 0}, {                                    \
        NULL, NULL, "cores", 4, FIELD_UINT32, offsetof(struct row, run.n_cores), 0                                     \
    }

static struct run_names names_of(const struct predict_run *run) {
    return (struct run_names){run->machine->name, sim_sync_name(run->sync), predict_sched_name(run), run->chip.n_cores};
}

#define CALL(member) offsetof(struct call_row, member)
const struct field predict_call_fields[] = {
    RUN_COLUMNS(call_row),
    {NULL, "call", "call", 5, FIELD_TEXT, CALL(call), 0},
    {NULL, "n", "calls", 6, FIELD_UINT64, CALL(latency.n), 0},
    {NULL, "mean_ns", "mean", 7, FIELD_NS, CALL(latency.mean_ns), 1},
    {NULL, "median_ns", "median", 8, FIELD_NS64, CALL(latency.median_ns), 0},
    {NULL, "p99_ns", "p99", 9, FIELD_NS64, CALL(latency.p99_ns), 0},
    {NULL, "max_ns", "max", 10, FIELD_NS64, CALL(latency.max_ns), 0},
    {0},
};

bool predict_call_row(const struct predict_run *run, int kind, struct call_row *row) {
    *row = (struct call_row){
        .run = names_of(run),
        .call = sim_call_name((enum sim_call_kind)kind),
        .latency = sim_call(run->sim, (enum sim_call_kind)kind),
    };
    return row->latency.n > 0;
}

#define PACKETS(member) offsetof(struct packet_row, member)
const struct field predict_packet_fields[] = {
    RUN_COLUMNS(packet_row),
    {NULL, "packets", "packets", 5, FIELD_TEXT, PACKETS(packets), 0},
    {NULL, "n", "number", 6, FIELD_UINT64, PACKETS(latency.n), 0},
    {NULL, "mean_ns", "mean", 7, FIELD_NS, PACKETS(latency.mean_ns), 1},
    {NULL, "deviation_ns", "deviation", 8, FIELD_NS, PACKETS(latency.deviation_ns), 1},
    {NULL, "p99_ns", "p99", 9, FIELD_NS64, PACKETS(latency.p99_ns), 0},
    {NULL, "max_ns", "max", 10, FIELD_NS64, PACKETS(latency.max_ns), 0},
    {0},
};

bool predict_packet_row(const struct predict_run *run, int kind, struct packet_row *row) {
    *row = (struct packet_row){
        .run = names_of(run),
        .packets = sim_packet_name((enum sim_packet_kind)kind),
        .latency = sim_packets(run->sim, (enum sim_packet_kind)kind),
    };
    return row->latency.n > 0;
}

#define APPLICATION(member) offsetof(struct application_row, member)
const struct field predict_application_fields[] = {
    {NULL, "file", NULL, 0, FIELD_TEXT, APPLICATION(sum.name), 0},
    {NULL, "from_ns", NULL, 0, FIELD_UINT64, APPLICATION(sum.from_ns), 0},
    {NULL, "to_ns", NULL, 0, FIELD_UINT64, APPLICATION(sum.to_ns), 0},
    {NULL, "duration_ns", NULL, 0, FIELD_NS, APPLICATION(duration_ns), 0},
    {NULL, "alone_ns", NULL, COLUMN_ALONE, FIELD_NS, APPLICATION(alone_ns), 0},
    {NULL, "n_threads", NULL, 0, FIELD_UINT32, APPLICATION(sum.n_threads), 0},
    {NULL, "n_cut", NULL, 0, FIELD_UINT32, APPLICATION(sum.n_cut), 0},
    {0},
};

#define THREAD(member) offsetof(struct thread_row, member)
const struct field predict_thread_fields[] = {
    {NULL, "thread", NULL, 0, FIELD_UINT32, THREAD(number), 0},
    {NULL, "from_ns", NULL, 0, FIELD_UINT64, THREAD(thread.from_ns), 0},
    {NULL, "to_ns", NULL, 0, FIELD_UINT64, THREAD(thread.to_ns), 0},
    {NULL, "work_ns", NULL, 0, FIELD_UINT64, THREAD(thread.in_ns[SIM_WORK]), 0},
    {NULL, "call_ns", NULL, 0, FIELD_UINT64, THREAD(thread.in_ns[SIM_CALL]), 0},
    {NULL, "wait_ns", NULL, 0, FIELD_UINT64, THREAD(thread.in_ns[SIM_WAIT]), 0},
    {NULL, "ready_ns", NULL, 0, FIELD_UINT64, THREAD(thread.in_ns[SIM_READY]), 0},
    {NULL, "outside_ns", NULL, 0, FIELD_UINT64, THREAD(thread.in_ns[SIM_OUTSIDE]), 0},
    {NULL, "sync_ns", NULL, 0, FIELD_UINT64, THREAD(thread.sync_ns), 0},
    {NULL, "n_calls", NULL, 0, FIELD_UINT64, THREAD(thread.n_calls), 0},
    {NULL, "n_sections", NULL, 0, FIELD_UINT64, THREAD(thread.n_sections), 0},
    {NULL, "section_ns", NULL, 0, FIELD_UINT64, THREAD(thread.section_ns), 0},
    {0},
};

#define SECTIONS(member) offsetof(struct sim_sections, member)
const struct field predict_section_fields[] = {
    {NULL, "n", NULL, 0, FIELD_UINT64, SECTIONS(n), 0},
    {NULL, "sum_ns", NULL, 0, FIELD_UINT64, SECTIONS(sum_ns), 0},
    {NULL, "max_ns", NULL, 0, FIELD_UINT64, SECTIONS(max_ns), 0},
    {0},
};
#define OCTAVE(member) offsetof(struct octave_row, member)
const struct field predict_octave_fields[] = {
    {NULL, "below_ns", NULL, 0, FIELD_UINT64, OCTAVE(below_ns), 0},
    {NULL, "n", NULL, 0, FIELD_UINT64, OCTAVE(n), 0},
    {NULL, "sum_ns", NULL, 0, FIELD_UINT64, OCTAVE(sum_ns), 0},
    {0},
};

#define COMMON(member) offsetof(struct common_row, member)
const struct field predict_common_fields[] = {
    {NULL, "slot_ns", NULL, 0, FIELD_UINT64, COMMON(slot_ns), 0},
    {NULL, "order", NULL, 0, FIELD_TEXT, COMMON(order), 0},
    {0},
};

struct application_row predict_application_row(const struct predict *p, size_t run, uint32_t number) {
    const struct sim *sim = p->runs[run].sim;
    struct application_row row = {.sum = *sim_application(sim, number), .duration_ns = duration(sim, number)};
    if (p->unfairness)
        row.alone_ns = p->files[p->application[number]].alone_ns[run];
    return row;
}

struct common_row predict_common_row(const struct predict *p) {
    return (struct common_row){p->config.sched.slot_ns, p->config.recorded_order ? "recorded" : "free"};
}
