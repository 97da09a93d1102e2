/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of a condition's signals, by their numbers from 1. Nearly all numbers come in about their order. */
#ifndef SIM_SIGNAL_SET_H
#define SIM_SIGNAL_SET_H

#include <stdbool.h>
#include <stdint.h>

struct sim_signal_set {
    uint64_t below;    /* all signals up to this number are in the set; */
    uint64_t *window;  /* of the next n_window * 64 signals those with a bit; NULL: none */
    uint32_t n_window; /* a power of two, or 0 */
};

enum sim_signal_added { SIM_SIGNAL_ADDED, SIM_SIGNAL_NO_MEMORY, SIM_SIGNAL_TOO_FAR };

enum sim_signal_added sim_signal_set_add(struct sim_signal_set *set, uint64_t number);
bool sim_signal_set_has(const struct sim_signal_set *set, uint64_t number);

#endif
