/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A chip is made, runs its events in the order of their times, and is freed. */
#include "application.h"
#include "broadcast.h"
#include "core.h"
#include "host_sched.h"
#include "host_search.h"
#include "noc.h"
#include "replay.h"

const char *sim_sync_name(enum sim_sync sync) {
    static const char names[SIM_N_ALL_SYNCS][12] = {"software", "subutai", "optical", "atac",
                                                    "glibc",    "direct",  "switch",  "delegate"};
    return (uint32_t)sync < SIM_N_ALL_SYNCS ? names[sync] : "?";
}

const char *sim_sched_name(enum csa_policy policy) {
    return csa_policy_name(policy);
}

double sim_unfairness(const double *scheduled, const double *alone, size_t n) {
    return csa_unfairness(scheduled, alone, n);
}

struct sim_config sim_config_default(void) {
    return (struct sim_config){.width = 8,
                               .height = 8,
                               .sync = SIM_SUBUTAI,
                               .sched = csa_config_default(),
                               .migrate = true,
                               .costs = sim_costs_default(),
                               .timing = hw_timing_default(),
                               .optical = hw_optical_config_default(),
                               .interface_cycles = 300,
                               .n_control = HW_DEFAULT_CONTROL,
                               .n_queue = HW_DEFAULT_QUEUE,
                               .evict = true,
                               .seed = 1};
}
/* ---- a chip ---- */

/* The chip's own: the simulator reads the other fields. */
static const char *optical_refusal(const struct sim_config *c) {
    struct hw_optical_config optical = c->optical;
    if (optical.shape != HW_OPTICAL_FLAT || optical.lambda_limit != 0 || optical.buffer_limit != 0)
        return "not flat, or with limits";
    optical.n_cores = 1;
    return c->interface_cycles > HW_OPTICAL_MAX_CYCLES ? "interface_cycles" : hw_optical_refusal(&optical);
}

static bool is_legal(const struct sim_config *c, struct sim_error *error) {
    if (c->width < 1 || c->height < 1 || c->width > HW_MESH_MAX_SIDE || c->height > HW_MESH_MAX_SIDE)
        sim_refuse(error, SIM_USAGE, "a mesh of %ux%u (legal: 1x1 to %dx%d)", c->width, c->height, HW_MESH_MAX_SIDE,
                   HW_MESH_MAX_SIDE);
    else if ((uint32_t)c->sync >= SIM_N_ALL_SYNCS || (uint32_t)c->sched.policy >= CSA_N_POLICIES)
        sim_refuse(error, SIM_USAGE, "unknown synchronization or policy");
    else if (c->n_cores > c->width * c->height)
        sim_refuse(error, SIM_USAGE, "%u cores on a mesh of %ux%u", c->n_cores, c->width, c->height);
    else if (c->sched.slot_ns <= c->costs.switch_ns) /* no thread would ever work */
        sim_refuse(error, SIM_USAGE, "a time slot of %ju ns, of which a core needs %u to go on with another thread",
                   (uintmax_t)c->sched.slot_ns, c->costs.switch_ns);
    else if (c->load_permille > HW_MESH_MAX_LOAD_PERMILLE)
        sim_refuse(error, SIM_USAGE, "a data load of %u (legal: 0 to %d)", c->load_permille, HW_MESH_MAX_LOAD_PERMILLE);
    else if (c->sync >= SIM_N_SYNCS && (c->host.tick_ns == 0 || c->host.memory_share > 1000))
        sim_refuse(error, SIM_USAGE, "a host without a scheduler's tick, or with more memory work than work");
    else if (c->sync >= SIM_N_SYNCS && c->host.memory_share > 0 && c->host.memory_cores < 1000)
        sim_refuse(error, SIM_USAGE, "a host whose memory is too slow for one core");
    else if (c->sync >= SIM_N_SYNCS && c->host.n_servers != 0 &&
             c->host.n_servers >= (c->n_cores != 0 ? c->n_cores : c->width * c->height))
        sim_refuse(error, SIM_USAGE, "%u servers, and no other core", c->host.n_servers);
    else if (sim_sync_has_optics(c->sync) && optical_refusal(c) != NULL)
        sim_refuse(error, SIM_USAGE, "no such optical network: %s", optical_refusal(c));
    else if (c->qos != HW_QOS_CONTROL_FIRST && c->qos != HW_QOS_NONE)
        sim_refuse(error, SIM_USAGE, "unknown quality of service");
    else if (c->n_control < 1 || c->n_control > HW_MAX_CONTROL || c->n_queue < 1 ||
             hw_spm_n_bytes(c->n_control, c->n_queue) > HW_MAX_SPM_BYTES)
        sim_refuse(error, SIM_USAGE, "no scratchpad has %u control and %u queue elements", c->n_control, c->n_queue);
    else
        return true;
    return false;
}

static bool get_memory(struct sim *sim) {
    sim->cores = sim_line_zeroed(sim->n_cores * sizeof *sim->cores);
    sim->by_id = calloc(SIM_MAX_THREADS + 2, sizeof(struct sim_thread *));
    sim->free_ids = calloc(SIM_MAX_THREADS, sizeof *sim->free_ids);
    sim->latency = calloc(SIM_N_CALLS, sizeof *sim->latency);
    sim->apps = calloc(SIM_MAX_APPLICATIONS, sizeof *sim->apps);
    bool counts_packets = sim_sync_has_nis(sim->config.sync) && sim->config.load_permille != 0;
    if (counts_packets && (sim->packets = calloc(SIM_N_PACKETS, sizeof *sim->packets)) == NULL)
        return false;
    return sim->cores != NULL && sim->by_id != NULL && sim->free_ids != NULL && sim->latency != NULL &&
           sim->apps != NULL && sim_events_init(&sim->events) &&
           (sim->config.sync < SIM_N_SYNCS ? sim_noc_init(sim) : sim_host_init(sim)) &&
           (!sim_sync_has_optics(sim->config.sync) || sim_broadcast_init(sim));
}

static void init_cores(struct sim *sim) {
    struct csa_config sched = sim->config.sched;
    if (sched.policy == CSA_OAT) /* the order within an application */
        sched.policy = CSA_RR;
    for (uint32_t i = 0; i < sim->n_cores; i++) {
        csa_init(&sim->cores[i].sched, &sched);
        sim->cores[i].number = (uint16_t)i;
        if (sim->host == NULL ||
            i >= sim->host->model.n_servers) /* a server is no place for threads that look for one */
            sim->idle[i / 64] |= UINT64_C(1) << i % 64;
    }
}

struct sim *sim_new(const struct sim_config *config, struct sim_error *error) {
    if (!is_legal(config, error))
        return NULL;
    struct sim *sim = calloc(1, sizeof *sim);
    if (sim != NULL) {
        sim->config = *config;
        sim->n_cores = config->n_cores != 0 ? config->n_cores : config->width * config->height;
    }
    if (sim == NULL || !get_memory(sim)) {
        sim_free(sim);
        sim_refuse(error, SIM_NO_MEMORY, "out of memory");
        return NULL;
    }
    init_cores(sim);
    sim_replay_init(sim);
    for (uint32_t i = 0; i < SIM_MAX_THREADS; i++) /* the lowest numbers are given out first */
        sim->free_ids[sim->n_free_ids++] = (uint16_t)(SIM_MAX_THREADS - 1 - i);
    return sim;
}

void sim_trim(struct sim *sim) {
    for (uint32_t i = 0; i < sim->n_apps; i++)
        sim_application_trim(&sim->apps[i]);
    sim->summary = sim_summary(sim);
    sim_broadcast_free(sim);
    sim_noc_free(sim);
    sim_events_free(&sim->events);
    free(sim->cores);
    free(sim->by_id);
    free(sim->free_ids);
    sim->cores = NULL;
    sim->by_id = NULL;
    sim->free_ids = NULL;
    sim->trimmed = true;
}

void sim_free(struct sim *sim) {
    if (sim == NULL)
        return;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        sim_application_free(&sim->apps[i]);
    sim_broadcast_free(sim);
    sim_noc_free(sim);
    sim_events_free(&sim->events);
    free(sim->apps);
    free(sim->cores);
    sim_host_free(sim);
    free(sim->by_id);
    free(sim->free_ids);
    free(sim->latency);
    free(sim->packets);
    free(sim);
}

/* ---- the run ---- */

static inline __attribute__((always_inline)) void handle(struct sim *sim, enum sim_event_kind kind,
                                                         const struct sim_event *event, bool host) {
    switch (kind) {
    case SIM_EV_CORE:
        if (host)
            sim_host_event(sim, event);
        else
            sim_core_event(sim, event);
        break;
    case SIM_EV_REQUEST:
        sim_noc_request(sim, &event->packet);
        break;
    case SIM_EV_SEND:
        sim_noc_send(sim, &event->packet);
        break;
    case SIM_EV_ANSWER:
        sim_noc_answer(sim, &event->packet);
        break;
    case SIM_EV_TIMER:
        sim_core_timer_event(sim, event);
        break;
    case SIM_EV_BORN:
        sim_replay_born_event(sim, event);
        break;
    case SIM_EV_FIBER: /* of a program (program.h), which has events of its own */
    case SIM_EV_OWN:   /* a host's: run_events */
        break;
    case SIM_EV_MESSAGE:
        sim_broadcast_event(sim, event);
        break;
    case SIM_EV_SEARCH:
        sim_host_search_event(sim, event);
        break;
    case SIM_EV_CIRCLES:
        sim_replay_circles_event(sim);
        break;
    }
}

/* Until there is no event, or the run has failed. `host` is a constant, and so there is a loop for each machine. */
static inline __attribute__((always_inline)) void run_events(struct sim *sim, bool host) {
    const struct sim_event *event;
    enum sim_event_kind kind;
    while (sim->status == SIM_OK && (event = sim_events_take_for(&sim->events, &kind, host)) != NULL) {
        sim->summary.n_steps++;
        if (host && __builtin_expect(kind == SIM_EV_OWN, 1))
            sim_host_own_event(sim, event->index);
        else
            handle(sim, kind, event, host);
        if (host && __builtin_expect(sim->n_ready > 0 && sim->host->n_looks > 0, 0))
            sim_host_search_expect(sim);
    }
    if (sim->status == SIM_OK) /* time passes until the last event that was cancelled would have come */
        sim_events_rest(&sim->events, sim->events.cancelled_to);
}

enum sim_status sim_run(struct sim *sim, struct sim_error *error) {
    bool oat = sim->config.sched.policy == CSA_OAT;
    if (sim->n_apps == 0)
        return sim_refuse(error, SIM_USAGE, "no application");
    sim->oat = (struct csa_oat){.n_applications = sim->n_apps};
    sim->n_running = sim->n_apps;
    for (uint32_t i = 0; i < sim->n_apps && sim->status == SIM_OK; i++)
        if (!oat || csa_oat_may_run(&sim->oat, i))
            sim_replay_start(sim, &sim->apps[i]);
    do {
        if (sim->host == NULL) {
            run_events(sim, false);
        } else {
            run_events(sim, true);
            sim_host_search_rest(sim);
        }
    } while (sim->status == SIM_OK && sim->n_running > 0 && sim_replay_pass(sim));
    if (sim->events.no_memory)
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
    if (sim->events.past)
        sim_fail(sim, SIM_DAMAGED, "virtual time runs backwards after %ju ns", (uintmax_t)sim_now(sim));
    if (sim->status == SIM_OK && sim->n_running > 0)
        sim_replay_fail(sim);
    *error = sim->error;
    return sim->status;
}
