/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scheduling policies of section VII of the paper, for the threads of one core: round robin (RR), the critical
 * section-aware policy (CSA), and one application at a time (OAT). Pure: the caller says what time it is and what has
 * happened, and is told who runs and until when; all memory is the caller's.
 *
 * CSA, section VII-A. A thread that has CSA enabled and holds a mutex goes before all that do not, RR among several
 * such threads, RR among all when there is none. Its time limit is Eq. 2; when it is used up the thread is one among
 * all until it has released its mutexes. Against livelock, a thread that takes its mutex again and again and so begins
 * a new limit each time, all use of the priority on this core is limited to a share of each time frame.
 *
 * Eq. 2 counts the threads that are ready or running when one of them gains the priority, itself included: "when one of
 * these threads gains CSA priority, its time limit is 14ms". From then on the time that it runs counts, but it falls
 * back to RR only when others are there: "if the execution of the critical section reduces the priority of the other
 * threads". So one that gains it alone on its core has a limit of 0, and goes before nobody who comes later. A thread
 * that is given a mutex while it sleeps gains the priority when it becomes ready. With limit_varies the limit is that
 * of the moment at which it is looked at ("currently in the ready and running states"), and time alone does not count.
 *
 * Order of calls: csa_add when a thread is ready; csa_pick when nobody runs; then csa_until says when to ask csa_due,
 * which also has to be asked after every csa_add; if it is, csa_yield and csa_pick. csa_stop when the running thread
 * blocks or ends. Time never goes back.
 */
#ifndef CSA_CSA_H
#define CSA_CSA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum csa_policy { CSA_RR, CSA_CSA, CSA_OAT, CSA_N_POLICIES };

/* "rr", "csa", "oat" */
const char *csa_policy_name(enum csa_policy policy);

struct csa_config {
    enum csa_policy policy;
    uint64_t slot_ns;  /* TS, above 0 */
    uint64_t frame_ns; /* the time frame; 0: no cap */
    uint64_t cap_ns;   /* of each frame, at most so much by CSA priority */
    bool limit_varies; /* the other reading of Eq. 2, above */
};

/* RR with the paper's slot of 1 ms; a cap, ours, of half of each 100 slots. */
struct csa_config csa_config_default(void);

/* Eq. 2. The idle thread is not counted. Never negative: 0 without threads. */
uint64_t csa_limit_ns(uint64_t n_ready, uint64_t n_running, uint64_t slot_ns);

/* Eq. 1: the largest slowdown by the smallest. 1 is fair; 0 if there is nothing to compare. Times above 0. */
double csa_unfairness(const double *scheduled, const double *alone, size_t n);

/* A thread as the scheduler sees it; all-zero but for `enabled` to begin with. The fields are csa.c's. */
struct csa_thread {
    struct csa_thread *next, *prev;
    uint64_t turn;              /* when it was queued, counted */
    uint64_t limit_ns, used_ns; /* in this critical section */
    uint32_t n_held;            /* mutexes */
    bool enabled;               /* CSA applies to it */
    bool gained;                /* the priority, in this critical section: limit_ns counts */
    bool limited;               /* its limit is used up */
    uint8_t queued;             /* 0, or 1 + the queue */
};

struct csa_queue {
    struct csa_thread *first, *last;
};

/* Table VII: how often a thread was chosen, and in which of these states it was. */
struct csa_stats {
    uint64_t n_outside;   /* holds no mutex */
    uint64_t n_priority;  /* holds one, by CSA */
    uint64_t n_rr;        /* holds one, by RR: limit used up, CSA not enabled, or another policy */
    uint64_t n_rr_capped; /* holds one, by RR for no reason but the cap */
    uint64_t n_alone;     /* critical sections that gained the priority alone on the core: a limit of 0 */
    uint64_t n_limited;   /* those that used up their limit, and somebody was in the way */
    uint64_t n_capped;    /* frames whose cap was reached */
};

struct csa_sched {
    uint32_t n_ready;
    struct csa_thread *running;
    struct csa_config config;
    struct csa_queue queue[2]; /* 0: all others, 1: critical */
    uint64_t n_turns;
    uint64_t slot_from_ns;
    uint64_t charged_ns;          /* the running thread's time is counted up to here */
    uint64_t frame, frame_end_ns; /* its number; until then there is no need to divide */
    uint64_t frame_used_ns;
    struct csa_stats stats;
};

void csa_init(struct csa_sched *s, const struct csa_config *config);

/* The thread is ready: behind those of its kind. */
void csa_add(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns);
/* A ready thread leaves, to be added elsewhere. */
void csa_remove(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns);
/* The first of those that are ready, for a core that runs none; NULL: none. It runs from now on. */
struct csa_thread *csa_pick(struct csa_sched *s, uint64_t now_ns);
/* The running thread blocks or ends. */
void csa_stop(struct csa_sched *s, uint64_t now_ns);
/* The running thread makes room: ready again, behind those of its kind. */
void csa_yield(struct csa_sched *s, uint64_t now_ns);

/* Has the running thread to make room? */
bool csa_due(struct csa_sched *s, uint64_t now_ns);
/* When that will be if nothing else happens; UINT64_MAX: not at all. */
uint64_t csa_until(struct csa_sched *s, uint64_t now_ns);

/* The thread, wherever it is, has got or released a mutex. One that is in a queue keeps its place among its new kind.
 */
void csa_hold(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns);
void csa_unhold(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns);

/* ---- one application at a time ---- */

/* In the order of their numbers, the next one when all before it have ended. For all cores together. */
struct csa_turn {
    uint32_t n_applications, current;
};

static inline bool csa_may_run(const struct csa_turn *turn, uint32_t application) {
    return turn->current == application;
}

/* The current application has ended. True: there is another one, turn->current. */
bool csa_next(struct csa_turn *turn);

#endif
