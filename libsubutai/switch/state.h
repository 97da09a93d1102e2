/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of switch/, and how code enters and leaves it.
 *
 * The files carrier, due, fiber, leave, mask, pin, pool, recall, receive, runq, signal_stack and table are one room:
 * they use each other through this state.
 *
 * Everything that a forked child must find empty is in one object, on pages of its own, which the kernel wipes in the
 * child.
 *
 * Lock order: a thread holds at most one lock of switch/ at a time: a table bucket's, a run queue's, the pool's
 * or the recalls'.
 *
 * Signal handlers: while a thread holds one of these locks, or is in the middle of a switch, its sbt_self.in_switch is
 * set.
 *  1. A handler that interrupts the thread there, and wants to wake fibers in the futex table, only sets `deferred`.
 *  2. The interrupted code leaves switch/ later: on the same kernel thread, though perhaps in another fiber.
 *  3. There it finds `deferred`, and wakes every fiber that waits (sbt_switch_deliver).
 * A handler that wakes a fiber by its token sends the fiber to its home thread at once (sbt_fiber_unpark): the handler
 * may last.
 */
#ifndef SBT_SWITCH_STATE_H
#define SBT_SWITCH_STATE_H

#include "core/handlers.h"
#include "switch/carrier.h"
#include "switch/pool.h"
#include "switch/signal_stack.h"
#include "switch/table.h"

/* Bits of no_more. */
#define SBT_SWITCH_NO_MORE 1 /* new threads get no fiber; */
#define SBT_SWITCH_ENDED 2   /* fibers do not leave their home threads */

/* The monitor's table of descriptors. SHARED is left once, for KEPT, or for CLOSING and then OWN. */
enum sbt_descriptors {
    SBT_DESCRIPTORS_SHARED,  /* it is the program's, so far */
    SBT_DESCRIPTORS_CLOSING, /* the monitor takes its own, and closes what it has been given */
    SBT_DESCRIPTORS_OWN,
    SBT_DESCRIPTORS_KEPT, /* it stays the program's: the process may have a notification of a message queue */
};

/* BEGINS: a thread creates it. LEFT: it has ended, or is about to, because the program has one thread. */
enum sbt_has_monitor { SBT_MONITOR_NONE, SBT_MONITOR_BEGINS, SBT_MONITOR_RUNS, SBT_MONITOR_LEFT };

/* How the monitor sleeps: until a fiber is pushed or waits are often, or also until the program has one thread. */
enum sbt_monitor_sleeps { SBT_MONITOR_AWAKE, SBT_MONITOR_SLEEPS, SBT_MONITOR_SLEEPS_UNTIL_ALONE };

struct sbt_switch_state {
    /* Read at every wait and wake-up, written rarely. */
    uint32_t running;    /* 1: there are carriers; atomic */
    uint32_t n_carriers; /* it may grow; atomic */
    uint32_t n_active;   /* as many of them as usable CPUs: the first ones. The others rest; atomic */
    uint32_t deferred;   /* 1: a signal handler could not wake; atomic */
    /* 1: every carrier was found asleep in the kernel, and none has made progress since; atomic, a hint */
    uint32_t all_held;
    /* 1: switching does not pay at present, all fibers wait on their home threads; atomic, a hint */
    uint32_t all_pinned;
    uint32_t quit;      /* 1: the program's last thread has ended; atomic */
    uint32_t decided;   /* 1: a thread is deciding, or has decided, whether to switch; atomic */
    int32_t n_threads;  /* threads of the program beyond the first; atomic */
    uint64_t main_mask; /* signals that the main thread blocks; at first, those that the first creator blocks; atomic */
    struct sbt_lock pool_lock, recall_lock;
    uint32_t pool_used; /* fibers of the pool that have ever been used; written under the lock, read without it */
    /* In a forked child: 1 + the number of the fiber that the forking thread had, which no thread gets here. */
    uint32_t pool_gone;
    struct sbt_fiber *pool_free;
    long process;          /* the process that these fibers belong to; a child of vfork has another id */
    pthread_t main_thread; /* 0: not known */
    uint32_t main_tid;
    uint32_t no_more;       /* SBT_SWITCH_NO_MORE, _ENDED; atomic */
    uint32_t n_judged;      /* how many loaded objects have been judged: the first of the list; atomic */
    uint64_t n_unloads;     /* the number of unloaded objects at that time; atomic */
    uint64_t on_duty;       /* signals for which a fiber is on duty (receive.c); atomic */
    uint32_t main_ended;    /* 1: the main thread has ended; atomic */
    uint32_t signal_stacks; /* 1: carriers have signal stacks; as judged, before there are carriers */
    /* How many carriers there are, and which; written by the thread that starts them, and after that has ended */
    uint32_t n_own; /* atomic */
    pthread_t own[SBT_CARRIERS_MAX];
    uint32_t n_wanted;    /* carriers that are to be active, while some of them do not exist; otherwise 0; atomic */
    uint32_t n_most;      /* more carriers there will not be; atomic */
    uint32_t creating;    /* 1: a thread creates carriers; atomic */
    uint32_t judged;      /* 1: a thread finds out, or knows, whether the program may be switched; atomic */
    uint32_t is_refused;  /* 1: it may not, or carriers cannot be created; atomic, the monitor's */
    uint32_t has_monitor; /* enum sbt_has_monitor; atomic */
    pthread_t monitor;
    uint32_t descriptors; /* enum sbt_descriptors; atomic */

    uint64_t idle __attribute__((aligned(64))); /* a bit for each sleeping carrier; atomic */
    uint64_t searching;                         /* a bit for each searching carrier; atomic */
    uint32_t monitor_sleeps;                    /* enum sbt_monitor_sleeps; futex word; atomic */
    uint32_t pushes;                            /* 1: a fiber was made runnable; relaxed, and updates may be lost */
    uint32_t sleeps;                            /* sleeps of fibers in the kernel, on carriers; atomic */
    uint32_t next_carrier;                      /* the next for a fiber that was made runnable on no carrier; atomic */

    /* For the decision whether switching pays; nothing where that is not asked. */
    uint64_t progress __attribute__((aligned(64))); /* of all threads, as far as they have told; atomic */
    uint64_t n_told;                                /* of waits and yields that threads have told; atomic */
    uint32_t n_first_tells;                         /* threads that have told of their progress; atomic */
    uint64_t n_waits;             /* that are no yields, since n_told was a multiple of SBT_PAYS_WAITS; atomic */
    uint32_t round;               /* of telling: as long as it takes to know `crowded`; atomic */
    uint32_t n_tellers;           /* threads that have told in this round; atomic */
    uint64_t round_began;         /* what n_told was then; atomic */
    uint64_t often_since_ns;      /* when n_told last was such a multiple; atomic */
    uint64_t often_since_used_ns; /* the process's CPU time when that was last read; atomic */
    uint64_t no_share_until_ns;   /* that is not looked at before; atomic, the monitor's */
    uint32_t lacks_told;          /* as sbt_share_lacks, between those readings; atomic */
    uint32_t crowded;             /* 1: more threads have told in a round than CPUs may be used; atomic */
    uint64_t rest_until_ns;       /* nothing is decided before; atomic, the monitor's */
    uint32_t often;               /* not 0: threads wait often (share.c); atomic */
    struct sbt_carrier carrier[SBT_CARRIERS_MAX];
    struct sbt_table_bucket bucket[SBT_TABLE_BUCKETS];
};
extern union sbt_switch_memory {
    struct sbt_switch_state s;
    char pages[(sizeof(struct sbt_switch_state) + SBT_PAGE_MAX - 1) / SBT_PAGE_MAX * SBT_PAGE_MAX];
} sbt_switch_memory SBT_HIDDEN;
#define SBT_SWITCH (&sbt_switch_memory.s)

/* Acquire: the state of a carrier that has been added. */
static inline uint32_t sbt_switch_n_carriers(const struct sbt_switch_state *s) {
    return __atomic_load_n(&s->n_carriers, __ATOMIC_ACQUIRE);
}

/* How --wait wants switching. Set once at start-up. */
extern enum sbt_switch_want sbt_switch_how;

/*
 * May the program be switched, and what care does it need? NULL: yes; otherwise the reason. It reads the tables of all
 * loaded objects: milliseconds where those are many. Blocks for the dynamic linker's lock.
 */
const char *sbt_switch_judge(bool *pins_main);

/* As many carriers as usable CPUs are to be active, and the others to rest. For the monitor. */
void sbt_switch_follow_cpus(void);

/*
 * The monitor would leave, because the program has one thread. True: it must return at once. False: there are more
 * threads again. For the monitor, while there are no carriers.
 */
bool sbt_switch_monitor_leaves(void);

/* Create the carriers that are wanted, if x is the last that exists. For x itself, while it runs no fiber. */
void sbt_switch_add_carriers(struct sbt_carrier *x);

/* Start the carriers, if that has not been done. False: they cannot be created. For the monitor, or before it is. */
bool sbt_switch_start_carriers(void);

/*
 * Around locks and switches; they nest. Only a handler on the same thread depends on the order, so compiler fences
 * suffice.
 */
static inline void sbt_switch_enter(void) {
    sbt_self.in_switch++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Make the wake-ups that handlers deferred. The caller holds no lock of switch/. */
void sbt_switch_deliver(void);

static inline bool sbt_switch_has_deferred(void) {
    return __atomic_load_n(&SBT_SWITCH->deferred, __ATOMIC_RELAXED) != 0;
}

/* in_switch is 0 already if a handler has forked and this is the child. */
static inline void sbt_switch_leave(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_LIKELY(sbt_self.in_switch != 0))
        sbt_self.in_switch--;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY(sbt_switch_has_deferred() && sbt_self.in_switch == 0))
        sbt_switch_deliver();
}

/*
 * May the caller's fiber not leave the kernel thread that it is on? It may not in a handler that interrupted its thread
 * inside switch/, or that runs on a carrier's signal stack. Such a handler polls instead of waiting.
 */
static inline bool sbt_switch_is_fixed(void) {
    return SBT_UNLIKELY(sbt_self.in_switch != 0) || SBT_UNLIKELY(sbt_signal_stack_is_here(sbt_self.fiber));
}

/*
 * Lock and unlock one of the locks above, between enter and leave. The program's signal handlers are deferred in
 * between: other threads need the lock, whatever the handler does with this thread.
 */
static inline void sbt_switch_lock(struct sbt_lock *lock) {
    sbt_handlers_hold();
    sbt_lock_take(lock);
}

static inline void sbt_switch_unlock(struct sbt_lock *lock) {
    sbt_lock_drop(lock);
    sbt_handlers_release();
}

#endif
