/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Cores: which thread runs where, and until when. sched_csa decides which of the ready threads runs next. */
#ifndef SIM_CORE_H
#define SIM_CORE_H

#include "chip.h"

struct sim_core {
    _Alignas(SIM_LINE) struct sim_thread *on; /* the thread that runs here or waits awake; NULL: none */
    struct sim_thread *last;                  /* the thread that was on it last */
    uint64_t from;                            /* since then `on` has run or waited awake */
    uint32_t generation;                      /* of its event: an event of an older generation is stale */
    uint32_t n_spinning;                      /* threads in its run queue that spin for a lock */
    uint16_t number;
    bool armed;            /* an event of this generation is outstanding */
    uint64_t handed_until; /* when it has handed over its last request */
    struct csa_sched sched;
};

/* Part of a call ends with sim_core_run, sim_core_wait or sim_return: see thread.h. */
void sim_core_run(struct sim *sim, struct sim_thread *t, uint64_t cycles, sim_then *then);
void sim_core_wait(struct sim *sim, struct sim_thread *t, enum sim_why why, sim_then *then);
/*
 * The waiting thread goes on with `cycles` of work and then with its function. A wake-up before the wait counts too:
 * then the thread does not wait.
 */
void sim_core_wake(struct sim *sim, struct sim_thread *t, uint64_t cycles);
void sim_core_wake_at(struct sim *sim, struct sim_thread *t, uint64_t at);
/* The thread sleeps for so long, and has no core meanwhile. */
void sim_core_sleep(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then);
void sim_core_add(struct sim *sim, struct sim_thread *t, sim_then *then); /* a new thread */
void sim_core_leave(struct sim *sim, struct sim_thread *t);               /* it has ended */
/* The thread has taken or released a mutex: its priority may change. */
void sim_core_hold(struct sim *sim, struct sim_thread *t);
void sim_core_unhold(struct sim *sim, struct sim_thread *t);
void sim_core_event(struct sim *sim, const struct sim_event *event);
void sim_core_timer_event(struct sim *sim, const struct sim_event *event);

/* Call config.on_interval: what the thread has done until `at`. */
void sim_core_report(struct sim *sim, const struct sim_thread *t, uint64_t at);

/* From now on, or from `at` on, the thread is in that state. */
static inline void sim_core_show_at(struct sim *sim, struct sim_thread *t, enum sim_state state, uint64_t at) {
    if (t->shown == state)
        return;
    t->result.in_ns[t->shown] += at - t->shown_from;
    if (__builtin_expect(sim->config.on_interval != NULL, 0) && at != t->shown_from)
        sim_core_report(sim, t, at);
    t->shown = (uint8_t)state;
    t->shown_from = at;
}

static inline void sim_core_show(struct sim *sim, struct sim_thread *t, enum sim_state state) {
    sim_core_show_at(sim, t, state, sim_now(sim));
}

/* Let the core's only event come at `at`. */
static inline void sim_core_arm(struct sim *sim, struct sim_core *core, uint64_t at) {
    core->armed = true;
    sim_events_put_words(&sim->events, at, SIM_EV_CORE, core->number, ++core->generation, 0, core->on);
}

/* ---- core_idle.c: cores without a thread, and the threads that they take from other cores ---- */

/* When the core's waiting thread, if it has one, will have waited long enough. */
static inline uint64_t sim_core_idle_from(const struct sim *sim, const struct sim_core *core) {
    return core->on == NULL ? 0 : core->on->wait_from + sim->config.costs.patience_ns;
}

static inline void sim_core_set_idle(struct sim *sim, const struct sim_core *core, bool idle) {
    uint32_t n = core->number;
    uint64_t bit = UINT64_C(1) << n % 64;
    sim->idle[n / 64] = idle ? sim->idle[n / 64] | bit : sim->idle[n / 64] & ~bit;
}

/* Move the first thread of the longest run queue to this core's. NULL: there is none, or threads do not migrate. */
struct sim_thread *sim_core_steal(struct sim *sim, struct sim_core *core);
/*
 * An idle core, or a core with a thread that has waited long enough. NULL: there is none; then the first core that
 * becomes one looks for work at that time.
 */
struct sim_core *sim_core_find_idle(struct sim *sim);

#endif
