/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void evaluate_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "evaluate: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(3);
}

static int append(void *to, uint32_t thread, const struct sbt_trace_event *event) {
    return sbt_trace_append(to, thread, event);
}

/* The file is gone when this returns, the trace is not: it is mapped. */
static struct sbt_trace *open_workload(const struct setting *setting, const struct workload_request *request) {
    char path[4096];
    snprintf(path, sizeof path, "%s/workload.sbt", setting->folder);
    struct sbt_trace_writer *writer = sbt_trace_create(path, request->application);
    if (!writer)
        evaluate_fail("%s: %s", path, strerror(errno));
    struct workload_counts counts;
    const char *why;
    int error = workload_generate(request, append, writer, &counts, &why), unfinished = sbt_trace_finish(writer);
    if (error || unfinished)
        evaluate_fail("%s: %s", request->application, error == EINVAL ? why : strerror(error ? error : unfinished));
    struct sbt_trace_error damage;
    struct sbt_trace *trace = sbt_trace_open(path, &damage);
    if (!trace)
        evaluate_fail("%s: %s", path, damage.reason);
    unlink(path);
    return trace;
}

static uint32_t model_of(const char *application) {
    for (uint32_t i = 0; i < workload_n_models; i++)
        if (!strcmp(workload_models[i].name, application))
            return i;
    evaluate_fail("no such application: %s", application);
}

static void discard(struct sim *sim, struct sbt_trace **traces, uint32_t n) {
    sim_free(sim);
    for (uint32_t i = 0; i < n; i++)
        sbt_trace_close(traces[i]);
}

static struct sim_config config_of(const struct setting *setting, uint32_t n_threads, enum sim_sync sync,
                                   enum csa_policy policy) {
    struct sim_config config = sim_config_default();
    config.width = 8;
    config.height = n_threads / 8;
    config.sync = sync;
    config.sched.policy = policy;
    config.sched.limit_varies = setting->limit_varies;
    if (setting->uncapped)
        config.sched.frame_ns = 0;
    config.costs.switch_ns = setting->switch_ns[sync];
    config.costs.patience_ns = setting->patience_ns;
    config.strict_paper = true;
    return config;
}

bool evaluate_try(const struct setting *setting, const struct set *set, const struct phases *phases, uint32_t n_threads,
                  enum sim_sync sync, enum csa_policy policy, struct outcome *outcome) {
    struct sim_config config = config_of(setting, n_threads, sync, policy);
    struct sim_error error;
    struct sim *sim = sim_new(&config, &error);
    if (!sim)
        evaluate_fail("%s", error.text);

    struct sbt_trace *traces[MAX_SET];
    for (uint32_t i = 0; i < set->n; i++) {
        uint64_t phase_ns = phases->ns[model_of(set->applications[i])];
        struct workload_request request = {
            .application = set->applications[i],
            .n_threads = n_threads,
            .phase_ns = phase_ns,
            .worker_ns = setting->divided ? phase_ns * 32 / n_threads : phase_ns,
            .spread_permille = setting->spread_permille,
            .seed = setting->seed + i,
        };
        traces[i] = open_workload(setting, &request);
        if (sim_add(sim, traces[i], set->applications[i], &error) != SIM_OK)
            evaluate_fail("%s: %s", set->name, error.text);
    }
    enum sim_status status = sim_run(sim, &error);
    if (status != SIM_OK) {
        sim_stuck(sim, stderr, 10);
        fprintf(stderr, "evaluate: %s, %s, %s: %s\n", set->name, sim_sync_name(sync), csa_policy_name(policy),
                error.text);
        if (status != SIM_STUCK)
            exit(3);
        discard(sim, traces, set->n);
        return false;
    }
    memset(outcome, 0, sizeof *outcome);
    outcome->summary = sim_summary(sim);
    outcome->n = set->n;
    for (uint32_t i = 0; i < set->n; i++) {
        outcome->applications[i] = *sim_application(sim, i);
        outcome->applications[i].name = set->applications[i];
        if (!sim_thread(sim, i, 0, &outcome->master[i]) || !sim_thread(sim, i, WORKER, &outcome->worker[i]))
            evaluate_fail("%s: a thread did not run", set->applications[i]);
    }
    discard(sim, traces, set->n);
    return true;
}

void evaluate_run(const struct setting *setting, const struct set *set, const struct phases *phases, uint32_t n_threads,
                  enum sim_sync sync, enum csa_policy policy, struct outcome *outcome) {
    if (!evaluate_try(setting, set, phases, n_threads, sync, policy, outcome))
        exit(3);
}

double evaluate_speedup(const struct setting *setting, uint32_t model, const struct phases *phases, uint32_t n_threads,
                        struct outcome outcomes[SIM_N_PAPER_SYNCS]) {
    struct set alone = {.name = workload_models[model].name, .n = 1, .applications = {workload_models[model].name}};
    struct outcome own[SIM_N_PAPER_SYNCS];
    if (!outcomes)
        outcomes = own;
    for (uint32_t sync = 0; sync < SIM_N_PAPER_SYNCS; sync++)
        evaluate_run(setting, &alone, phases, n_threads, sync, CSA_RR, &outcomes[sync]);
    return (double)outcomes[SIM_SOFTWARE].summary.makespan_ns / (double)outcomes[SIM_SUBUTAI].summary.makespan_ns;
}

/*
 * The longer a phase, the less synchronization counts, and the speed-up falls towards 1; not smoothly, since other
 * locks meet. So what came nearest counts, not what was tried last.
 */
uint64_t evaluate_fit(const struct setting *setting, uint32_t model, uint32_t n_threads, double target,
                      double *reached) {
    double low = 1e3, high = 1e9;
    uint64_t nearest = 0;
    while (high / low > 1.0005) {
        struct phases phases = {{0}};
        phases.ns[model] = (uint64_t)(sqrt(low * high) + 0.5);
        double speedup = evaluate_speedup(setting, model, &phases, n_threads, NULL);
        if (!nearest || fabs(speedup - target) < fabs(*reached - target)) {
            nearest = phases.ns[model];
            *reached = speedup;
        }
        *(speedup > target ? &low : &high) = sqrt(low * high);
    }
    return nearest;
}
