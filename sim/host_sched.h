/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host machine's cores, under a model of Linux's scheduler (EEVDF) or of the library's carriers. sim_core_* comes
 * here when the simulated machine is the host. Further calls that only the host's primitives need:
 */
#ifndef SIM_HOST_SCHED_H
#define SIM_HOST_SCHED_H

#include "core.h"

struct sim_host_core {
    _Alignas(SIM_LINE) struct sim_thread *on; /* the thread that has the core; NULL: none */
    uint64_t from;                            /* until then its work has been counted; later than now: a switch */
    struct sim_thread **queue;                /* the ready threads, a heap: the one that runs next is the first */
    uint32_t n_ready, capacity;
    int64_t sum_v;  /* of the virtual times of its threads, ready and running */
    int64_t rest_v; /* the virtual time at which the last thread left an empty core */
    uint32_t generation;
    uint16_t number;
    bool armed;
    bool resched;   /* its thread's slice is over, and another thread has come; */
    bool preempts;  /* or a woken thread takes its place, from preempt_at on */
    bool woken;     /* of an idle carrier: it was woken for a fiber */
    uint8_t n_vain; /* wake-ups of this idle carrier in a row that found no fiber */
    uint64_t last;  /* the serial number of the thread that had the core last; the thread may be gone */
    uint64_t preempt_at;
    uint64_t tick_at; /* the next tick that was armed */
    uint64_t idle_from;
    uint64_t balance_at;
    uint32_t n_balances;
};

struct sim_host {
    struct sim_host_model model;
    bool fibers;                            /* threads are switched by carriers */
    uint32_t n_idle;                        /* cores without a thread */
    uint32_t n_unwoken;                     /* times that a carrier was not woken, because it would be in vain */
    uint64_t long_yield_at, gate_closed_to; /* the yield gate: libsubutai/wait/yield_gate.h */
    uint64_t n_spins;                       /* events of threads that wait at spin locks */
    uint64_t n_threads;                     /* that have begun: serial numbers */
    uint64_t sequence;                      /* of threads that became ready: the order of a carrier's run queue */
    struct sim_host_core *cores;
};

bool sim_host_init(struct sim *sim); /* false: no memory */
void sim_host_free(struct sim *sim);

/* The thread, which waits by looking again and again, runs `then` after `ns` if it has a core, and else when it has. */
void sim_host_poke(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then);
/* Has the thread a core, and does it run its own code there? */
bool sim_host_is_running(const struct sim *sim, const struct sim_thread *t);
/* The running thread gives its core to the next ready thread, if there is one. Then, or at once, `then`. */
void sim_host_yield(struct sim *sim, struct sim_thread *t, sim_then *then);
/* The same, but it is the running thread that wakes it: a carrier's run queue gets the fiber. */
void sim_host_wake_by(struct sim *sim, struct sim_thread *waker, struct sim_thread *t);
/* What the running thread spends on waking that one now. */
uint64_t sim_host_wake_cost(struct sim *sim, const struct sim_thread *waker, const struct sim_thread *t);
/* Do the application's threads all have a core? Then a wait spins, and a fiber waits as a thread does. */
bool sim_host_cores_to_spare(const struct sim *sim, const struct sim_thread *t);
/* Other threads wait for the core of the running thread. */
bool sim_host_others_ready(const struct sim *sim, const struct sim_thread *t);
/* How long that much recorded work takes on this machine, begun now. */
uint64_t sim_host_work_ns(const struct sim *sim, uint64_t work_ns);

#endif
