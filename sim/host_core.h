/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A core of the host: the thread that runs there, its run queue, and the virtual time of both. host_sched.c decides
 * when a core changes to another thread.
 *
 * A thread that comes to a core joins it first, and is then put into the run queue. A thread that goes is taken off the
 * core, or out of the run queue, and then leaves it. In between the core's virtual time is not right.
 *
 * A carrier's run queue has the fibers in the order of their coming, but for those that yielded, which come behind all
 * others. So it is two lists, and carriers have no virtual time.
 */
#ifndef SIM_HOST_CORE_H
#define SIM_HOST_CORE_H

#include "core.h"

struct sim_host_core {
    _Alignas(SIM_LINE) struct sim_thread *on; /* the thread that has the core; NULL: none */
    uint64_t from;                            /* until then its work has been counted; later than now: a switch */
    union {
        struct sim_thread **queue; /* the ready threads, a heap: the one that runs next is the first */
        struct {
            struct sim_thread *first, *last;
        } fibers[2]; /* a carrier's: those that were woken, and those that yielded */
    };
    uint32_t n_ready, capacity;
    struct sim_thread *delayed; /* threads that sleep, and are in the virtual time all the same */
    uint32_t n_delayed;
    int64_t sum_v;       /* of the virtual times of its threads, ready, running and delayed */
    int64_t rest_v;      /* the virtual time at which the last thread left an empty core */
    uint32_t generation; /* of its event, if that is far ahead: an event of an older generation is stale */
    uint32_t ticket;     /* of its event, while it is armed; SIM_NO_EVENT: it cannot be cancelled */
    uint64_t armed_at;   /* when that event comes */
    uint16_t number;
    bool armed;
    bool resched;   /* its thread's slice is over, and another thread has come; */
    bool preempts;  /* or a woken thread takes its place, from preempt_at on */
    bool woken;     /* of an idle carrier: it was woken for a fiber */
    uint8_t n_vain; /* wake-ups of this idle carrier in a row that found no fiber */
    bool searches;  /* of an idle carrier: it looks for fibers, and its next look is no event; */
    bool listed;    /* in `looks` */
    uint64_t last;  /* the serial number of the thread that had the core last; the thread may be gone */
    uint64_t preempt_at;
    uint64_t tick_at;     /* the next tick that was armed */
    uint64_t pause_ns;    /* mean of its last times without a thread, of late ones mostly */
    uint64_t idle_from;   /* it has had no thread since then, */
    uint64_t search_from; /* and has searched since then: it went idle, or was woken to look */
    uint64_t search_order;
    uint32_t n_preferred; /* fibers in a row that were woken, while others that had yielded waited */
    uint64_t balance_at;
    uint32_t n_balances;
};

/* The next look of a carrier that searches. */
struct sim_host_look {
    uint64_t at, order;
    uint16_t core;
};

struct sim_host {
    struct sim_host_model model;
    bool fibers;                            /* threads are switched by carriers */
    uint32_t n_idle;                        /* cores without a thread */
    uint32_t n_unwoken;                     /* times that a carrier was not woken, because it would be in vain */
    uint64_t long_yield_at, gate_closed_to; /* the yield gate: libsubutai/wait/yield_gate.h */
    uint64_t n_spins;                       /* events of threads that wait at spin locks */
    uint64_t n_threads;                     /* that have begun: serial numbers */
    uint64_t next_tick;                     /* of all cores */
    uint64_t sequence;                      /* of threads that became ready */
    struct sim_host_core *cores;
    uint64_t queues[SIM_MAX_CORES / 64]; /* a bit for each core of which the run queue is not empty */
    struct sim_host_look *looks;         /* host_search.c: of carriers that may search; a place for each carrier */
    uint32_t n_looks;
    uint64_t n_searches;  /* that have begun: their order */
    uint64_t searches_to; /* the last look that was no event is not after that time */
};

static inline struct sim_host_core *sim_host_core_of(const struct sim *sim, const struct sim_thread *t) {
    return &sim->host->cores[t->core];
}

static inline bool sim_host_has(const struct sim *sim, enum sim_host_effect effect) {
    return (sim->host->model.effects & effect) != 0;
}

/* ---- servers: the first cores, with delegation (host_delegate.h) ---- */

static inline bool sim_host_delegates(const struct sim *sim) {
    return __builtin_expect(sim->host->model.n_servers != 0, 0);
}

static inline bool sim_host_is_server(const struct sim *sim, uint32_t core) {
    return core < sim->host->model.n_servers;
}

/* ---- idle cores ---- */

static inline bool sim_host_is_idle(const struct sim *sim, uint32_t core) {
    return (sim->idle[core / 64] >> core % 64 & 1) != 0;
}

static inline void sim_host_set_idle(struct sim *sim, uint32_t core, bool idle) {
    uint64_t bit = UINT64_C(1) << core % 64;
    if (idle == sim_host_is_idle(sim, core))
        return;
    sim->idle[core / 64] ^= bit;
    sim->host->n_idle += idle ? 1 : -1u;
}

/* The first idle core behind `from`; NULL: none is idle. */
struct sim_host_core *sim_host_find_idle(struct sim *sim, uint32_t from);

/* Has the idle core been idle for long? */
static inline bool sim_host_is_deep(const struct sim *sim, const struct sim_host_core *core) {
    return sim_now(sim) - core->idle_from >= sim->host->model.deep_after_ns;
}

/*
 * When the core without a thread is idle. Until then a wake-up finds it on its way there, if it has had a thread. A
 * carrier searches first; 0: how long the way is, is not known.
 */
static inline uint64_t sim_host_idle_at(const struct sim *sim, const struct sim_host_core *core, bool carrier) {
    const struct sim_host_model *model = &sim->host->model;
    if (model->idle_entry_ns == 0 || core->last == 0)
        return 0;
    return (carrier ? core->search_from + model->search_ns : core->idle_from) + model->idle_entry_ns;
}

/* A kernel or hypervisor that has seen short pauses alone makes ready for one more. */
static inline bool sim_host_pauses_are_short(const struct sim *sim, const struct sim_host_core *core) {
    return core->pause_ns < sim->host->model.short_ns && !sim_host_is_deep(sim, core);
}

/* What it costs a waker that a thread, or else a carrier, sleeps there. */
static inline uint64_t sim_host_wake_ns(const struct sim *sim, const struct sim_host_core *core, bool carrier) {
    const struct sim_host_model *model = &sim->host->model;
    if (sim_now(sim) < sim_host_idle_at(sim, core, carrier))
        return model->wake_soon_ns;
    if (sim_host_pauses_are_short(sim, core))
        return model->wake_short_ns;
    return sim_host_is_deep(sim, core) ? model->wake_deep_ns : model->wake_idle_ns;
}

/* ---- the run queue ---- */

/* Threads of the core, ready and running. */
static inline uint32_t sim_host_n_here(const struct sim_host_core *core) {
    return core->n_ready + (core->on != NULL);
}

/* False: no memory, and the run has failed. */
bool sim_host_push(struct sim *sim, struct sim_host_core *core, struct sim_thread *t);
/* Take the thread at that place of the heap out; a carrier's run queue has only place 0, of the fiber that runs next.
 */
struct sim_thread *sim_host_take_at(struct sim *sim, struct sim_host_core *core, uint32_t place);
/*
 * A carrier with an empty run queue takes so many fibers from another one, which has that many. 0: some there have
 * yielded, and they come one by one. Neither carrier is a server.
 */
uint32_t sim_host_take_fibers(struct sim *sim, struct sim_host_core *from, struct sim_host_core *to, uint32_t n);
/*
 * Take the thread that runs next out of the run queue, which is not empty. A delayed thread that would come first
 * leaves the core, and so do all, if only such threads are there: then the result is NULL.
 */
struct sim_thread *sim_host_take_next(struct sim *sim, struct sim_host_core *core);

/* ---- virtual time ---- */

/* The thread comes to this core, and may run for `slice`. */
void sim_host_join(const struct sim *sim, struct sim_host_core *core, struct sim_thread *t, uint64_t slice);
/* The thread goes from its core; it has been taken out of the run queue, or off the core, already. */
void sim_host_leave(struct sim *sim, struct sim_host_core *core, struct sim_thread *t);

/*
 * DELAY_DEQUEUE: a thread that sleeps and has run more than the mean of its core's threads stays where it is until it
 * would run next. Until then it counts for the mean. So its debt is paid when others have run as much.
 */
void sim_host_delay(const struct sim *sim, struct sim_host_core *core, struct sim_thread *t);
/*
 * Has the delayed thread left the core at the last tick? The kernel looks at ticks also where a single other thread
 * runs, for which the model has no events.
 */
bool sim_host_has_paid(const struct sim *sim, const struct sim_host_core *core, const struct sim_thread *t);
/* The thread leaves its core, if it is delayed and has paid. */
void sim_host_leave_if_paid(struct sim *sim, struct sim_thread *t);
/* The delayed thread is woken, and will be put into the run queue: with its debt and its deadline, or without both. */
void sim_host_end_delay(struct sim *sim, struct sim_host_core *core, struct sim_thread *t);

static inline void sim_host_ran(struct sim_host_core *core, struct sim_thread *t, uint64_t ns) {
    t->host.v += (int64_t)ns;
    core->sum_v += (int64_t)ns;
    core->from += ns;
}

/* Count what the core's thread has run so far. */
static inline void sim_host_count(struct sim *sim, struct sim_host_core *core) {
    uint64_t now = sim_now(sim);
    if (now <= core->from || core->on == NULL)
        return;
    uint64_t ran = now - core->from;
    struct sim_thread *t = core->on;
    t->left = t->left > ran ? t->left - ran : 0;
    sim_host_ran(core, t, ran);
}

/* Has the thread not run more than the mean of the core's threads? */
bool sim_host_is_eligible(const struct sim_host_core *core, const struct sim_thread *t);

#endif
