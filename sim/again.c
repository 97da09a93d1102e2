/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "again.h"

#include "signals.h"

enum { AGAIN_CYCLES = 1000 }; /* between two attempts; ours: the paper leaves it to the program */

void sim_again_wait(struct sim *sim, struct sim_thread *t, enum sim_why why, sim_then *then) {
    bool may = why == SIM_WHY_SIGNAL ? sim_signals_has(t->object, t->awaited)
                                     : sim->tiles[t->refused_by].n_rooms != t->refused_room;
    if (may) {
        sim_core_run(sim, t, AGAIN_CYCLES, then);
        return;
    }
    t->parked_from = sim_now(sim);
    sim_list_append(&sim->parked, t);
    sim_core_wait(sim, t, why, then);
}

/*
 * Wake the threads that `tile` has refused, and the waiters of `condition` for signals that have happened: each at the
 * time of its next attempt.
 */
static void unpark(struct sim *sim, const struct sim_tile *tile, const struct sim_object *condition) {
    struct sim_list parked = sim->parked;
    sim->parked = (struct sim_list){0};
    for (struct sim_thread *t; (t = sim_list_shift(&parked)) != NULL;) {
        bool may = t->why == SIM_WHY_SIGNAL ? t->object == condition && sim_signals_has(condition, t->awaited)
                                            : &sim->tiles[t->refused_by] == tile;
        uint64_t n = (sim_now(sim) - t->parked_from) / AGAIN_CYCLES + 1;
        if (may)
            sim_core_wake_at(sim, t, t->parked_from + n * AGAIN_CYCLES);
        else
            sim_list_append(&sim->parked, t);
    }
}

void sim_again_room(struct sim *sim, const struct sim_tile *tile) {
    if (sim->parked.first != NULL)
        unpark(sim, tile, NULL);
}

void sim_again_signalled(struct sim *sim, const struct sim_object *condition) {
    if (sim->parked.first != NULL)
        unpark(sim, NULL, condition);
}
