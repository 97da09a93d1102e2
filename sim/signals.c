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

/*
 * A late waiter's signal is missing in the set until the other one comes, and a set has no room for long gaps
 * (signal_set.c). So signals that are far apart are not exchanged.
 */
enum { MOST_APART = 1 << 20 };

static bool can_exchange(const struct sim *sim, const struct sim_thread *t, const struct sim_object *c,
                         const struct sim_thread *waiter, uint64_t number) {
    uint64_t other = waiter->awaited, apart = other > number ? other - number : number - other;
    return other != 0 && apart <= MOST_APART && !sim_signals_has(c, other) &&
           !sim_ranges_may_have(&t->app->broadcasts, c->number, other) &&
           sim_now(sim) >= sim_earliest_of(&t->app->earliest, c->number, other);
}

/* The first waiter of two lists that can be woken in the place of the one that awaits the signal, if that is late. */
static const struct sim_thread *stand_in(const struct sim *sim, const struct sim_thread *t, const struct sim_object *c,
                                         uint64_t number) {
    const struct sim_list lists[] = {c->waiters, c->queued};
    const struct sim_thread *first = NULL;
    for (size_t i = 0; i < 2; i++)
        for (const struct sim_thread *w = lists[i].first; w != NULL; w = w->next) {
            if (w->awaited == number)
                return NULL;
            if (first == NULL && can_exchange(sim, t, c, w, number))
                first = w;
        }
    return first;
}

/* The signal that was to count as `from` counts as `to`: `from` has been given now. */
static void exchange(struct sim *sim, struct sim_object *c, uint64_t from, uint64_t to) {
    uint64_t comes = sim_exchange_for(c->exchange, from); /* `from` itself may have come, as another one */
    sim_exchange_take(c->exchange, comes);
    sim->n_exchanged -= comes != from;
    if (comes != to && !sim_exchange_put(&c->exchange, comes, to))
        sim_fail(sim, SIM_NO_MEMORY, "out of memory");
    sim->n_exchanged += comes != to;
}

/* On the host: the number of the signal as which this one is given. */
static uint64_t given_as(struct sim *sim, const struct sim_thread *t, struct sim_object *c) {
    uint64_t number = sim_exchange_take(c->exchange, t->event.order);
    sim->n_exchanged -= number != t->event.order;
    const struct sim_thread *w = number != 0 ? stand_in(sim, t, c, number) : NULL;
    if (w == NULL)
        return number;
    exchange(sim, c, w->awaited, number);
    return w->awaited;
}

void sim_signals_wake(struct sim *sim, struct sim_thread *t) {
    struct sim_object *c = t->object;
    bool all = t->event.op == SBT_TRACE_COND_BROADCAST && !sim->config.recorded_order;
    struct sim_list waiters = c->waiters;
    bool exchanges = sim->host != NULL && t->event.op == SBT_TRACE_COND_SIGNAL && !sim->config.recorded_order;
    sim_signals_add(sim, c, exchanges ? given_as(sim, t, c) : t->event.order);
    c->waiters = t->targets = (struct sim_list){0};
    for (struct sim_thread *w; (w = sim_list_shift(&waiters)) != NULL;)
        sim_list_append(all || sim_signals_has(c, w->awaited) ? &t->targets : &c->waiters, w);
}

bool sim_signals_has(const struct sim_object *c, uint64_t number) {
    return c->forgotten || sim_signal_set_has(&c->signals, number);
}

bool sim_signals_was_exchanged(const struct sim_object *c, uint64_t number) {
    return number != 0 && sim_exchange_has(c->exchange, number);
}

bool sim_signals_end_exchange(struct sim *sim, struct sim_object *c, uint64_t number) {
    if (!sim_exchange_end(c->exchange, number))
        return false;
    sim->n_exchanged--;
    sim_signals_add(sim, c, number);
    return true;
}
