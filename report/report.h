/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the time of a recorded program went: the analysis of a trace. docs/report.md defines each figure; the members
 * here have the names of its JSON document where they are the same figure.
 *
 * The library reads a trace by trace.h and computes. It prints nothing and knows no names: objects, threads and sites
 * are the trace's numbers. Times are nanoseconds since the trace began. Memory is bounded: REP_MOST_* say by what, and
 * `dropped` says what was left out. Nothing here blocks. One call runs on the caller's thread.
 *
 * Sources: the share of time in sections is the metric of the profiler of remote core locking (Lozi et al., USENIX ATC
 * 2012); the split of barriers is the release-delay figure of France-Pillois et al.; the critical path by wakers is the
 * walk of wait chains from the end of the program backwards (Alexander et al., IPDPS 2010; Chen and Stenstrom, SC
 * 2012).
 */
#ifndef REP_REPORT_H
#define REP_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"
#include "trace.h"

#define REP_NONE UINT32_MAX /* no object, thread, site, group or detail */
#define REP_CALL_NS 10      /* what a call of a free lock is taken for, without the recorder's time */

/* What a thread waits for. */
enum rep_kind {
    REP_MUTEX,
    REP_RWLOCK,
    REP_SPIN,   /* and mutexes and spin locks that are polled by trylock */
    REP_RELOCK, /* the mutex, after the signal that ended a wait on a condition */
    REP_COND,
    REP_SEM,
    REP_FUTEX,
    REP_BARRIER,
    REP_JOIN,
    REP_N_KINDS
};
const char *rep_kind_name(unsigned kind); /* "mutex", ...; NULL: there is none with that number */

struct rep_sum {
    uint64_t n, ns;
};

struct rep_sections {
    uint64_t ns;      /* with the waits before the holds and the unlocks after them; sections within sections once */
    uint64_t held_ns; /* at least one lock held */
};

/* Of one thread, and of all threads. */
struct rep_times {
    uint64_t life_ns, cpu_ns, off_cpu_ns, calls_ns;
    uint64_t outside_ns; /* of off_cpu_ns, in calls that waited for other processes, devices or time */
    /* For how long it could have run and had no core, as the kernel has counted it; and what of off_cpu_ns was that.
     * The rest of queued_ns is in waits that had ended, and in calls. */
    uint64_t queued_ns, no_core_ns;
    uint64_t wakeup_ns;  /* in waits, behind the calls that ended them; and in calls that waited for nothing */
    uint64_t unknown_ns; /* since its last call, if the program was killed: work, or off the processor */
    uint64_t idle_ns;
    uint64_t as_lock_ns; /* of waits for semaphores and futexes, for those that are locks */
    struct rep_sections sections;
    struct rep_sum waiting[REP_N_KINDS];
};

/* The wait that a thread was in when the trace ended. The recorder of older traces did not say at what. */
struct rep_unended {
    uint64_t since_ns, ns;
    uint32_t object, site, other; /* other: of a join, the thread; REP_NONE: not known */
    uint32_t holder;              /* of a lock that a thread has; REP_NONE: not known, as in profiles */
    uint8_t kind;                 /* enum rep_kind; REP_N_KINDS: it was in none */
};

struct rep_thread {
    uint64_t begin_ns, end_ns, n_events; /* begin: its creation, if that is known */
    uint64_t path_ns, path_off_ns;       /* on the critical path; of that, off the processor between calls */
    bool still_runs;                     /* when the trace ended */
    bool queued_is_known;                /* times.queued_ns is */
    uint64_t guessed_ns;          /* work since its last call, if the program was killed: a share of all threads' */
    uint32_t creator, created_at; /* thread and site; REP_NONE: not known */
    struct rep_unended unended;
    struct rep_times times;
};

struct rep_site_use {
    uint32_t site;
    struct rep_sum wait, hold;
    uint64_t hold_work_ns;
};

enum { REP_MOST_SITES = 24 }; /* call sites of an object that are told apart */

/* One barrier's generations. */
struct rep_barrier_thread {
    uint32_t thread;
    uint64_t n, n_last, n_first, late_ns;
    uint64_t left_ns;     /* when it left the last generation; 0: it has not */
    uint64_t left_off_ns; /* how long it had been off the processor by then */
    struct rep_histogram delay;
};

struct rep_generation {
    uint64_t number, first_ns, last_ns, end_ns;
    uint32_t last_thread;
};

enum { REP_WORST = 8 };

struct rep_barrier {
    uint32_t object, count; /* count: 0 if not known */
    uint64_t n_generations;
    uint64_t balance_ns; /* by how much the last thread's work between generations was longer than the mean of all */
    /* Generations of which the last thread was off the processor for most of that; their parts of the sums. */
    uint64_t n_stalled, stalled_ns, stalled_imbalance_ns, longest_stall_ns;
    uint32_t stalled_thread; /* of the longest */
    struct rep_histogram imbalance, release, delay;
    struct rep_barrier_thread *threads;
    uint32_t n_threads, capacity;
    struct rep_generation worst[REP_WORST];
    unsigned n_worst;
};

struct rep_convoys {
    uint64_t n, n_acquisitions, ns, longest, held_ns, handover_ns;
    unsigned n_threads; /* in the convoy with the most; more than 64 count as 64 */
};

/* What is kept of the objects that matter most. */
struct rep_detail {
    uint32_t object;
    uint32_t longest_stack; /* the call stack of its longest wait; 0: none was taken */
    struct rep_histogram wait, hold;
    struct rep_site_use sites[REP_MOST_SITES];
    unsigned n_sites;
    struct rep_convoys convoys;
    struct rep_sum held_off_cpu; /* holds of which the thread ran for less than half */
    struct rep_barrier *barrier; /* NULL: it is none */
    struct rep_rings *rings;     /* the analysis's own */
};

/* What the critical path has of an object. */
struct rep_path_part {
    uint64_t held_ns, wakeup_ns, waiting_ns, calls_ns;
};

struct rep_object {
    uint8_t type; /* enum sbt_trace_type */
    bool made_by_init;
    bool gives_back;   /* a semaphore or futex that is a lock: a thread that has waited there gives it back */
    bool beside_lock;  /* a futex at which the readers of such a lock wait */
    bool turns;        /* a condition at which threads wait for their interpreter's lock (struct rep_region) */
    bool unclear;      /* a futex that may be a lock, or not */
    bool counts_holds; /* a profile's semaphore: all holds are in its tallies */
    uint32_t made;     /* site of its init, or of its first use */
    uint32_t group, detail;
    uint32_t size;  /* of a barrier, its count; of a semaphore, its initial value */
    uint32_t mutex; /* of a condition: the mutex of its last wait */
    uint64_t made_ns;
    uint64_t n, n_contended, n_failed, calls_ns;
    uint64_t n_signals, n_broadcasts;
    uint64_t n_woken_by_signal, n_woken_by_broadcast, n_futile_signal, n_futile_broadcast;
    struct rep_sum timed_out; /* of the waits, those of which the time was over */
    uint64_t wait_ns, wait_max_ns, hold_n, hold_ns, hold_max_ns;
    /* Work while it was held, and the holds of which that is known: in a profile, those that had waited. */
    uint64_t hold_work_ns, known_hold_ns, n_known_holds, n_long_holds;
    uint64_t handover_ns, section_ns, idle_ns;
    uint64_t unseen_ns, unseen_gap_ns; /* holds of a futex lock that no call began, and the gaps in which they were */
    uint64_t polls, poll_ns;           /* failed trylocks in a row, and the processor time that they took */
    struct rep_path_part path;
};

struct rep_group {
    uint8_t type;
    uint32_t made;
    uint64_t n_objects, n, n_contended, wait_ns, hold_ns, calls_ns, path_ns;
};

/*
 * A thread waited for another one; holder REP_NONE: it is not known which. timed_out, 0 or 1: until the wait's time was
 * over. The holder is then the thread that had the lock meanwhile, or that was to be joined; REP_NONE: nothing came.
 */
struct rep_pair {
    uint32_t waiter, holder, object, kind, timed_out;
    struct rep_sum sum;
};

/* The same by call sites. */
struct rep_site_pair {
    uint32_t object, waiter_site, holder_site, kind, timed_out;
    struct rep_sum sum;
};

enum { REP_MOST_LINKS = 4 };

struct rep_chain {
    struct {
        uint32_t object, site, kind;
    } link[REP_MOST_LINKS];
    uint32_t n_links;
    struct rep_sum sum;
};

struct rep_order {
    uint32_t held, taken, held_site, taken_site;
    uint32_t thread; /* the first one that made this order */
    uint32_t stack;  /* the call stack of one time at these sites, where the second lock was taken; 0: none was taken */
    bool several;    /* so did other threads */
    bool held_shared, taken_shared; /* for reading, each time */
    uint64_t n;
};

struct rep_circle {
    const struct rep_order *order[REP_MOST_LINKS];
    unsigned n;
};

/* A piece of the critical path. It begins with a wait of `thread`, from the moment when the waker ended it. */
struct rep_segment {
    uint64_t from_ns, to_ns;
    uint32_t thread;
    uint32_t object; /* of that wait; REP_NONE: thread creation, join, or the path's beginning */
    uint8_t kind;    /* enum rep_kind; REP_N_KINDS: no wait */
};

struct rep_path {
    uint64_t ns;
    uint64_t work_ns, off_cpu_ns, calls_ns, held_ns, wakeup_ns, waiting_ns, unknown_ns;
    uint64_t kind_ns[REP_N_KINDS]; /* of wakeup_ns and waiting_ns, by what was waited for */
    uint64_t *site_ns;             /* [site]: of held_ns by where the lock was taken, of the others by the call */
    struct rep_segment *segments;  /* in order of time */
    size_t n_segments;
};

/* Of a profile: OpenMP tasks with that function. */
struct rep_task {
    uint32_t site;      /* in the function; REP_NONE: not known */
    struct rep_sum sum; /* without the tasks that its thread ran meanwhile, and without waits for tasks */
    uint64_t max_ns;
};

enum rep_cause {
    REP_DEADLOCK,
    REP_LOCK_ORDER,
    REP_HOT_LOCK,
    REP_CONVOY,
    REP_LOCK_OVER_IO,
    REP_BARRIER_IMBALANCE,
    REP_BARRIER_RELEASE,
    REP_BARRIER_STALL,
    REP_BROADCAST_STORM,
    REP_FUTILE_WAKEUPS,
    REP_FALSE_SPIN,
    REP_MANY_LOCKS,
    REP_INTERPRETER_LOCK,
    REP_IDLE,
    REP_OFF_CPU,
    REP_TOO_MANY_THREADS,
    REP_SERIAL,
    REP_N_CAUSES
};
const char *rep_cause_name(unsigned cause); /* "lock-order", ... */

enum rep_unit { REP_SHARE, REP_NS, REP_COUNT, REP_RATIO };
enum rep_basis {
    REP_BASIS_NONE,
    REP_BASIS_PATH,    /* a bound */
    REP_BASIS_COUNTED, /* calls, at REP_CALL_NS each: those of locks that are in no cache take longer, so no bound */
    REP_BASIS_SIMULATED
};

/* The figure of a lock for which threads wait, but not those of the critical path, which sleep. */
#define REP_SECTION_SHARE "section_share"

struct rep_advice {
    enum rep_cause cause;
    uint32_t object, group, thread, site; /* what it is about; site: the call site that matters most */
    uint32_t objects[REP_MOST_LINKS];
    unsigned n_objects;
    const char *figure; /* its name */
    enum rep_unit unit;
    double value;
    enum rep_basis basis;
    double gain_ns;
    const char *unsimulated;         /* why it was not simulated, in a few words; NULL: it was, or was not to be */
    const struct rep_circle *circle; /* REP_LOCK_ORDER */
};

enum { REP_MOST_ADVICE = 16 };
enum { REP_LEAST_POLLS = 3 }; /* failed trylocks in a row that are polling; fewer: the thread does something else */

struct rep_report {
    struct sbt_trace_info info;
    const char *empty; /* why there is nothing to report; NULL: there is */
    uint64_t wall_ns;
    uint32_t n_live;     /* threads that have events */
    uint32_t n_guessed;  /* of these, those with guessed_ns */
    uint32_t n_queued;   /* of these, those of which times.queued_ns is known */
    struct rep_sum rest; /* a profile: acquisitions and holds of objects for which the recorder had no room */
    struct rep_times times;
    struct rep_sum unended;     /* waits of threads that were in them when the trace ended; parts of `times` */
    struct rep_thread *threads; /* [info.n_threads] */
    struct rep_object *objects; /* [info.n_objects] */
    struct rep_detail *details;
    uint32_t n_details;
    struct rep_group *groups;
    uint32_t n_groups;
    struct rep_pair *pairs; /* the most time first, as all that follow */
    struct rep_site_pair *site_pairs;
    struct rep_chain *chains;
    size_t n_pairs, n_site_pairs, n_chains;
    struct rep_order *orders;
    struct rep_circle *circles;
    size_t n_orders, n_circles;
    struct rep_task *tasks;
    size_t n_tasks;
    struct rep_path path;
    struct rep_advice advice[REP_MOST_ADVICE];
    unsigned n_advice;
    struct {
        uint64_t waits, pairs, orders, chains;
    } dropped;
};

/* Called now and then with the part of the work that is done, 0 to 1. NULL: not wanted. */
typedef void rep_progress(void *to, double done);

/* A part of the program's memory, its first byte and its length. */
struct rep_region {
    uint64_t address, size;
};

/*
 * NULL and *error: the trace is damaged, or there is no memory (offset 0). The trace must stay open for as long as the
 * report lives, since info's texts are the trace's. `turns`: the conditions there are the lock of an interpreter, as
 * CPython's, of which the trace alone does not tell that it is one; size 0: none are.
 */
struct rep_report *rep_analyse(const struct sbt_trace *trace, struct rep_region turns, rep_progress *progress, void *to,
                               struct sbt_trace_error *error);
void rep_free(struct rep_report *report);

/* Sums over kinds. Waits for semaphores and futexes that are locks are contention. */
uint64_t rep_contention_ns(const struct rep_times *times);
uint64_t rep_event_waits_ns(const struct rep_times *times); /* conditions, semaphores, futexes: idle or not */
/* Life without idle waits and joins, at least 1. */
uint64_t rep_active_ns(const struct rep_times *times);
/* Where there are too many threads: how many to try. */
unsigned rep_fewer_threads(const struct rep_report *report);
uint64_t rep_path_of(const struct rep_object *object);
/* Are its holds those alone that began with a wait? A free futex is taken without a call, and some profiles do not time
 * holds of semaphores. */
bool rep_holds_waited(const struct rep_report *report, const struct rep_object *object);

#endif
