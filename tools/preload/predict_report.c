/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `subutai predict` prints; see predict.h. */
#include <math.h>
#include <stdlib.h>

#include "json.h"
#include "predict.h"
#include "table.h"

static double makespan(const struct predict *p, size_t run) {
    return (double)sim_summary(p->runs[run].sim).makespan_ns;
}

/* Has an application been ended early? Then it has not done all its work, and took no time that says anything. */
static bool is_stopped(const struct predict *p, size_t run) {
    for (uint32_t i = 0; i < p->n_applications; i++)
        if (sim_application(p->runs[run].sim, i)->n_stopped > 0)
            return true;
    return false;
}

/* Over the first; a NaN if one of the two is no whole run. */
static double speedup(const struct predict *p, size_t run) {
    return is_stopped(p, 0) || is_stopped(p, run) ? NAN : makespan(p, 0) / makespan(p, run);
}

static double duration(const struct sim *sim, uint32_t application) {
    const struct sim_application *a = sim_application(sim, application);
    return (double)(a->to_ns - a->from_ns);
}

/* From the beginning of all: what a user of that application waits. */
static double mean_end(const struct sim *sim) {
    double sum = 0;
    for (uint32_t i = 0; i < sim_n_applications(sim); i++)
        sum += (double)sim_application(sim, i)->to_ns;
    return sum / sim_n_applications(sim);
}

/* Eq. 1; a NaN without --unfairness, or of no whole run. An application that had to wait for its turn has been slowed
 * down by that. */
static double unfairness(const struct predict *p, size_t run) {
    size_t n = p->n_applications;
    if (!p->unfairness || is_stopped(p, run))
        return NAN;
    double *scheduled = cmd_allocate(n, sizeof *scheduled), *alone = cmd_allocate(n, sizeof *alone);
    for (size_t i = 0; i < n; i++) {
        scheduled[i] = (double)sim_application(p->runs[run].sim, (uint32_t)i)->to_ns;
        alone[i] = p->files[p->application[i]].alone_ns[run];
    }
    double result = csa_unfairness(scheduled, alone, n);
    free(scheduled);
    free(alone);
    return result;
}

static double section_share(const struct sim *sim) {
    double held = 0, all = 0;
    struct sim_summary s = sim_summary(sim);
    for (uint32_t i = 0; i < sim_n_applications(sim); i++)
        held += (double)sim_application(sim, i)->sections.sum_ns;
    all = (double)(s.work_ns + s.call_ns + s.wait_ns + s.ready_ns);
    return all > 0 ? held / all : 0;
}

static uint64_t n_cores(const struct predict *p) {
    return p->config.n_cores != 0 ? p->config.n_cores : (uint64_t)p->config.width * p->config.height;
}

static double utilisation(const struct predict *p, size_t run) {
    struct sim_summary s = sim_summary(p->runs[run].sim);
    return s.makespan_ns > 0 ? (double)(s.work_ns + s.call_ns) / ((double)s.makespan_ns * (double)n_cores(p)) : 0;
}

/* ---- for people ---- */

static void print_calls(const struct predict *p, FILE *out) {
    static const char *const headings[] = {"sync", "sched", "call", "calls", "mean", "median", "p99", "max"};
    struct table t = {.n_columns = 8, .alignment = "lllrrrrr"};
    for (size_t i = 0; i < t.n_columns; i++)
        table_add(&t, "%s", headings[i]);
    for (size_t r = 0; r < p->n_runs; r++)
        for (int kind = 0; kind < SIM_N_CALLS; kind++) {
            struct sim_latency l = sim_call(p->runs[r].sim, (enum sim_call_kind)kind);
            char text[32];
            if (l.n == 0)
                continue;
            table_add(&t, "%s", sim_sync_name(p->runs[r].sync));
            table_add(&t, "%s", csa_policy_name(p->runs[r].sched));
            table_add(&t, "%s", sim_call_name((enum sim_call_kind)kind));
            table_add(&t, "%ju", (uintmax_t)l.n);
            table_add(&t, "%s", format_ns(text, l.mean_ns));
            table_add(&t, "%s", format_ns(text, (double)l.median_ns));
            table_add(&t, "%s", format_ns(text, (double)l.p99_ns));
            table_add(&t, "%s", format_ns(text, (double)l.max_ns));
        }
    fputc('\n', out);
    table_print(&t, out);
}

void predict_print(const struct predict *p, FILE *out) {
    static const char *const headings[] = {"sync",       "sched",       "time",  "speed-up",  "mean end",
                                           "cores busy", "in sections", "calls", "unfairness"};
    struct table t = {.n_columns = p->unfairness ? 9 : 8, .alignment = "llrrrrrrr"};
    fprintf(out, "%zu application%s on %ju cores, %ux%u\n", p->n_applications, p->n_applications == 1 ? "" : "s",
            (uintmax_t)n_cores(p), p->config.width, p->config.height);
    for (size_t i = 0; i < t.n_columns; i++)
        table_add(&t, "%s", headings[i]);
    for (size_t i = 0; i < p->n_runs; i++) {
        const struct predict_run *run = &p->runs[i];
        char text[32];
        table_add(&t, "%s", sim_sync_name(run->sync));
        table_add(&t, "%s", csa_policy_name(run->sched));
        table_add(&t, "%s", format_ns(text, makespan(p, i)));
        table_add(&t, "%s", format_ratio(text, speedup(p, i)));
        table_add(&t, "%s", format_ns(text, mean_end(run->sim)));
        table_add(&t, "%.1f %%", utilisation(p, i) * 100);
        table_add(&t, "%.2f %%", section_share(run->sim) * 100);
        table_add(&t, "%ju", (uintmax_t)sim_summary(run->sim).n_calls);
        if (p->unfairness && is_stopped(p, i))
            table_add(&t, "-");
        else if (p->unfairness)
            table_add(&t, "%.3f", unfairness(p, i));
    }
    table_print(&t, out);
    if (p->calls)
        print_calls(p, out);
}

/* ---- JSON ---- */

static void put_uint(struct json *j, const char *key, uint64_t u) {
    json_int(j, key, (int64_t)u);
}

static void put_thread(struct json *j, uint32_t number, const struct sim_thread_result *t) {
    json_open(j, NULL, '{');
    put_uint(j, "thread", number);
    put_uint(j, "from_ns", t->from_ns);
    put_uint(j, "to_ns", t->to_ns);
    put_uint(j, "work_ns", t->in_ns[SIM_WORK]);
    put_uint(j, "call_ns", t->in_ns[SIM_CALL]);
    put_uint(j, "wait_ns", t->in_ns[SIM_WAIT]);
    put_uint(j, "ready_ns", t->in_ns[SIM_READY]);
    put_uint(j, "sync_ns", t->sync_ns);
    put_uint(j, "n_calls", t->n_calls);
    put_uint(j, "n_sections", t->n_sections);
    put_uint(j, "section_ns", t->section_ns);
    json_close(j, '}');
}

/* Log2 intervals: their upper end, how many sections were so long, and their sum. */
static void put_sections(struct json *j, const struct sim_sections *s) {
    json_open(j, "sections", '{');
    put_uint(j, "n", s->n);
    put_uint(j, "sum_ns", s->sum_ns);
    put_uint(j, "max_ns", s->max_ns);
    json_open(j, "octaves", '[');
    for (int k = 0; k < 63; k++) {
        if (s->n_in[k] == 0)
            continue;
        json_open(j, NULL, '{');
        put_uint(j, "below_ns", UINT64_C(1) << k);
        put_uint(j, "n", s->n_in[k]);
        put_uint(j, "sum_ns", s->ns_in[k]);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void put_application(struct json *j, const struct predict *p, size_t run, uint32_t number) {
    const struct sim *sim = p->runs[run].sim;
    const struct sim_application *a = sim_application(sim, number);
    struct sim_thread_result t;
    json_line(j);
    json_open(j, NULL, '{');
    json_text(j, "file", a->name);
    put_uint(j, "from_ns", a->from_ns);
    put_uint(j, "to_ns", a->to_ns);
    json_real(j, "duration_ns", duration(sim, number), 0);
    if (p->unfairness)
        json_real(j, "alone_ns", p->files[p->application[number]].alone_ns[run], 0);
    put_uint(j, "n_threads", a->n_threads);
    put_uint(j, "n_cut", a->n_cut);
    put_uint(j, "n_stopped", a->n_stopped);
    put_sections(j, &a->sections);
    json_open(j, "threads", '[');
    uint32_t n = sbt_trace_info(p->files[p->application[number]].trace)->n_threads;
    for (uint32_t i = 0; i < n; i++)
        if (sim_thread(sim, number, i, &t))
            put_thread(j, i, &t);
    json_close(j, ']');
    json_close(j, '}');
}

static void put_calls(struct json *j, const struct sim *sim) {
    json_open(j, "calls", '[');
    for (int kind = 0; kind < SIM_N_CALLS; kind++) {
        struct sim_latency l = sim_call(sim, (enum sim_call_kind)kind);
        if (l.n == 0)
            continue;
        json_open(j, NULL, '{');
        json_text(j, "call", sim_call_name((enum sim_call_kind)kind));
        put_uint(j, "n", l.n);
        json_real(j, "mean_ns", l.mean_ns, 1);
        put_uint(j, "median_ns", l.median_ns);
        put_uint(j, "p99_ns", l.p99_ns);
        put_uint(j, "max_ns", l.max_ns);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_summary(struct json *j, const struct sim_summary *s, enum sim_sync sync) {
    put_uint(j, "n_events", s->n_events);
    put_uint(j, "n_calls", s->n_calls);
    put_uint(j, "n_steps", s->n_steps);
    put_uint(j, "work_ns", s->work_ns);
    put_uint(j, "call_ns", s->call_ns);
    put_uint(j, "wait_ns", s->wait_ns);
    put_uint(j, "ready_ns", s->ready_ns);
    put_uint(j, "n_switches", s->n_switches);
    put_uint(j, "n_migrations", s->n_migrations);
    json_open(j, "schedule_requests", '{');
    put_uint(j, "outside", s->sched.n_outside);
    put_uint(j, "csa", s->sched.n_priority);
    put_uint(j, "rr", s->sched.n_rr);
    put_uint(j, "rr_capped", s->sched.n_rr_capped);
    put_uint(j, "limits_used_up", s->sched.n_limited);
    put_uint(j, "sections_begun_alone", s->sched.n_alone);
    put_uint(j, "frames_capped", s->sched.n_capped);
    json_close(j, '}');
    json_open(j, "software", '{');
    put_uint(j, "futex_waits", s->n_futex_waits);
    put_uint(j, "futex_wakes", s->n_futex_wakes);
    put_uint(j, "lost_races", s->n_lost_races);
    json_close(j, '}');
    if (sync != SIM_SUBUTAI)
        return;
    json_open(j, "hardware", '{');
    put_uint(j, "packets", s->n_packets);
    put_uint(j, "hops", s->n_hops);
    put_uint(j, "contention_ns", s->contention_ns);
    put_uint(j, "fsm_steps", s->n_fsm_steps);
    put_uint(j, "fsm_busy_ns", s->fsm_busy_ns);
    put_uint(j, "held", s->n_held);
    put_uint(j, "evictions", s->n_evictions);
    put_uint(j, "software_objects", s->n_software_objects);
    put_uint(j, "passed_on", s->n_passed_on);
    json_close(j, '}');
}

static void put_run(struct json *j, const struct predict *p, size_t i) {
    const struct predict_run *run = &p->runs[i];
    struct sim_summary s = sim_summary(run->sim);
    json_line(j);
    json_open(j, NULL, '{');
    json_text(j, "sync", sim_sync_name(run->sync));
    json_text(j, "sched", csa_policy_name(run->sched));
    put_uint(j, "makespan_ns", s.makespan_ns);
    json_real(j, "speedup", speedup(p, i), 4);
    json_real(j, "mean_end_ns", mean_end(run->sim), 0);
    json_real(j, "utilisation", utilisation(p, i), 4);
    json_real(j, "section_share", section_share(run->sim), 6);
    json_real(j, "unfairness", unfairness(p, i), 4);
    put_summary(j, &s, run->sync);
    put_calls(j, run->sim);
    json_open(j, "applications", '[');
    for (uint32_t k = 0; k < p->n_applications; k++)
        put_application(j, p, i, k);
    json_close(j, ']');
    json_close(j, '}');
}

void predict_print_json(const struct predict *p, FILE *out) {
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    put_uint(&j, "cores", n_cores(p));
    put_uint(&j, "width", p->config.width);
    put_uint(&j, "height", p->config.height);
    put_uint(&j, "slot_ns", p->config.sched.slot_ns);
    json_text(&j, "order", p->config.recorded_order ? "recorded" : "free");
    json_open(&j, "runs", '[');
    for (size_t i = 0; i < p->n_runs; i++)
        put_run(&j, p, i);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
