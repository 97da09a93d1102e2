/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which signal ended a wait: of conditions and of futexes (their wake-ups are signals here). From outside it cannot be
 * seen, so the recorder assigns a signal. A signal ends at most one wait, a broadcast any number. A wait gets the
 * oldest unassigned signal that was given after the wait began and before it ended. That could have happened. And a
 * replay that follows it cannot wait in a circle: every wait is for something that was done before the wait ended.
 *
 * A signal is counted before it is given, so that each wait is ended by a signal that has a number. A wait may begin
 * between the two and be ended by this signal: so the signals that are in flight when a wait begins count as given
 * after that.
 */
#include "observe/observe.h"

enum { N_FLYING = 32 };

void rec_signal_count(struct rec_call *c, bool broadcast) {
    struct rec_node *node = c->node;
    if (node == NULL)
        return;
    rec_node_lock(node);
    c->event.order = ++node->signals;
    node->open = node->open << 1 | 1;
    node->broadcasts = node->broadcasts << 1 | broadcast;
    node->flying = node->flying << 1 | 1;
    rec_node_unlock(node);
}

/*
 * A waiter that the signal has woken may have destroyed the condition, and another condition may have taken its place.
 */
void rec_signal_given(struct rec_call *c, long n_woken) {
    struct rec_node *node = c->node;
    if (node == NULL)
        return;
    rec_node_lock(node);
    uint64_t since = node->signals - c->event.order;
    if (rec_life_of(node) == c->event.object && since < N_FLYING)
        node->flying &= ~(UINT32_C(1) << since);
    if (rec_life_of(node) == c->event.object && since < 64 && n_woken <= 1)
        node->broadcasts &= ~(UINT64_C(1) << since);
    if (rec_life_of(node) == c->event.object && since < 64 && n_woken <= 0)
        node->open &= ~(UINT64_C(1) << since);
    rec_node_unlock(node);
}

void rec_signal_begin_wait(struct rec_call *c) {
    struct rec_node *node = c->node;
    if (node == NULL)
        return;
    rec_node_lock(node);
    c->first_order = node->signals;
    c->flying = node->flying;
    rec_node_unlock(node);
}

/* The oldest unassigned signal, of those since the wait began and those that were in flight then. */
static uint64_t oldest_left(struct rec_call *c, struct rec_node *node) {
    uint64_t n = node->signals - c->first_order, since = n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
    since |= n >= 64 ? 0 : (uint64_t)c->flying << n;
    uint64_t left = (node->open | node->broadcasts) & since;
    if (left == 0)
        return 0;
    unsigned oldest = 63 - (unsigned)__builtin_clzll(left);
    node->open &= ~(UINT64_C(1) << oldest);
    return node->signals - oldest;
}

static bool was_flying(const struct rec_call *c, uint64_t order) {
    uint64_t before = c->first_order - order;
    return order != 0 && before < N_FLYING && (c->flying >> before & 1) != 0;
}

/*
 * A condition may be destroyed as soon as all its waiters have been woken, before they have returned: then the
 * broadcast that woke them was the signal.
 */
uint64_t rec_signal_assign(struct rec_call *c) {
    struct rec_node *node = c->node;
    uint64_t order = 0;
    if (node == NULL)
        return 0;
    rec_node_lock(node);
    if (rec_life_of(node) == c->event.object)
        order = oldest_left(c, node);
    else if (__atomic_load_n(&node->before, __ATOMIC_RELAXED) == c->event.object &&
             (node->before_signals > c->first_order || was_flying(c, node->before_signals)))
        order = node->before_signals;
    rec_node_unlock(node);
    return order;
}

uint64_t rec_signal_last(struct rec_call *c) {
    struct rec_node *node = c->node;
    if (node == NULL)
        return 0;
    rec_node_lock(node);
    uint64_t order = rec_life_of(node) == c->event.object ? node->signals : 0;
    rec_node_unlock(node);
    return order;
}
