/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "signals.h"

/*
 * The most signals from the first that has not happened to the last that has: a trace with a longer gap is taken for
 * damaged. The bits for this gap take 8 MiB.
 */
#define MAX_GAP (UINT64_C(1) << 26)

/*
 * Make room for `gap` signals. The bits are a ring by the signals' numbers, so each moves to its place in the larger
 * ring.
 */
static bool widen(struct sim *sim, struct sim_object *c, uint64_t gap) {
    uint32_t n = c->n_window == 0 ? 1 : c->n_window;
    while ((uint64_t)n * 64 < gap)
        n *= 2;
    uint64_t *window = calloc(n, sizeof *window);
    if (window == NULL) {
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
        return false;
    }
    for (uint64_t i = 1; i <= (uint64_t)c->n_window * 64; i++) {
        uint64_t k = c->below + i, bits = (uint64_t)c->n_window * 64;
        if (c->window[k % bits / 64] >> k % 64 & 1)
            window[k % ((uint64_t)n * 64) / 64] |= UINT64_C(1) << k % 64;
    }
    free(c->window);
    c->window = window;
    c->n_window = n;
    return true;
}

void sim_signals_add(struct sim *sim, struct sim_object *c, uint64_t number) {
    if (number <= c->below)
        return;
    uint64_t gap = number - c->below;
    if (gap > 1) {
        if (gap > MAX_GAP) {
            sim_fail(sim, SIM_DAMAGED, "condition %u: signal %ju, and %ju is the first that has not happened",
                     c->number, (uintmax_t)number, (uintmax_t)c->below + 1);
            return;
        }
        if (gap > (uint64_t)c->n_window * 64 && !widen(sim, c, gap))
            return;
        c->window[number % ((uint64_t)c->n_window * 64) / 64] |= UINT64_C(1) << number % 64;
        return;
    }
    c->below = number;
    for (uint64_t bits = (uint64_t)c->n_window * 64; bits != 0; c->below++) {
        uint64_t next = c->below + 1, *word = &c->window[next % bits / 64], bit = UINT64_C(1) << next % 64;
        if ((*word & bit) == 0)
            break;
        *word &= ~bit;
    }
}

bool sim_signals_has(const struct sim_object *c, uint64_t number) {
    if (number <= c->below || c->forgotten)
        return true;
    uint64_t bits = (uint64_t)c->n_window * 64;
    return number - c->below <= bits && (c->window[number % bits / 64] >> number % 64 & 1) != 0;
}
