/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A carrier: a kernel thread of the library that runs fibers, one at a time. The word is Java's (virtual threads). */
#ifndef SBT_SWITCH_CARRIER_H
#define SBT_SWITCH_CARRIER_H

#include "switch/fiber.h"
#include "switch/own_lock.h"
#include "switch/runq.h"

#define SBT_CARRIERS_MAX 64 /* bits of the idle and searching words */

struct sbt_carrier {
    struct sbt_regs regs;         /* of the carrier's loop */
    struct sbt_fiber *leaving;    /* the fiber that is being switched away from, */
    enum sbt_leaving why;         /* and why */
    bool is_leaving;              /* what it runs next is `current`, for good */
    uintptr_t signal_stack;       /* its lowest address (signal_stack.h); 0: it has none */
    bool woke;                    /* it has woken an idle carrier since it last left a fiber; its own */
    bool rests;                   /* it is to rest when it has left its fiber; its own */
    uint32_t skip;                /* occasions to wake a carrier that it skips after a useless wake-up, in all */
    uint32_t skip_left;           /* and still to come; both atomic */
    uint64_t woke_at_ns;          /* when it woke a carrier, in its own CPU time */
    uint32_t idle_sleeps;         /* its sleeps with nothing to run */
    uint32_t sleeps_counted;      /* all sleeps of its kernel thread at the last count */
    uint32_t pops_at_count;       /* its pops at that count; its own */
    uint32_t pops_at_yield;       /* its pops when it last yielded to the kernel; atomic, see sbt_switch_yield */
    uint32_t n_parked;            /* fibers parked here that sbt_n_runnable still counts; its own */
    struct sbt_carrier *found_at; /* the carrier from which it took what it runs, NULL: its own run queue; */
    uint64_t found_ns;            /* when */
    uint32_t in_vain;             /* finds in vain in a row; its own */
    uint32_t robbed_in_vain;      /* finds in vain in a row that other carriers made here; atomic */
    uint32_t tid;                 /* atomic, for the monitor; 0: it has not begun */
    uint32_t cpu;                 /* the CPU on which it last went to sleep; atomic */
    uint64_t mask;                /* its signal mask in the kernel; atomic, its own */
    struct sbt_fiber *chosen;     /* the fiber that it runs next, whatever is in its run queue; its own */
    uint32_t n_in_row;            /* fibers in a row that were chosen; its own */
    uint32_t n_first;             /* of a server: sections in a row that went before those queued there; its own */
    uint32_t pops_at_next;        /* its pops when a fiber that was woken alone last went first; its own */
    uint32_t n_next;              /* such fibers in a row; its own */
    uint32_t held;                /* 1: of a server, which was found to make no progress; atomic, a hint */
    struct sbt_fiber *current;    /* the fiber that it runs, NULL: it is idle; atomic, for the monitor and recalls */

    struct sbt_own_lock lock __attribute__((aligned(64))); /* of the run queue; the carrier is its owner */
    struct sbt_runq queue[SBT_RUNQS];
    uint32_t n;         /* length of all queues; atomic, read without the lock as a hint */
    uint32_t pops;      /* fibers that the carrier itself has taken; atomic: it shows progress */
    uint32_t preferred; /* woken fibers in a row that went before fibers that had yielded */
    uint32_t n_fresh;   /* fresh fibers in a row that went before others that had yielded */
    uint32_t stolen;    /* times that another thread has taken fibers; atomic */
    uint32_t asleep;    /* 1: sleeps on this word, or is about to; atomic */
} __attribute__((aligned(128)));

/* The main function of a carrier's kernel thread. */
void *sbt_carrier_main(void *carrier);

/* The carrier that runs the caller; NULL: none does. */
struct sbt_carrier *sbt_carrier_of_caller(void);

/*
 * Make n fibers runnable that were PARKED and are owned by the caller, each on its server if it is in a section.
 * Between sbt_switch_enter and sbt_switch_leave.
 */
void sbt_carrier_unpark(struct sbt_fiber *first, struct sbt_fiber *last, uint32_t n);

/* The caller owns n fibers that are parked, and that it makes runnable: correct the count of runnable threads. */
void sbt_carrier_count_woken(struct sbt_carrier *x, uint32_t n);

/* Take the fibers that are parked here off the count of runnable threads. */
void sbt_carrier_count_parked(struct sbt_carrier *x);

/* More carriers run fibers than CPUs may be used, and this one is to stop. */
bool sbt_carrier_is_surplus(const struct sbt_carrier *x);

/* Relaxed: the monitor looks twice, and a recall has fences of its own. */
static inline void sbt_carrier_set_current(struct sbt_carrier *x, struct sbt_fiber *f) {
    __atomic_store_n(&x->current, f, __ATOMIC_RELAXED);
}

/*
 * Do what is left to do for the fiber that this carrier has just left: its stack is free only when another stack has
 * been switched to (Linux: finish_task_switch).
 */
void sbt_carrier_finish_switch(struct sbt_carrier *x);

/*
 * By a handler that begins. It may have interrupted its thread between the choice of the next fiber and the switch to
 * it, and may wait for what that fiber does: no carrier would run it before the handler returns.
 */
void sbt_leave_undo(void);
/*
 * The same while the switch itself is under way, where neither the fiber that is left nor the next one can run
 * elsewhere. True: the handler is not to be called; the signal comes again when the switch is over.
 */
bool sbt_leave_put_back(int signal, siginfo_t *info, ucontext_t *context);

#endif
