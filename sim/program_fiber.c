/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Simulated threads: which one runs when. */
#include "program_state.h"

#include <stdarg.h>

static struct sim_fiber *next_to_run(struct sim_program *p) {
    enum sim_event_kind kind;
    const struct sim_event *event;
    while (p->status == SIM_OK && (event = sim_events_take(&p->events, &kind)) != NULL) {
        struct sim_fiber *t = &p->threads[event->index];
        p->n_events++;
        if (event->generation == t->generation && t->then(p, t))
            return t;
    }
    return NULL;
}

/* To that thread; NULL: to the caller of the run. */
static void run(struct sim_program *p, struct sim_stack *from, struct sim_fiber *t) {
    struct sim_stack *to = t != NULL ? &t->stack : &p->stack;
    p->running = t;
    if (to != from)
        sim_stack_switch(from, to);
}

void sim_fiber_leave(struct sim_program *p, struct sim_stack *from) {
    run(p, from, next_to_run(p));
}

void sim_fiber_stop(struct sim_program *p, struct sim_fiber *t, enum sim_wait wait, sim_fiber_then *then) {
    t->wait = wait;
    t->then = then;
    struct sim_fiber *next = next_to_run(p);
    if (next != t)
        run(p, &t->stack, next);
    t->generation++;
}

bool sim_fiber_goes_on(struct sim_program *p, struct sim_fiber *t) {
    (void)p;
    (void)t;
    return true;
}

static bool hop(struct sim_program *p, struct sim_fiber *t) {
    if (t->hop == t->n_hops)
        return true;
    sim_fiber_call(p, t, t->departed + t->hops[t->hop++]);
    return false;
}

/* When the core has computed for the thread: it computes for its threads one after the other. */
static uint64_t end_of_turn(const struct sim_program *p, const struct sim_fiber *t) {
    uint64_t free = p->core_free[t->core], now = sim_program_now(p);
    return (free > now ? free : now) + t->ahead;
}

/* There are no hops. */
static void settle_in_turn(struct sim_program *p, struct sim_fiber *t) {
    sim_fiber_call(p, t, p->core_free[t->core] = end_of_turn(p, t));
    t->ahead = 0;
    sim_fiber_stop(p, t, SIM_FOR_TIME, sim_fiber_goes_on);
}

void sim_fiber_settle(struct sim_program *p, struct sim_fiber *t) {
    if (t->ahead == 0)
        return;
    if (p->core_free != NULL) {
        settle_in_turn(p, t);
        return;
    }
    if (t->ahead != t->hopped)
        t->hops[t->n_hops++] = t->ahead;
    t->departed = sim_program_now(p);
    t->hop = 0;
    hop(p, t);
    sim_fiber_stop(p, t, SIM_FOR_TIME, hop);
    t->ahead = t->hopped = 0;
    t->n_hops = 0;
}

void sim_program_settle(struct sim_program *p) {
    if (p->running != NULL)
        sim_fiber_settle(p, p->running);
}

/* ---- for threads ---- */

uint32_t sim_self(const struct sim_program *p) {
    return p->running->number;
}

uint64_t sim_cycles(const struct sim_program *p) {
    const struct sim_fiber *t = p->running;
    /* No other thread of the core asks for it before this one settles. */
    if (p->core_free != NULL && t->ahead != 0)
        return end_of_turn(p, t);
    return sim_program_now(p) + t->ahead;
}

void sim_compute(struct sim_program *p, uint64_t cycles) {
    p->running->ahead += cycles;
}

void sim_program_fail(struct sim_program *p, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(p->error.text, sizeof p->error.text, format, list);
    va_end(list);
    p->status = SIM_USAGE;
    sim_fiber_leave(p, &p->running->stack);
    __builtin_unreachable();
}
