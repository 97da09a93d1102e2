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

bool sim_signals_has(const struct sim_object *c, uint64_t number) {
    return c->forgotten || sim_signal_set_has(&c->signals, number);
}
