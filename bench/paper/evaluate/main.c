/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * evaluate [--part all|alone|x264] [--OPTION VALUE]... : the paper's sections VII and VIII, but for areas, as one JSON
 * object on stdout. tools/report/paper.py sets it beside the paper. The options change what docs/paper.md calls chosen:
 *
 *   --spread PERMILLE  --seed S  --scaling fixed|divided  --limit gained|varies  --cap on|off
 *   --switch NS  --software-switch NS (of that machine only, after --switch)  --patience NS
 *
 * Fitted: the phase of each application, on its 32-core speed-up of Fig. 12. All else is predicted with that phase: 64
 * cores, sets of applications, schedulers. `alone` leaves out the sets; `x264` is that application only, for tests.
 */
#include "evaluate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "json_file.h"

/* Fig. 12 and section VIII-C, 32 and 64 cores, in the order of workload_models. Fitted is on the first. */
static const double figure_12_paper[][2] = {{1.78, 1.77}, {2.71, 2.20}, {1.11, 1.05}, {1.10, 1.27}};

static const struct set sets[] = {
    {"bodytrack",
     8,
     {"bodytrack", "bodytrack", "bodytrack", "bodytrack", "bodytrack", "bodytrack", "bodytrack", "bodytrack"}},
    {"streamcluster",
     8,
     {"streamcluster", "streamcluster", "streamcluster", "streamcluster", "streamcluster", "streamcluster",
      "streamcluster", "streamcluster"}},
    {"x264", 8, {"x264", "x264", "x264", "x264", "x264", "x264", "x264", "x264"}},
    {"mix",
     8,
     {"bodytrack", "bodytrack", "bodytrack", "x264", "x264", "streamcluster", "streamcluster", "streamcluster"}},
};
enum { N_SETS = sizeof sets / sizeof *sets };

static struct set first(const struct set *set, uint32_t n) {
    struct set part = *set;
    part.n = n;
    return part;
}

static struct json report;

void evaluate_value(double value, const char *format, ...) {
    char key[128];
    if (isnan(value))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(key, sizeof key, format, arguments);
    va_end(arguments);
    json_line(&report);
    json_significant(&report, key, value, 9);
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...) {
    static struct timespec began;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!began.tv_sec)
        began = now;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "evaluate: %3d s: ", (int)(now.tv_sec - began.tv_sec));
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

/* ---- Fig. 12 ---- */

static void bars(const char *application, uint32_t n_cores, uint32_t sync, const char *name,
                 const struct sim_thread_result *thread) {
    const char *by = sim_sync_name(sync);
    evaluate_value((double)thread->sync_ns / 1e9, "fig12.%s.%u.%s.%s.sync_s", application, n_cores, by, name);
    evaluate_value((double)thread->in_ns[SIM_WORK] / 1e9, "fig12.%s.%u.%s.%s.work_s", application, n_cores, by, name);
    evaluate_value((double)(thread->to_ns - thread->from_ns) / 1e9, "fig12.%s.%u.%s.%s.total_s", application, n_cores,
                   by, name);
}

static void figure_12(const struct setting *setting, uint32_t model, struct phases *phases) {
    const char *name = workload_models[model].name;
    double reached;
    phases->ns[model] = evaluate_fit(setting, model, 32, figure_12_paper[model][0], &reached);
    evaluate_value((double)phases->ns[model], "fit.%s.phase_ns", name);
    /* Used for nothing but to say how far the fitted one is from it: what the paper's 64 cores would have taken. */
    double of_64;
    uint64_t needed = evaluate_fit(setting, model, 64, figure_12_paper[model][1], &of_64);
    evaluate_value((double)needed / (double)phases->ns[model], "fit.%s.needed_64", name);
    for (uint32_t n_cores = 32; n_cores <= 64; n_cores *= 2) {
        struct outcome outcomes[SIM_N_PAPER_SYNCS];
        double speedup = evaluate_speedup(setting, model, phases, n_cores, outcomes);
        evaluate_value(speedup, "fig12.%s.%u", name, n_cores);
        say("%s, %u cores: %.3f", name, n_cores, speedup);
        for (uint32_t sync = 0; sync < SIM_N_PAPER_SYNCS; sync++) {
            bars(name, n_cores, sync, "T0", &outcomes[sync].master[0]);
            bars(name, n_cores, sync, "T7", &outcomes[sync].worker[0]);
            evaluate_value((double)outcomes[sync].summary.work_ns /
                               ((double)outcomes[sync].summary.makespan_ns * n_cores),
                           "fig12.%s.%u.%s.utilization", name, n_cores, sim_sync_name(sync));
        }
        evaluate_value((double)outcomes[SIM_SUBUTAI].applications[0].sections.sum_ns /
                           (double)outcomes[SIM_SUBUTAI].summary.makespan_ns,
                       "sections.%s.%u.share", name, n_cores);
    }
}

/* ---- Figs. 10 and 11, Table VII ---- */

/* For each application: those of the paper's eight are 1.05 times as many as those of its four, not twice as many. */
static void table_7(const struct outcome *o, uint32_t size) {
    const struct csa_stats *sched = &o->summary.sched;
    evaluate_value((double)sched->n_outside / o->n, "table7.x%u.not_cs", size);
    evaluate_value((double)sched->n_priority / o->n, "table7.x%u.csa", size);
    evaluate_value((double)sched->n_rr / o->n, "table7.x%u.rr", size);
    evaluate_value((double)sched->n_rr_capped / o->n, "table7.x%u.rr_capped", size);
    evaluate_value((double)sched->n_limited / o->n, "table7.x%u.limited", size);
    evaluate_value((double)sched->n_alone / o->n, "table7.x%u.alone", size);
    evaluate_value((double)sched->n_capped, "table7.x%u.frames_capped", size);
}

static void figures_10_and_11(const struct setting *setting, const struct phases *phases) {
    static const uint32_t sizes[] = {1, 4, 8};
    static const enum csa_policy policies[] = {CSA_RR, CSA_CSA};
    for (uint32_t p = 0; p < 2; p++)
        for (uint32_t k = 0; k < 3; k++) {
            struct set set = first(&sets[0], sizes[k]);
            struct outcome o;
            const char *policy = csa_policy_name(policies[p]);
            evaluate_run(setting, &set, phases, 64, SIM_SUBUTAI, policies[p], &o);
            say("bodytrack x%u, %s", sizes[k], policy);
            double sum = 0, in[SIM_N_OCTAVES] = {0}, count = 0;
            for (uint32_t i = 0; i < o.n; i++) {
                sum += (double)o.applications[i].sections.sum_ns;
                count += (double)o.applications[i].sections.n;
                for (uint32_t octave = 0; octave < SIM_N_OCTAVES; octave++)
                    in[octave] += (double)o.applications[i].sections.ns_in[octave];
            }
            for (uint32_t octave = 0; octave < SIM_N_OCTAVES; octave++)
                if (in[octave] > 0)
                    evaluate_value(100 * in[octave] / sum, "fig10.%s.x%u.2^%u", policy, sizes[k], octave);
            evaluate_value(sum / o.n / 1e9, "fig11.%s.x%u.sum_s", policy, sizes[k]);
            evaluate_value(count / o.n, "fig11.%s.x%u.sections", policy, sizes[k]);
            if (policies[p] != CSA_CSA)
                continue;
            table_7(&o, sizes[k]);
        }
}

/* ---- Fig. 13, Table X ---- */

/* Together with others, an application can be stuck on the paper's chip: then what needs that run has no value. */
static void figure_13(const struct setting *setting, const struct set *set, const struct phases *phases) {
    struct outcome outcomes[SIM_N_PAPER_SYNCS][CSA_N_POLICIES];
    double exec[SIM_N_PAPER_SYNCS][CSA_N_POLICIES];
    for (uint32_t sync = 0; sync < SIM_N_PAPER_SYNCS; sync++)
        for (uint32_t policy = 0; policy < CSA_N_POLICIES; policy++) {
            struct outcome *o = &outcomes[sync][policy];
            exec[sync][policy] = NAN;
            if (!evaluate_try(setting, set, phases, 64, sync, policy, o)) {
                evaluate_value(1, "fig13.%s.%s.%s.stuck", set->name, sim_sync_name(sync), csa_policy_name(policy));
                continue;
            }
            double seconds = exec[sync][policy] = (double)o->summary.makespan_ns / 1e9;
            say("%s x8, %s, %s: %.3f s", set->name, sim_sync_name(sync), csa_policy_name(policy), seconds);
            evaluate_value(seconds, "fig13.%s.%s.%s.exec_s", set->name, sim_sync_name(sync), csa_policy_name(policy));
            evaluate_value((double)o->summary.work_ns / ((double)o->summary.makespan_ns * 64),
                           "fig13.%s.%s.%s.utilization", set->name, sim_sync_name(sync), csa_policy_name(policy));
        }
    const double *software = exec[SIM_SOFTWARE], *subutai = exec[SIM_SUBUTAI];
    evaluate_value(software[CSA_OAT] / subutai[CSA_OAT], "fig13.%s.a", set->name);
    evaluate_value(subutai[CSA_OAT] / subutai[CSA_CSA], "fig13.%s.csa_over_oat", set->name);
    evaluate_value(subutai[CSA_RR] / subutai[CSA_CSA], "fig13.%s.csa_over_rr", set->name);
    /* Section VIII-D: Subutai, one at a time, over software with its best policy. */
    double best = software[CSA_RR] < software[CSA_CSA] ? software[CSA_RR] : software[CSA_CSA];
    evaluate_value(best / subutai[CSA_OAT], "fig13.%s.software_over_oat", set->name);

    if (!isnan(subutai[CSA_CSA])) {
        const struct csa_stats *sched = &outcomes[SIM_SUBUTAI][CSA_CSA].summary.sched;
        double inside = (double)(sched->n_priority + sched->n_rr + sched->n_rr_capped),
               all = inside + (double)sched->n_outside;
        evaluate_value(100 * inside / all, "requests.%s.cs_percent", set->name);
        evaluate_value((double)sched->n_rr, "requests.%s.rr", set->name);
        evaluate_value((double)sched->n_limited, "requests.%s.limited", set->name);
        evaluate_value((double)sched->n_alone, "requests.%s.alone", set->name);
        evaluate_value((double)sched->n_capped, "requests.%s.frames_capped", set->name);
    }

    /* Alone: each application's own time when it had the chip for itself. */
    for (uint32_t sync = 0; sync < SIM_N_PAPER_SYNCS; sync++)
        for (uint32_t policy = CSA_RR; policy <= CSA_CSA; policy++) {
            double scheduled[MAX_SET], alone[MAX_SET];
            if (isnan(exec[sync][policy]) || isnan(exec[sync][CSA_OAT]))
                continue;
            for (uint32_t i = 0; i < set->n; i++) {
                const struct sim_application *a = &outcomes[sync][policy].applications[i];
                const struct sim_application *b = &outcomes[sync][CSA_OAT].applications[i];
                scheduled[i] = (double)(a->to_ns - a->from_ns);
                alone[i] = (double)(b->to_ns - b->from_ns);
            }
            evaluate_value(csa_unfairness(scheduled, alone, set->n), "table10.%s.%s.%s", set->name, sim_sync_name(sync),
                           csa_policy_name(policy));
        }
}

static int refuse(const char *what, const char *why) {
    fprintf(stderr, "evaluate: %s: %s\n", what, why);
    return 2;
}

static char folder[4000]; /* of the traces, each of which is unlinked as soon as it is open */

static void clean_up(void) {
    rmdir(folder);
}

/* One of two words. */
static bool choose(const char *value, const char *yes, const char *no, bool *chosen) {
    *chosen = !strcmp(value, yes);
    return *chosen || !strcmp(value, no);
}

static bool set_option(struct setting *setting, const char **part, const char *name, const char *value) {
    char *end = NULL;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    bool is_number = !errno && end != value && !*end && *value >= '0' && *value <= '9';
    bool is_time = is_number && number <= 1000000000;
    if (!strcmp(name, "--part")) {
        *part = value;
        return !strcmp(value, "all") || !strcmp(value, "alone") || !strcmp(value, "x264");
    }
    if (!strcmp(name, "--scaling"))
        return choose(value, "divided", "fixed", &setting->divided);
    if (!strcmp(name, "--limit"))
        return choose(value, "varies", "gained", &setting->limit_varies);
    if (!strcmp(name, "--cap"))
        return choose(value, "off", "on", &setting->uncapped);
    if (!strcmp(name, "--seed"))
        setting->seed = number;
    else if (!strcmp(name, "--spread"))
        setting->spread_permille = (uint32_t)number;
    else if (!strcmp(name, "--switch"))
        setting->switch_ns[SIM_SOFTWARE] = setting->switch_ns[SIM_SUBUTAI] = (uint32_t)number;
    else if (!strcmp(name, "--software-switch"))
        setting->switch_ns[SIM_SOFTWARE] = (uint32_t)number;
    else if (!strcmp(name, "--patience"))
        setting->patience_ns = (uint32_t)number;
    else
        return false;
    return !strcmp(name, "--seed") ? is_number : !strcmp(name, "--spread") ? is_number && number < 1000 : is_time;
}

int main(int argc, char **argv) {
    struct sim_costs costs = sim_costs_default();
    struct setting setting = {.spread_permille = 250,
                              .seed = 3, /* the first with which no set is stuck on the paper's chip (docs/paper.md) */
                              .switch_ns = {costs.switch_ns, costs.switch_ns},
                              .patience_ns = costs.patience_ns};
    const char *part = "all";
    for (int i = 1; i < argc; i += 2)
        if (i + 1 == argc || !set_option(&setting, &part, argv[i], argv[i + 1]))
            return refuse(argv[i],
                          "unknown, or an illegal value (legal: --part all|alone|x264, --spread 0..999, --seed S, "
                          "--scaling fixed|divided, --limit gained|varies, --cap on|off, --switch NS, "
                          "--software-switch NS, --patience NS)");
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/evaluate-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return refuse(folder, strerror(errno));
    atexit(clean_up);
    setting.folder = folder;

    report = json_on(stdout);
    json_open(&report, NULL, '{');
    json_uint(&report, "spread_permille", setting.spread_permille);
    json_uint(&report, "seed", setting.seed);
    json_text(&report, "scaling", setting.divided ? "divided" : "fixed");
    json_text(&report, "part", part);
    json_open(&report, "values", '{');
    struct phases phases = {{0}};
    bool only_x264 = !strcmp(part, "x264");
    for (uint32_t model = 0; model < workload_n_models; model++)
        if (!only_x264 || !strcmp(workload_models[model].name, "x264"))
            figure_12(&setting, model, &phases);
    if (!strcmp(part, "all")) {
        figures_10_and_11(&setting, &phases);
        for (uint32_t i = 0; i < N_SETS; i++)
            figure_13(&setting, &sets[i], &phases);
    } else if (only_x264) {
        figure_13(&setting, &sets[2], &phases);
    }
    json_close(&report, '}');
    json_close(&report, '}');
    json_end(&report);
    return fflush(stdout) == 0 ? 0 : 3;
}
