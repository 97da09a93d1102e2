/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which threads wait, and what for. */
#include "signals.h"

static void print_object(const struct sim_object *o, FILE *out) {
    static const char *const names[SBT_TRACE_N_TYPES] = {"object", "mutex",     "condition", "barrier",
                                                         "rwlock", "semaphore", "spin lock", "futex"};
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
                t->app->ended[t->event.other] == SIM_NOT_BORN ? "no thread has created" : "has not ended");
        break;
    case SIM_WHY_SIGNAL:
        if (t->mutex != NULL && sim_signals_has(t->object, t->awaited)) /* in hardware it is in the mutex's queue now */
            print_object(t->mutex, out);
        else
            fprintf(out,
                    t->object->kind == SBT_TRACE_FUTEX ? "wake-up %ju of futex %u, which has not happened"
                                                       : "signal %ju of condition %u, which has not happened",
                    (uintmax_t)t->awaited, t->object->number);
        break;
    case SIM_WHY_ORDER:
        fprintf(out, "acquisition %ju of mutex %u, of which there were %ju", (uintmax_t)t->order, t->mutex->number,
                (uintmax_t)t->mutex->n_acquired);
        break;
    case SIM_WHY_ANSWER:
        fprintf(out, "the hardware's answer");
        break;
    case SIM_WHY_TIME:
        fprintf(out, "a time");
        break;
    case SIM_WHY_OBJECT:
        print_object(t->event.op == SBT_TRACE_COND_WAIT ? t->mutex : t->object, out);
        break;
    }
    const char *site = t->event.site != SBT_TRACE_NONE ? sbt_trace_site_name(trace, t->event.site) : "";
    fprintf(out, "%s%s\n", site[0] != '\0' ? ", at " : "", site);
}

/* Other threads run, or are ready: a run may be stopped at any time. */
static bool waits(const struct sim_thread *t) {
    return t->place == SIM_AWAKE || t->place == SIM_ASLEEP || t->spins;
}

void sim_stuck(const struct sim *sim, FILE *out, uint32_t n_max) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        for (uint32_t k = 0; sim->apps[i].threads != NULL && k < sim->apps[i].n_threads; k++) {
            const struct sim_thread *t = sim->apps[i].threads[k];
            if (t != NULL && waits(t) && n++ < n_max)
                print_wait(t, out);
        }
    if (n > n_max)
        fprintf(out, "and %u more\n", n - n_max);
}
