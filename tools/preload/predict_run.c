/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The simulations of `subutai predict`, one after another, with progress on stderr and time lines in a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "predict_rows.h"
#include "progress.h"
#include "recorded.h"

enum { SHOW_STUCK = 64, BAR = 24 };

/* The state of the callbacks. */
struct watch {
    const struct predict *p;
    const struct predict_run *run;
    struct output *output; /* and its file; NULL: no time lines */
    FILE *csv;
    uint64_t n_all, n_before; /* events of all simulations, and of the finished ones */
    double from_s, shown_s;
    bool terminal;
};

const char *predict_run_name(const struct predict *p, const struct predict_run *run) {
    static char name[128];
    const char *sync = sim_sync_name(run->sync), *sched = predict_sched_name(run);
    char machine[64] = "", cores[32] = "";
    if (p->n_machines > 1)
        snprintf(machine, sizeof machine, "%s, ", run->machine->name);
    if (p->n_chips > 1)
        snprintf(cores, sizeof cores, ", %u cores", run->chip.n_cores);
    snprintf(name, sizeof name, "%s%s, %s%s", machine, sync, sched, cores);
    return name;
}

/* ---- progress ---- */

static void on_progress(void *context, uint64_t n_events) {
    struct watch *w = context;
    double now = progress_now_s(), period = w->terminal ? 0.1 : 1;
    if (now - w->shown_s < period)
        return;
    w->shown_s = now;
    uint64_t n = w->n_before + n_events;
    double share = w->n_all > 0 ? (double)n / (double)w->n_all : 0, rate = (double)n / (now - w->from_s);
    share = share < 1 ? share : 1;
    char bar[BAR + 1];
    progress_bar(bar, BAR, share);
    fprintf(stderr, "%s[%s] %3.0f %%  %s  %.1f M events/s  %.0f s left%s", w->terminal ? "\r" : "", bar, share * 100,
            predict_run_name(w->p, w->run), rate * 1e-6, rate > 0 && w->n_all > n ? (double)(w->n_all - n) / rate : 0,
            w->terminal ? "\033[K" : "\n");
    fflush(stderr);
}

static void clear_line(const struct watch *w) {
    if (w->terminal && w->shown_s != w->from_s)
        fprintf(stderr, "\r\033[K");
}

/* ---- time lines ---- */

static void on_interval(void *context, const struct sim_interval *i) {
    struct watch *w = context;
    fprintf(w->csv, "%s,%s,%u,%u,%u,%u,%s,%ju,%ju,%s\n", sim_sync_name(w->run->sync), predict_sched_name(w->run),
            w->run->chip.n_cores, i->application, i->thread, i->core, sim_state_name(i->state), (uintmax_t)i->from_ns,
            (uintmax_t)i->to_ns, w->run->machine->name);
}

static void open_csv(struct watch *w) {
    const char *name = w->p->timeline;
    struct stat own, st;
    if (name == NULL)
        return;
    for (size_t i = 0; i < w->p->n_files && stat(name, &own) == 0; i++)
        if (stat(w->p->files[i].path, &st) == 0 && st.st_dev == own.st_dev && st.st_ino == own.st_ino)
            cmd_refuse("predict: --timeline: '%s' is one of the traces (legal: another file)", name);
    w->output = output_open("predict: --timeline", name, NULL);
    w->csv = output_file(w->output);
    fprintf(w->csv, "sync,sched,cores,application,thread,core,state,from_ns,to_ns,machine\n");
}

/* ---- one simulation ---- */

static int exit_status(enum sim_status status) {
    return status == SIM_USAGE ? CMD_REFUSED : PREDICT_FAILED;
}

/* So many thousandths of cores worked at once, on average over the work, when the applications were recorded. */
static uint32_t recorded_cores(const struct predict *p) {
    struct sim_recorded recorded = {0};
    if (p->memory_percent == 0) /* nothing asks */
        return 1000;
    for (size_t i = 0; i < p->n_applications; i++)
        if (!sim_recorded_add(&recorded, p->files[p->application[i]].trace))
            return 1000; /* the run will fail */
    return sim_recorded_cores(&recorded, SIM_MAX_CORES);
}

static void choose_host(const struct predict *p, const struct predict_run *run, struct sim_host_model *host) {
    enum sim_host_engine engine = (enum sim_host_engine)(run->sync - SIM_GLIBC);
    *host = sim_host_model_of(&run->machine->costs, engine, run->chip.n_cores);
    if (run->sync == SIM_DELEGATE && p->n_servers != 0)
        host->n_servers = p->n_servers;
    host->effects &= ~p->without;
    host->memory_share = 10 * p->memory_percent;
    host->recorded_cores = p->recorded_cores;
}

static struct sim *begin(struct watch *w, const struct predict_run *run, bool watched) {
    struct sim_error error;
    struct sim_config config = w->p->config;
    config.n_cores = run->chip.n_cores;
    config.width = run->chip.width;
    config.height = run->chip.height;
    config.sync = run->sync;
    if (run->machine->on_host)
        choose_host(w->p, run, &config.host);
    config.sched.policy = run->sched;
    config.context = w;
    config.on_interval = w->csv != NULL && watched ? on_interval : NULL;
    config.on_progress = w->terminal || w->p->progress ? on_progress : NULL;
    w->run = run;
    struct sim *sim = sim_new(&config, &error);
    if (sim == NULL) {
        cmd_warn("predict: %s", error.text);
        exit(CMD_REFUSED);
    }
    return sim;
}

static void add(struct watch *w, struct sim *sim, size_t file) {
    struct sim_error error;
    const struct predict_file *f = &w->p->files[file];
    enum sim_status status = sim_add_surveyed(sim, f->trace, f->survey, f->path, &error);
    if (status != SIM_OK) {
        cmd_warn("predict: %s", error.text);
        exit(exit_status(status));
    }
}

static void finish(struct watch *w, struct sim *sim) {
    struct sim_error error;
    enum sim_status status = sim_run(sim, &error);
    w->n_before += sim_summary(sim).n_events;
    if (status == SIM_OK)
        return;
    clear_line(w);
    cmd_warn("predict: %s: %s", predict_run_name(w->p, w->run), error.text);
    if (status == SIM_STUCK)
        sim_stuck(sim, stderr, SHOW_STUCK);
    exit(exit_status(status));
}

static void simulate_alone(struct watch *w, struct predict *p, size_t run) {
    for (size_t i = 0; i < p->n_files; i++) {
        struct sim *sim = begin(w, &p->runs[run], false);
        add(w, sim, i);
        finish(w, sim);
        p->files[i].alone_ns[run] = (double)sim_summary(sim).makespan_ns;
        sim_free(sim);
    }
}

static void check_memory(struct watch *w, const struct sim *sim) {
    uint64_t needed = sim_memory_bytes(sim), there = predict_memory_bytes();
    if (needed <= there)
        return;
    cmd_warn("predict: %zu applications with all their threads and objects need %ju MiB, and there are %ju",
             w->p->n_applications, (uintmax_t)(needed >> 20), (uintmax_t)(there >> 20));
    exit(CMD_REFUSED);
}

static void count_events(struct watch *w) {
    const struct predict *p = w->p;
    uint64_t n = 0;
    for (size_t i = 0; i < p->n_applications; i++)
        n += sbt_trace_info(p->files[p->application[i]].trace)->n_events;
    for (size_t i = 0; p->unfairness && i < p->n_files; i++)
        n += sbt_trace_info(p->files[i].trace)->n_events;
    w->n_all = n * p->n_runs;
}

static void survey(struct predict *p) {
    for (size_t i = 0; i < p->n_files; i++) {
        struct predict_file *file = &p->files[i];
        struct sim_error error;
        enum sim_status status;
        file->survey = sim_survey_new(file->trace, file->path, p->config.recorded_order, p->config.without_outside,
                                      &status, &error);
        if (file->survey != NULL)
            continue;
        cmd_warn("predict: %s", error.text);
        exit(exit_status(status));
    }
}

/*
 * One line for the run with the most of what is not replayed as it was recorded, if there is any: how much of the trace
 * that is, and what.
 */
static void warn_deviations(const struct predict *p) {
    size_t most = 0;
    bool differ = false;
    for (size_t i = 1; i < p->n_runs; i++) {
        uint64_t n = predict_run_row(p, i).n_deviations, n_most = predict_run_row(p, most).n_deviations;
        differ = differ || n != n_most;
        most = n > n_most ? i : most;
    }
    struct run_row row = predict_run_row(p, most);
    if (row.n_deviations == 0)
        return;
    char text[400] = "";
    for (int i = 0; i < SIM_N_DEVIATIONS; i++)
        if (row.sum.n_deviations[i] > 0) {
            size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, "%s%ju %s", n > 0 ? ", " : "", (uintmax_t)row.sum.n_deviations[i],
                     sim_deviation_name((enum sim_deviation)i));
        }
    cmd_warn("predict: %s%s%ju events (%s%.1f %%) are not replayed as recorded: %s",
             differ ? predict_run_name(p, &p->runs[most]) : "", differ ? ": " : "", (uintmax_t)row.n_deviations,
             row.deviation_share < 0.001 ? "less than " : "",
             row.deviation_share < 0.001 ? 0.1 : row.deviation_share * 100, text);
}

/* One line, if any run has replayed trylocks and looks as the waits that they are. JSON has the numbers anyway. */
static void tell_polls(const struct predict *p) {
    uint64_t n_polls = 0, n_looks = 0;
    if (p->json)
        return;
    for (size_t i = 0; i < p->n_runs; i++) {
        struct sim_summary s = sim_summary(p->runs[i].sim);
        n_polls = s.n_polls > n_polls ? s.n_polls : n_polls;
        n_looks = s.n_looks > n_looks ? s.n_looks : n_looks;
    }
    if (n_polls + n_looks > 0)
        cmd_warn("predict: waits by calling trylock, or looking before it: %ju trylocks that failed and %ju looks last "
                 "as long as the wait does here",
                 (uintmax_t)n_polls, (uintmax_t)n_looks);
}

void predict_simulate(struct predict *p) {
    struct watch w = {.p = p, .from_s = progress_now_s(), .terminal = isatty(STDERR_FILENO) && !p->progress};
    w.shown_s = w.from_s;
    survey(p);
    p->recorded_cores = recorded_cores(p);
    count_events(&w);
    for (size_t i = 0; p->unfairness && i < p->n_files; i++)
        p->files[i].alone_ns = cmd_allocate(p->n_runs, sizeof(double));
    open_csv(&w);
    for (size_t i = 0; i < p->n_runs; i++) {
        struct predict_run *run = &p->runs[i];
        run->sim = begin(&w, run, true);
        for (size_t k = 0; k < p->n_applications; k++)
            add(&w, run->sim, p->application[k]);
        check_memory(&w, run->sim);
        finish(&w, run->sim);
        sim_trim(run->sim); /* so that the memory kept for the report does not grow with the simulations */
        if (p->unfairness)
            simulate_alone(&w, p, i);
    }
    clear_line(&w);
    if (w.output != NULL)
        output_close(w.output);
    warn_deviations(p);
    tell_polls(p);
}
