/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A replay that cannot go on. Perhaps some threads wait for another thread, and its events end too early: then their
 * application ends where it is. Otherwise the run is stuck.
 */
#include "replay.h"

#include "core.h"
#include "noc.h"

/*
 * Make the chip as it was before its only application. Its threads are still where they were. No packet is on its
 * way, because nothing can advance. The objects go with the application, so what they say of the chip does not matter.
 */
static void clear_chip(struct sim *sim, const struct sim_app *app) {
    for (uint32_t i = app->n_threads; i-- > 0;) {
        const struct sim_thread *t = app->threads[i];
        if (t == NULL)
            continue;
        sim->by_id[t->id] = NULL;
        sim->free_ids[sim->n_free_ids++] = (uint16_t)t->id;
    }
    sim_core_clear_all(sim);
    sim_noc_clear(sim);
}

/* The application's threads end where they wait, at the time when the last of them did something. */
static void stop(struct sim *sim, struct sim_app *app) {
    for (uint32_t i = 0; i < app->n_threads; i++)
        if (app->threads[i] != NULL && app->threads[i]->shown_from > app->last_ns)
            app->last_ns = app->threads[i]->shown_from;
    for (uint32_t i = 0; i < app->n_threads; i++) {
        struct sim_thread *t = app->threads[i];
        if (t == NULL)
            continue;
        sim_core_show_at(sim, t, t->shown == SIM_READY ? SIM_WAIT : SIM_READY, app->last_ns);
        t->result.to_ns = app->last_ns;
        sim_replay_keep_result(sim, t);
    }
    app->result.n_stopped = app->n_alive;
    app->n_alive = 0;
    if (sim->config.sched.policy == CSA_OAT)
        clear_chip(sim, app);
    sim_replay_application_ended(sim, app);
}

/*
 * Does the thread wait for something that only a thread with too few events could have done? No living thread can do it
 * then. If the thread waits for a join or for the owner of a lock, that other thread is alive and waits itself: then
 * the answer is what holds for the other thread.
 */
static bool waits_for_cut(const struct sim_thread *t) {
    const struct sim_object *o = t->event.op == SBT_TRACE_COND_WAIT ? t->mutex : t->object;
    switch ((enum sim_why)t->why) {
    case SIM_WHY_SIGNAL:
    case SIM_WHY_ORDER:
        return true;
    case SIM_WHY_THREAD:
        return t->app->ended[t->event.other] == SIM_NOT_BORN;
    default:
        return o == NULL || o->owner == NULL;
    }
}

/*
 * Not if the remaining threads wait for each other in a cycle: that deadlock does not come from the end of the trace.
 */
static bool is_cut_short(const struct sim_app *app) {
    if (app->n_alive == 0 || app->result.n_cut == 0)
        return false;
    for (uint32_t i = 0; i < app->n_threads; i++)
        if (app->threads[i] != NULL && waits_for_cut(app->threads[i]))
            return true;
    return false;
}

bool sim_replay_stop(struct sim *sim) {
    bool any = false;
    for (uint32_t i = 0; i < sim->n_apps; i++)
        if (is_cut_short(&sim->apps[i])) {
            stop(sim, &sim->apps[i]);
            any = true;
        }
    return any;
}
