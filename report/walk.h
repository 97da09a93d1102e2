/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The analysis from inside. Three readings of the trace:
 *
 * 1. survey.c, thread by thread: lives of threads, objects by where they were made, and which objects deserve a detail.
 * 2. walk.c, all threads in the order of time. Each call is two steps, its beginning and its end: what it gives (an
 * unlock, a signal, an arrival) it gives at the beginning, what it gets it gets at the end. The files lock.c, event.c
 * and barrier.c say what a step does to an object, wait.c what a wait means for the two threads.
 * 3. path_share.c, thread by thread: what the threads did on the critical path, which path.c has found by then.
 *
 * Clocks of two processors differ by up to a microsecond, so that a lock may seem to be taken before it was released.
 * Nothing here relies on such an order: what does not fit is cut to zero.
 */
#ifndef REP_WALK_H
#define REP_WALK_H

#include "report.h"
#include "table.h"

enum {
    REP_RECENT_WAITS = 64,     /* of a thread: those that another thread's wait may overlap with */
    REP_SIGNALS = 64,          /* of an object: as many as the recorder assigns waits to */
    REP_GENERATIONS = 16,      /* of a barrier that may be open at once, a power of 2: of OpenMP's, several teams' */
    REP_MOST_HOLDS = 512,      /* of an object: past holds that a wait may overlap with, a power of 2 */
    REP_MOST_DETAILS = 4096,   /* objects of which there are histograms and sites */
    REP_MOST_PAIRS = 1 << 16,  /* threads, or sites, that waited for each other */
    REP_MOST_ORDERS = 1 << 18, /* pairs of locks that were held together */
    REP_MOST_CHAINS = 1 << 14,
    REP_MOST_TASKS = 1 << 12, /* functions of tasks */
    REP_MOST_WAITS = 1 << 22, /* waits of which the critical path is made */
};
#define REP_SHORT_NS 1000 /* as exact as times of two processors can be compared */

/* A lock that a thread holds. */
struct rep_held {
    uint32_t object, site;
    bool shared, waited;                  /* for reading; for it */
    uint64_t began_ns, since_ns, work_ns; /* when the call began, and ended; the thread's work at its end */
};

/* A hold of the thread's ended, as another thread gave the object back. */
struct rep_given {
    uint64_t at_ns;
    uint32_t object;
};

struct rep_recent_wait {
    uint64_t from_ns, to_ns, kept_ns; /* kept: in which another thread waited for this one */
    uint32_t object, site;
    uint32_t chain; /* in rep_walk.chains: what its waker waited for meanwhile; REP_NONE: nothing */
    uint8_t kind;
};

struct rep_walker {
    struct sbt_trace_cursor cursor;
    struct sbt_trace_event event;
    bool in_call;      /* the next step is the end of `event` */
    bool polls;        /* its last call was a trylock of `polled` that failed */
    uint64_t due_ns;   /* of the next step */
    uint64_t ended_ns; /* the last call */
    uint64_t work_ns;  /* since its beginning */
    struct rep_held *held;
    uint32_t n_held, held_capacity;
    struct rep_given *given; /* in order of time */
    uint32_t n_given, given_capacity;
    uint64_t section_ns, union_ns; /* where the section, and its first hold, began */
    uint32_t last_wait;            /* in rep_walk.waits */
    uint32_t recent_at;
    struct rep_recent_wait *recent; /* [REP_RECENT_WAITS], a ring; NULL: none yet */
    uint32_t woken_cond;            /* the condition that has just woken it, while it holds the mutex; REP_NONE */
    bool woken_by_broadcast;
    uint32_t polled;
    uint64_t poll_from_ns, poll_work_ns, n_polls;
};

struct rep_hold {
    uint64_t from_ns, to_ns;
    uint32_t thread, site;
};

struct rep_signal {
    uint64_t number, at_ns, since_ns;
    uint32_t thread, site;
    bool broadcast, had_waited; /* had_waited, since_ns: as of a release */
};

struct rep_open_generation {
    uint64_t number; /* 0: free */
    uint64_t first_ns, last_ns, end_ns;
    uint64_t work_ns, last_work_ns; /* since the threads left the last generation: of all, and of the last one */
    uint64_t last_off_ns;           /* of last_work_ns, off the processor */
    uint32_t first_thread, last_thread, last_site, n_arrived, n_left;
};

/* What only the walk needs to know of an object with a detail. */
struct rep_rings {
    struct rep_hold *holds; /* a ring; NULL: none yet */
    uint64_t n_holds;       /* ever */
    struct rep_signal *signals;
    struct rep_open_generation open[REP_GENERATIONS];
    struct { /* the run of acquisitions that is going on */
        uint64_t n, from_ns, held_ns, handover_ns, threads;
    } run;
};

/* What the last release of a lock was. */
struct rep_release {
    uint64_t at_ns, since_ns; /* since: it had held the lock; 0 of what is not held */
    uint32_t thread, site;    /* REP_NONE: there was none; site: where it took the lock, or gave the signal */
    bool had_waited;          /* for the lock itself */
};

/* The state of a lock in the walk, of each object. */
struct rep_lock {
    uint32_t holder;               /* REP_NONE: free, or held for reading */
    struct rep_release any, write; /* write: of holds for writing */
    uint64_t number;               /* of the last acquisition */
    uint32_t n_waiting;            /* of a futex: threads that wait there, at least one since waiting_ns */
    uint64_t waiting_ns;
};

/* A wait that another thread ended. The critical path may lead through it. */
struct rep_wait {
    uint64_t from_ns, to_ns, release_ns;
    uint32_t thread, waker, object;
    uint32_t before; /* the thread's wait before this one; REP_NONE */
    uint8_t kind;    /* REP_N_KINDS: the thread's creation */
};

struct rep_walk {
    struct rep_report *report;
    const struct sbt_trace *trace;
    struct rep_region turns;
    struct sbt_trace_error *error;
    struct rep_walker *walkers; /* by thread */
    struct rep_lock *locks;     /* by object */
    struct rep_wait *waits;
    uint32_t n_waits, waits_capacity;
    uint64_t shortest_ns; /* shorter waits are dropped */
    struct rep_table pairs, site_pairs, chains, orders, tasks, permits, futexes;
    rep_progress *progress;
    void *progress_to;
    uint64_t n_read, n_to_read;
};

/* false and *error: no memory. */
bool rep_no_memory(struct sbt_trace_error *error);
/* One more event was read. */
static inline void rep_tick(struct rep_walk *w) {
    if ((++w->n_read & 0x3FFF) == 0 && w->progress != NULL)
        w->progress(w->progress_to, w->n_to_read > 0 ? (double)w->n_read / (double)w->n_to_read : 1);
}

/*
 * As sbt_trace_next, for all three readings: without events that make no sense, and without waits for the outside. The
 * work before such a wait is in the next event's, so the wait is time off the CPU between two calls, as in profiles and
 * old traces. *outside_ns: how long these waits were, behind the event before.
 */
int rep_next_of(struct sbt_trace_cursor *cursor, struct sbt_trace_event *e, uint64_t *outside_ns,
                struct sbt_trace_error *error);
int rep_next(struct sbt_trace_cursor *cursor, struct sbt_trace_event *e, struct sbt_trace_error *error);
/* Could the trace's numbers of threads, objects and sites be? They are memory. */
bool rep_plausible(const struct sbt_trace_info *info, struct sbt_trace_error *error);

bool rep_survey(struct rep_walk *w);
/* permit.c: the event n times, by the thread; and when all are counted. */
struct rep_table rep_permits_table(void);
void rep_permits_count(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, uint64_t n);
bool rep_permits_settle(struct rep_walk *w);
/* own_futex.c: the same of futexes. */
struct rep_table rep_futexes_table(void);
void rep_futexes_count(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, uint64_t n);
bool rep_futexes_settle(struct rep_walk *w);
bool rep_tallies(struct rep_walk *w);
void rep_tally_sections(struct rep_walk *w);
bool rep_walk_all(struct rep_walk *w);
bool rep_path_find(struct rep_walk *w);
bool rep_path_share(struct rep_walk *w);
void rep_advise(struct rep_report *r);

/* ---- what operations are ---- */

enum rep_kind rep_kind_of(unsigned type); /* of a wait for an object of this type */
static inline bool rep_is_lock(unsigned op) {
    return op == SBT_TRACE_MUTEX_LOCK || op == SBT_TRACE_MUTEX_TRYLOCK ||
           (op >= SBT_TRACE_RWLOCK_RDLOCK && op <= SBT_TRACE_RWLOCK_TRYWRLOCK) || op == SBT_TRACE_SPIN_LOCK ||
           op == SBT_TRACE_SPIN_TRYLOCK;
}
static inline bool rep_is_trylock(unsigned op) {
    return op == SBT_TRACE_MUTEX_TRYLOCK || op == SBT_TRACE_RWLOCK_TRYRDLOCK || op == SBT_TRACE_RWLOCK_TRYWRLOCK ||
           op == SBT_TRACE_SPIN_TRYLOCK;
}
static inline bool rep_is_unlock(unsigned op) {
    return op == SBT_TRACE_MUTEX_UNLOCK || op == SBT_TRACE_RWLOCK_UNLOCK || op == SBT_TRACE_SPIN_UNLOCK;
}
static inline bool rep_is_lock_type(unsigned type) {
    return type == SBT_TRACE_MUTEX || type == SBT_TRACE_RWLOCK || type == SBT_TRACE_SPIN;
}
/* Of locks, and of semaphores and futexes that threads use as locks. */
static inline bool rep_is_held(const struct rep_object *o) {
    return rep_is_lock_type(o->type) || o->gives_back;
}
static inline bool rep_gives_back(const struct rep_report *r, const struct sbt_trace_event *e) {
    return (e->type == SBT_TRACE_SEM || e->type == SBT_TRACE_FUTEX) && e->object < r->info.n_objects &&
           r->objects[e->object].gives_back && e->result == 0;
}
/* Is a wait there one for a lock, though by its name it might be one for work? */
static inline bool rep_is_as_lock(const struct rep_object *o) {
    return o->gives_back || o->beside_lock || o->turns;
}
static inline bool rep_takes_permit(const struct rep_report *r, const struct sbt_trace_event *e) {
    return (e->op == SBT_TRACE_SEM_WAIT || e->op == SBT_TRACE_SEM_TRYWAIT || e->op == SBT_TRACE_FUTEX_WAIT) &&
           rep_gives_back(r, e);
}
static inline bool rep_gives_permit(const struct rep_report *r, const struct sbt_trace_event *e) {
    return (e->op == SBT_TRACE_SEM_POST || e->op == SBT_TRACE_FUTEX_WAKE) && rep_gives_back(r, e);
}
static inline bool rep_is_shared(unsigned op) {
    return op == SBT_TRACE_RWLOCK_RDLOCK || op == SBT_TRACE_RWLOCK_TRYRDLOCK;
}

/* Is it the end of a thread that was killed, and is not known whether it ran since its last call? */
static inline bool rep_is_unknown(const struct rep_report *r, const struct sbt_trace_event *e) {
    return r->info.completed && !r->info.cpu_is_known && sbt_trace_still_runs(e) &&
           sbt_trace_waits_in(e) == SBT_TRACE_N_OPS;
}

/* ---- wait.c ---- */

struct rep_waited {
    uint32_t thread, object, site, stack;
    enum rep_kind kind;
    uint64_t from_ns, to_ns;
    struct rep_release by; /* thread REP_NONE: not known */
    bool timed_out;        /* no thread ended it: its time was over */
};
/* A wait has ended: sums, pairs, what it kept waiting, the path's and the chains' records. */
void rep_waited(struct rep_walk *w, const struct rep_waited *wait);
void rep_not_waited(struct rep_walk *w, uint32_t thread, uint32_t object, uint64_t ns);
void rep_pair_add(struct rep_walk *w, const struct rep_waited *wait, uint32_t holder, uint32_t holder_site,
                  uint64_t ns);
/* The thread has begun, made by `by`. */
void rep_created(struct rep_walk *w, uint32_t thread, const struct rep_release *by, uint64_t begin_ns);
/* All idle time that is still in the ring. */
void rep_idle_finish(struct rep_walk *w, uint32_t thread);
/* The gift, or in a profile the unlock, with this number; NULL: it is none of the last ones. */
const struct rep_signal *rep_signal_find(struct rep_walk *w, uint32_t object, uint64_t number);
void rep_signal_put(struct rep_walk *w, uint32_t object, struct rep_signal signal);
struct rep_release rep_release_by(const struct rep_signal *signal);
struct rep_detail *rep_detail_of(struct rep_walk *w, uint32_t object);
struct rep_site_use *rep_site_use(struct rep_detail *d, uint32_t site);

/* ---- lock.c ---- */

void rep_acquire(struct rep_walk *w, uint32_t thread, uint32_t object, const struct sbt_trace_event *e,
                 uint64_t from_ns, bool relock);
/* At `at_ns`; the call that releases ends at `end_ns`. */
void rep_release(struct rep_walk *w, uint32_t thread, uint32_t object, uint64_t at_ns, uint64_t end_ns);
/* The same of an unlock that is an event of a profile; `e` has its number. */
void rep_profile_release(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
/* The thread's latest hold of the object; NULL: none. And: it is over, without a word. */
struct rep_held *rep_held_find(struct rep_walker *t, uint32_t object);
void rep_held_drop(struct rep_walker *t, struct rep_held *held);
void rep_begin_hold(struct rep_walk *w, uint32_t thread, uint32_t object, const struct sbt_trace_event *e,
                    uint64_t from_ns, uint64_t to_ns, bool waited);
void rep_trylock_failed(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
/* A call that waits for a lock, and did not get it. */
void rep_lock_failed(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
/* The thread that has the lock at the end of the wait; REP_NONE: not known. */
uint32_t rep_holder(struct rep_walk *w, const struct rep_waited *wait, const struct sbt_trace_event *e);
/* A wait for what is held, of which the time was over: the threads that had it meanwhile have their parts. */
void rep_timed_out(struct rep_walk *w, const struct rep_waited *wait, const struct sbt_trace_event *e);
void rep_poll_end(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
void rep_locks_finish(struct rep_walk *w);

/* ---- own_lock.c ---- */

/* A semaphore or futex that threads use as a lock: the thread has it; and gives it back, by *signal, which gets what is
 * known of the hold. */
void rep_permit_got(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, bool waited);
/* A wait for a futex begins: a thread that was woken there before, and has not given it back, did not get it. Ends. */
void rep_permit_wait(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
void rep_permit_wait_end(struct rep_walk *w, const struct sbt_trace_event *e);
void rep_permit_given(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e, struct rep_signal *signal);

/* ---- event.c: conditions, semaphores, futexes ---- */

void rep_give(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
void rep_cond_begin(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
void rep_cond_end(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
void rep_event_end(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);

/* ---- barrier.c ---- */

void rep_arrive(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
void rep_leave(struct rep_walk *w, uint32_t thread, const struct sbt_trace_event *e);
void rep_barriers_finish(struct rep_walk *w);

/* ---- order.c ---- */

/* `thread` gets `object` while it holds others. */
void rep_order_add(struct rep_walk *w, uint32_t thread, uint32_t object, const struct sbt_trace_event *e);
/* Those of a profile, which the recorder has counted. */
bool rep_orders_of_profile(struct rep_walk *w);
bool rep_circles(struct rep_walk *w);
size_t rep_order_bytes(void); /* of an entry of rep_walk.orders */

#endif
