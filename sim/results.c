/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What can be asked of a simulation that has been run, and who is stuck. */
#include "model.h"

const char *sim_state_name(enum sim_state state) {
    static const char names[SIM_N_STATES][8] = {"work", "call", "wait", "ready"};
    return (uint32_t)state < SIM_N_STATES ? names[state] : "?";
}

const char *sim_call_name(enum sim_call_kind kind) {
    static const char *const names[SIM_N_CALLS] = {"lock, empty",  "lock, queued",   "trylock, failed",  "unlock",
                                                   "barrier wait", "condition wait", "wait, not needed", "signal",
                                                   "broadcast",    "signal, nobody", "rwlock",           "semaphore",
                                                   "spin lock",    "thread"};
    return (uint32_t)kind < SIM_N_CALLS ? names[kind] : "?";
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

struct sim_summary sim_summary(const struct sim *sim) {
    struct sim_summary s = sim->summary;
    if (sim->trimmed)
        return s;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        if (sim->apps[i].result.to_ns > s.makespan_ns)
            s.makespan_ns = sim->apps[i].result.to_ns;
    for (uint32_t i = 0; i < sim->n_cores; i++) {
        const struct csa_stats *core = &sim->cores[i].sched.stats;
        s.sched.n_outside += core->n_outside;
        s.sched.n_priority += core->n_priority;
        s.sched.n_rr += core->n_rr;
        s.sched.n_rr_capped += core->n_rr_capped;
        s.sched.n_limited += core->n_limited;
        s.sched.n_alone += core->n_alone;
        s.sched.n_capped += core->n_capped;
    }
    if (sim->tiles != NULL)
        add_hardware(sim, &s);
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
    if (result->in_ns[SIM_WORK] > INT64_MAX) { /* the run ended in a hand-over that had been counted in advance */
        result->in_ns[SIM_CALL] += result->in_ns[SIM_WORK];
        result->in_ns[SIM_WORK] = 0;
    }
    return true;
}

uint64_t sim_section_ns(const struct sim *sim, uint32_t application, uint32_t mutex) {
    if (application >= sim->n_apps || mutex >= sim->apps[application].n_objects || sim->trimmed)
        return 0;
    const struct sim_page *page = sim->apps[application].pages[mutex / SIM_PAGE];
    return page != NULL ? page->object[mutex % SIM_PAGE].section_ns : 0;
}

/* The middle of a histogram's step: below 32 ns it is exact. */
static uint64_t step_value(uint32_t step) {
    uint32_t octave = step / 32, at = step % 32;
    return octave == 0 ? at : (UINT64_C(32) + at) << (octave - 1);
}

static uint64_t quantile(const struct sim_histogram *h, double share) {
    uint64_t wanted = (uint64_t)((double)h->n * share), seen = 0;
    for (uint32_t i = 0; i < sizeof h->bucket / sizeof *h->bucket; i++)
        if ((seen += h->bucket[i]) > wanted)
            return step_value(i);
    return h->max;
}

struct sim_latency sim_call(const struct sim *sim, enum sim_call_kind kind) {
    const struct sim_histogram *h = &sim->latency[kind];
    if (h->n == 0)
        return (struct sim_latency){0};
    return (struct sim_latency){.n = h->n,
                                .mean_ns = (double)h->sum / (double)h->n,
                                .median_ns = quantile(h, 0.5),
                                .p99_ns = quantile(h, 0.99),
                                .max_ns = h->max};
}

/* ---- who waits for what ---- */

static void print_owner(const struct sim_object *o, FILE *out) {
    static const char *const names[SBT_TRACE_N_TYPES] = {"object", "mutex",     "condition", "barrier",
                                                         "rwlock", "semaphore", "spin lock"};
    fprintf(out, "%s %u", o->kind < SBT_TRACE_N_TYPES ? names[o->kind] : "object", o->number);
    if (o->kind == SBT_TRACE_BARRIER)
        fprintf(out, " of %u threads", o->size);
    else if (o->owner != NULL)
        fprintf(out, " held by thread %u%s", o->owner->number, o->owner->place == SIM_ENDED ? ", which has ended" : "");
}

static void print_wait(const struct sim_thread *t, FILE *out) {
    const struct sbt_trace *trace = t->app->trace;
    fprintf(out, "%s (application %u): thread %u waits for ", t->app->result.name, t->app->number, t->number);
    switch ((enum sim_why)t->why) {
    case SIM_WHY_THREAD:
        fprintf(out, "thread %u, which %s", t->event.other,
                t->app->ended[t->event.other] == SIM_NOT_BORN ? "nobody has created" : "has not ended");
        break;
    case SIM_WHY_SIGNAL:
        fprintf(out, "signal %ju of condition %u, which has not happened", (uintmax_t)t->awaited, t->object->number);
        break;
    case SIM_WHY_TURN:
        fprintf(out, "acquisition %ju of mutex %u, of which there were %ju", (uintmax_t)t->order, t->mutex->number,
                (uintmax_t)t->mutex->n_acquired);
        break;
    default:
        print_owner(t->event.op == SBT_TRACE_COND_WAIT ? t->mutex : t->object, out);
    }
    const char *site = t->event.site != SBT_TRACE_NONE ? sbt_trace_site_name(trace, t->event.site) : "";
    fprintf(out, "%s%s\n", site[0] != '\0' ? ", at " : "", site);
}

void sim_stuck(const struct sim *sim, FILE *out, uint32_t n_max) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        for (uint32_t k = 0; sim->apps[i].result.n_stopped == 0 && k < sim->apps[i].n_threads; k++) {
            const struct sim_thread *t = sim->apps[i].threads[k];
            if (t != NULL && n++ < n_max)
                print_wait(t, out);
        }
    if (n > n_max)
        fprintf(out, "and %u more\n", n - n_max);
}
