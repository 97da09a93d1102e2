/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scheduling policies of section VII of the paper, for the threads of one core: round robin (RR), the critical
 * section-aware policy (CSA), and one application at a time (OAT). Pure: the caller says what time it is and what has
 * happened, and these functions say which thread runs and until when. All memory is the caller's.
 *
 * CSA, section VII-A. A thread that has CSA enabled and holds a mutex goes before all threads that do not. Several such
 * threads take turns (RR); if there is none, all threads do. The time limit of the priority is Eq. 2. When it is used
 * up the thread has no priority until it has released its mutexes. A thread could take its mutex again and again, and
 * begin a new limit each time; against that livelock all use of the priority on this core is capped to a share of each
 * time frame.
 *
 * Eq. 2 counts the threads that are ready or running when one of them gains the priority, that one included: "when one
 * of these threads gains CSA priority, its time limit is 14ms". From then on the time that the thread runs counts. It
 * falls back to RR only when other threads are there: "if the execution of the critical section reduces the priority of
 * the other threads". So a thread that gains the priority alone on its core has a limit of 0, and goes before no thread
 * that comes later. A thread that is given a mutex while it sleeps gains the priority when it becomes ready. With
 * limit_varies the limit is that of the moment at which it is looked at ("currently in the ready and running states"),
 * and time that a thread runs alone does not count.
 *
 * Order of calls:
 *
 *   1. csa_add when a thread becomes ready. After it ask csa_due.
 *   2. csa_pick when no thread runs. Then csa_until says when to ask csa_due again.
 *   3. If csa_due is true, csa_yield and csa_pick.
 *   4. csa_stop when the running thread blocks or ends.
 *
 * Time never goes back.
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
    uint64_t cap_ns;   /* of each frame, at most so much with CSA priority */
    bool limit_varies; /* the other reading of Eq. 2: see above */
};

/* RR with the paper's slot of 1 ms; a cap, ours, of half of each 100 slots. */
struct csa_config csa_config_default(void);

/* Eq. 2. The idle thread is not counted. Never negative: 0 without threads. */
uint64_t csa_limit_ns(uint64_t n_ready, uint64_t n_running, uint64_t slot_ns);

/* Eq. 1: the largest slowdown divided by the smallest. 1 is fair; 0: nothing to compare. All times are above 0. */
double csa_unfairness(const double *scheduled, const double *alone, size_t n);

/* A thread as the scheduler sees it. It begins all-zero but for `enabled`. The fields are csa.c's. */
struct csa_thread {
    struct csa_thread *next, *prev;
    uint64_t ticket;            /* threads are queued in the order of their tickets */
    uint64_t limit_ns, used_ns; /* in this critical section */
    uint32_t n_held;            /* mutexes */
    bool enabled;               /* CSA applies to it */
    bool gained;                /* the priority, in this critical section: limit_ns counts */
    bool limited;               /* the limit is used up */
    uint8_t queued;             /* 0, or 1 + the queue */
};

struct csa_queue {
    struct csa_thread *first, *last;
};

/* Table VII: how often a thread was chosen, by the state it was in. */
struct csa_stats {
    uint64_t n_outside;   /* it held no mutex */
    uint64_t n_priority;  /* it held one, and was chosen by CSA */
    uint64_t n_rr;        /* it held one, and was chosen by RR: limit used up, CSA not enabled, or another policy */
    uint64_t n_rr_capped; /* it held one, and was chosen by RR only because of the cap */
    uint64_t n_alone;     /* critical sections that gained the priority alone on the core: a limit of 0 */
    uint64_t n_limited;   /* critical sections that used up their limit while other threads were ready */
    uint64_t n_capped;    /* frames that reached their cap */
};

struct csa_sched {
    uint32_t n_ready;
    struct csa_thread *running;
    struct csa_config config;
    struct csa_queue queue[2]; /* 0: all others, 1: critical */
    uint64_t n_tickets;
    uint64_t slot_from_ns;
    uint64_t charged_ns;          /* the running thread's time is counted up to here */
    uint64_t frame, frame_end_ns; /* its number; until then there is no need to divide */
    uint64_t frame_used_ns;
    struct csa_stats stats;
};

void csa_init(struct csa_sched *s, const struct csa_config *config);

/* The thread is ready: it goes behind the others of its kind. */
void csa_add(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns);
/* A ready thread leaves, to be added elsewhere. */
void csa_remove(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns);
/* The ready thread that is first, for a core on which none runs; it runs from now on. NULL: none is ready. */
struct csa_thread *csa_pick(struct csa_sched *s, uint64_t now_ns);
/* The first ready thread of those inside critical sections, or else of the others. One is ready. */
static inline struct csa_thread *csa_first(const struct csa_sched *s) {
    return s->queue[1].first != NULL ? s->queue[1].first : s->queue[0].first;
}
/* The running thread blocks or ends. */
void csa_stop(struct csa_sched *s, uint64_t now_ns);
/* The running thread makes room: it is ready again, behind the others of its kind. */
void csa_yield(struct csa_sched *s, uint64_t now_ns);

/* Must the running thread make room? */
bool csa_due(struct csa_sched *s, uint64_t now_ns);
/* When that will be if nothing else happens; UINT64_MAX: not at all. */
uint64_t csa_until(struct csa_sched *s, uint64_t now_ns);

/* The thread, wherever it is, has got or released a mutex. A queued thread keeps its place by its ticket, among its new
 * kind. */
void csa_hold(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns);
void csa_unhold(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns);

/* ---- one application at a time ---- */

/* Applications run in the order of their numbers, each when all before it have ended. For all cores together. */
struct csa_oat {
    uint32_t n_applications, current;
};

static inline bool csa_oat_may_run(const struct csa_oat *oat, uint32_t application) {
    return oat->current == application;
}

/* The current application has ended. True: there is another one, oat->current. */
bool csa_oat_next(struct csa_oat *oat);

#endif
