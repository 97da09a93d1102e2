/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What can be asked of a simulation that has been run. */
#include "broadcast.h"
#include "core.h"
#include "page.h"

const char *sim_state_name(enum sim_state state) {
    static const char names[SIM_N_STATES][8] = {"work", "call", "wait", "ready", "outside"};
    return (uint32_t)state < SIM_N_STATES ? names[state] : "?";
}

const char *sim_call_name(enum sim_call_kind kind) {
    static const char *const names[SIM_N_CALLS] = {"lock, empty",  "lock, queued",      "trylock, failed",  "unlock",
                                                   "barrier wait", "condition wait",    "wait, not needed", "signal",
                                                   "broadcast",    "signal, no waiter", "rwlock",           "semaphore",
                                                   "spin lock",    "futex wait",        "futex wake",       "thread"};
    return (uint32_t)kind < SIM_N_CALLS ? names[kind] : "?";
}

const char *sim_deviation_name(enum sim_deviation deviation) {
    static const char *const names[SIM_N_DEVIATIONS] = {
        "joins of unknown threads", "creations of unknown threads", "unlocks without the lock",
        "calls on unknown objects", "waits that nothing would end", "of threads that never began or had ended"};
    return (uint32_t)deviation < SIM_N_DEVIATIONS ? names[deviation] : "?";
}

static uint64_t n_recorded(const struct sim *sim) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        n += sbt_trace_info(sim->apps[i].trace)->n_events;
    return n;
}

static void add_hardware(const struct sim *sim, struct sim_summary *s) {
    s->n_packets = sim->mesh.n_packets;
    s->n_hops = sim->mesh.n_hops;
    s->contention_ns = sim->mesh.contention_cycles;
    for (uint32_t i = 0; i < sim->n_cores; i++) {
        for (uint32_t k = 0; k < HW_N_STATES; k++)
            s->n_fsm_steps += sim->tiles[i].ni.stats.n_steps[k];
        s->fsm_busy_ns += sim->tiles[i].ni.stats.busy_cycles;
    }
}

static void add_sched(struct csa_stats *sum, const struct csa_stats *core) {
    sum->n_outside += core->n_outside;
    sum->n_priority += core->n_priority;
    sum->n_rr += core->n_rr;
    sum->n_rr_capped += core->n_rr_capped;
    sum->n_limited += core->n_limited;
    sum->n_alone += core->n_alone;
    sum->n_capped += core->n_capped;
}

struct sim_summary sim_summary(const struct sim *sim) {
    struct sim_summary s = sim->summary;
    if (sim->trimmed)
        return s;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        if (sim->apps[i].result.to_ns > s.makespan_ns)
            s.makespan_ns = sim->apps[i].result.to_ns;
    s.n_deviations[SIM_NOT_REPLAYED] = n_recorded(sim) - s.n_events;
    for (uint32_t i = 0; i < sim->n_cores; i++)
        add_sched(&s.sched, &sim->cores[i].sched.stats);
    if (sim->tiles != NULL)
        add_hardware(sim, &s);
    if (sim->broadcast != NULL)
        sim_broadcast_add(sim, &s);
    return s;
}

uint32_t sim_n_applications(const struct sim *sim) {
    return sim->n_apps;
}

const struct sim_application *sim_application(const struct sim *sim, uint32_t application) {
    return application < sim->n_apps ? &sim->apps[application].result : NULL;
}

bool sim_thread(const struct sim *sim, uint32_t application, uint32_t thread, struct sim_thread_result *result) {
    if (application >= sim->n_apps || thread >= sim->apps[application].n_threads)
        return false;
    const struct sim_app *app = &sim->apps[application];
    if (app->ended[thread] == SIM_NOT_BORN)
        return false;
    *result =
        app->threads != NULL && app->threads[thread] != NULL ? app->threads[thread]->result : app->results[thread];
    if (result->in_ns[SIM_WORK] >
        INT64_MAX) { /* below 0: the run ended during a hand-over that sim_return_after had counted already */
        result->in_ns[SIM_CALL] += result->in_ns[SIM_WORK];
        result->in_ns[SIM_WORK] = 0;
    }
    return true;
}

uint64_t sim_section_ns(const struct sim *sim, uint32_t application, uint32_t mutex) {
    if (application >= sim->n_apps || mutex >= sim->apps[application].n_objects || sim->trimmed)
        return 0;
    const struct sim_page *page = sim->apps[application].pages[mutex / SIM_PAGE_OBJECTS];
    return page != NULL ? page->object[mutex % SIM_PAGE_OBJECTS].section_ns : 0;
}
struct sim_latency sim_call(const struct sim *sim, enum sim_call_kind kind) {
    const struct sim_histogram *h = &sim->latency[kind];
    if (h->n == 0)
        return (struct sim_latency){0};
    return (struct sim_latency){.n = h->n,
                                .mean_ns = (double)h->sum / (double)h->n,
                                .median_ns = sim_histogram_quantile(h, 0.5),
                                .p99_ns = sim_histogram_quantile(h, 0.99),
                                .max_ns = h->max};
}

const char *sim_packet_name(enum sim_packet_kind kind) {
    static const char names[SIM_N_PACKETS][8] = {"control", "data"};
    return (uint32_t)kind < SIM_N_PACKETS ? names[kind] : "?";
}

struct sim_packets sim_packets(const struct sim *sim, enum sim_packet_kind kind) {
    if (sim->packets == NULL || sim->packets[kind].histogram.n == 0)
        return (struct sim_packets){0};
    const struct sim_histogram *h = &sim->packets[kind].histogram;
    return (struct sim_packets){.n = h->n,
                                .mean_ns = (double)h->sum / (double)h->n,
                                .deviation_ns = sim_spread_deviation(&sim->packets[kind]),
                                .p99_ns = sim_histogram_quantile(h, 0.99),
                                .max_ns = h->max};
}
