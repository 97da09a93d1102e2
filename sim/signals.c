/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "signals.h"

void sim_signals_add(struct sim *sim, struct sim_object *c, uint64_t number) {
    switch (sim_signal_set_add(&c->signals, number)) {
    case SIM_SIGNAL_ADDED:
        break;
    case SIM_SIGNAL_NO_MEMORY:
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
        break;
    case SIM_SIGNAL_TOO_FAR:
        sim_fail(sim, SIM_DAMAGED, "condition %u: signal %ju, and %ju is the first that has not happened", c->number,
                 (uintmax_t)number, (uintmax_t)c->signals.below + 1);
        break;
    }
}

void sim_signals_wake(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    bool all = t->event.op == SBT_TRACE_COND_BROADCAST && !sim->config.recorded_order;
    struct sim_list waiters = c->waiters;
    sim_signals_add(sim, c, t->event.order);
    c->waiters = t->targets = (struct sim_list){0};
    for (struct sim_thread *w; (w = sim_list_shift(&waiters)) != NULL;)
        sim_list_append(all || sim_signals_has(c, w->awaited) ? &t->targets : &c->waiters, w);
}

bool sim_signals_has(const struct sim_object *c, uint64_t number) {
    return c->forgotten || sim_signal_set_has(&c->signals, number);
}
