/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A CPU that its last thread has left is idle only after a while, in which the kernel stops the tick and looks
 * for other work. A wake-up that comes before that sends no interrupt; the CPU goes all the way, sees the woken thread,
 * and turns back. So rounds with pauses of each length up to LADDER_NS are of two kinds, which the waker's time tells
 * apart. The share of the first kind, times LADDER_NS, is how long that way is. Where the two kinds cost much the same
 * (a processor that waits for an interrupt in a way that a store ends) there are no samples.
 */
#include "calibrate.h"

/* A sleeper that did not sleep yet was woken soon, too. */
static bool is_soon(const struct ladder *ladder, size_t i, double limit_ns) {
    return !ladder->slept[i] || ladder->wake_ns[i] < limit_ns;
}

static size_t n_soon_of(const struct ladder *ladder, double limit_ns) {
    size_t n = 0;
    for (size_t i = 0; i < N_LADDER_STEPS; i++)
        n += is_soon(ladder, i, limit_ns);
    return n;
}

/* What the soon rounds of a ladder give. The result is how many do; wake and latency NULL: no more than that. */
static size_t add_soon(const struct ladder *ladder, double limit_ns, double entry_ns, struct samples *wake,
                       struct samples *latency) {
    size_t n = 0;
    for (size_t i = 0; i < N_LADDER_STEPS; i++) {
        double late_ns = ladder->latency_ns[i] + (double)ladder_pause_ns(i) - entry_ns;
        if (!is_soon(ladder, i, limit_ns) || !ladder->slept[i] || (double)ladder_pause_ns(i) > entry_ns || late_ns <= 0)
            continue; /* or it was woken before it had left its CPU */
        n++;
        if (wake == NULL)
            continue;
        samples_add(wake, ladder->wake_ns[i]);
        samples_add(latency, late_ns);
    }
    return n;
}

/*
 * Between the two kinds of wake-ups lies most that costs between the cheapest and those of idle CPUs: where that is not
 * much, there is one kind. Soon rounds come before the end of the way, but for a few. Where they come after any pause,
 * other processes had the CPU: then a wake-up that waits for their turns costs the waker little, too. The three costs
 * have enough samples each, or none: a prediction needs all of them.
 */
void soon_of(const struct ladder *ladders, size_t n, double idle_ns) {
    struct samples *entry = samples_new("idle_entry_ns"), *wake = samples_new("wake_soon_ns"),
                   *latency = samples_new("latency_soon_ns");
    double least_ns = idle_ns;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < N_LADDER_STEPS; i++)
            least_ns = ladders[k].slept[i] && ladders[k].wake_ns[i] < least_ns ? ladders[k].wake_ns[i] : least_ns;
    double limit_ns = (least_ns + idle_ns) / 2;
    size_t n_soon = 0, n_entries = 0, n_latencies = 0, n_early = 0;
    for (size_t k = 0; k < n; k++) {
        n_soon += n_soon_of(&ladders[k], limit_ns);
        n_entries += n_soon_of(&ladders[k], limit_ns) > 0;
    }
    if (idle_ns < 3 * least_ns || n_soon < n * N_LADDER_STEPS / 20 || n_soon > n * N_LADDER_STEPS * 19 / 20)
        return;
    double entry_ns = (double)n_soon / (double)(n * N_LADDER_STEPS) * LADDER_NS;
    for (size_t k = 0; k < n; k++) {
        n_latencies += add_soon(&ladders[k], limit_ns, entry_ns, NULL, NULL);
        for (size_t i = 0; i < N_LADDER_STEPS; i++)
            n_early += is_soon(&ladders[k], i, limit_ns) && (double)ladder_pause_ns(i) < entry_ns;
    }
    if (n_entries < N_SAMPLES_MIN || n_latencies < N_SAMPLES_MIN || n_early < n_soon * 3 / 4)
        return;
    for (size_t k = 0; k < n; k++) {
        size_t n_here = n_soon_of(&ladders[k], limit_ns);
        add_soon(&ladders[k], limit_ns, entry_ns, wake, latency);
        if (n_here > 0)
            samples_add(entry, (double)n_here / N_LADDER_STEPS * LADDER_NS);
    }
}
