/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "signal_set.h"

#include <stdlib.h>

/*
 * The most signals from the first that is not in the set to the last that is: a trace with a longer gap is taken for
 * damaged. The bits for this gap take 8 MiB.
 */
#define MAX_GAP (UINT64_C(1) << 26)

/*
 * Make room for `gap` signals. The bits are a ring by the signals' numbers, so each moves to its place in the larger
 * ring. False: no memory.
 */
static bool widen(struct sim_signal_set *set, uint64_t gap) {
    uint32_t n = set->n_window == 0 ? 1 : set->n_window;
    while ((uint64_t)n * 64 < gap)
        n *= 2;
    uint64_t *window = calloc(n, sizeof *window);
    if (window == NULL)
        return false;
    for (uint64_t i = 1; i <= (uint64_t)set->n_window * 64; i++) {
        uint64_t k = set->below + i, bits = (uint64_t)set->n_window * 64;
        if (set->window[k % bits / 64] >> k % 64 & 1)
            window[k % ((uint64_t)n * 64) / 64] |= UINT64_C(1) << k % 64;
    }
    free(set->window);
    set->window = window;
    set->n_window = n;
    return true;
}

enum sim_signal_added sim_signal_set_add(struct sim_signal_set *set, uint64_t number) {
    if (number <= set->below)
        return SIM_SIGNAL_ADDED;
    uint64_t gap = number - set->below;
    if (gap > 1) {
        if (gap > MAX_GAP)
            return SIM_SIGNAL_TOO_FAR;
        if (gap > (uint64_t)set->n_window * 64 && !widen(set, gap))
            return SIM_SIGNAL_NO_MEMORY;
        set->window[number % ((uint64_t)set->n_window * 64) / 64] |= UINT64_C(1) << number % 64;
        return SIM_SIGNAL_ADDED;
    }
    set->below = number;
    for (uint64_t bits = (uint64_t)set->n_window * 64; bits != 0; set->below++) {
        uint64_t next = set->below + 1, *word = &set->window[next % bits / 64], bit = UINT64_C(1) << next % 64;
        if ((*word & bit) == 0)
            break;
        *word &= ~bit;
    }
    return SIM_SIGNAL_ADDED;
}

bool sim_signal_set_has(const struct sim_signal_set *set, uint64_t number) {
    if (number <= set->below)
        return true;
    uint64_t bits = (uint64_t)set->n_window * 64;
    return number - set->below <= bits && (set->window[number % bits / 64] >> number % 64 & 1) != 0;
}
