/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the engine det keeps: of a run of a process (a round), of its threads, and of the calling thread (det.h). */
#ifndef SBT_ENGINE_DET_ROUND_H
#define SBT_ENGINE_DET_ROUND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/det/nap.h"
#include "engine/det/schedule.h"
#include "engine/det/turn.h"
#include "os/lock.h"

/* The kinds of operations. */
enum det_op {
    DET_MUTEX_LOCK = SCHEDULE_MUTEX_LOCK,
    DET_MUTEX_TRYLOCK = SCHEDULE_MUTEX_TRYLOCK,
    DET_MUTEX_UNLOCK = SCHEDULE_MUTEX_UNLOCK,
    DET_COND_WAIT = SCHEDULE_COND_WAIT,
    DET_COND_SIGNAL = SCHEDULE_COND_SIGNAL,
    DET_COND_BROADCAST = SCHEDULE_COND_BROADCAST,
    DET_BARRIER = SCHEDULE_BARRIER,
    DET_READ_LOCK = SCHEDULE_READ_LOCK,
    DET_READ_TRYLOCK = SCHEDULE_READ_TRYLOCK,
    DET_WRITE_LOCK = SCHEDULE_WRITE_LOCK,
    DET_WRITE_TRYLOCK = SCHEDULE_WRITE_TRYLOCK,
    DET_RWLOCK_UNLOCK = SCHEDULE_RWLOCK_UNLOCK,
    DET_SEM_WAIT = SCHEDULE_SEM_WAIT,
    DET_SEM_TRYWAIT = SCHEDULE_SEM_TRYWAIT,
    DET_SEM_POST = SCHEDULE_SEM_POST,
    DET_SPIN_LOCK = SCHEDULE_SPIN_LOCK,
    DET_SPIN_UNLOCK = SCHEDULE_SPIN_UNLOCK,
    DET_ONCE = SCHEDULE_ONCE,
    DET_CREATE = SCHEDULE_CREATE,
    DET_BEGIN = SCHEDULE_BEGIN,
    DET_END = SCHEDULE_END,
    DET_JOIN = SCHEDULE_JOIN,
    DET_DETACH = SCHEDULE_DETACH,
    DET_CANCEL = SCHEDULE_CANCEL,
    DET_YIELD = SCHEDULE_YIELD,
    DET_SLEEP = SCHEDULE_SLEEP,
    DET_LEAVE = SCHEDULE_LEAVE,
    DET_FORK = SCHEDULE_FORK,
    DET_GIVE_UP = SCHEDULE_GIVE_UP,
    DET_SOFT_BARRIER = SCHEDULE_SOFT_BARRIER,
    DET_PCS = SCHEDULE_PCS,
    DET_FUTEX_WAIT = SCHEDULE_FUTEX_WAIT,
    DET_FUTEX_WAKE = SCHEDULE_FUTEX_WAKE,
    DET_FUTEX_REQUEUE = SCHEDULE_FUTEX_REQUEUE
};

/* What waiting threads saw last, and since when it has been so. */
struct det_look {
    uint32_t holder;
    uint64_t logical, since_ns; /* 0: no look */
    uint32_t on;                /* the kernel thread on which the holder ran then; 0: not known */
    uint64_t cpu_ns;            /* and its CPU time */
    struct det_nap nap;         /* the first look since which it may wait in the kernel; `on` 0: none */
};

/* Of a blocked thread: it goes on without the turn when it is woken (release.c). */
enum det_release { DET_NEEDS_TURN, DET_GOES_ON, DET_RELEASED };

/* One run of one process. A forked child begins it anew. */
struct det_round {
    struct turn turn;
    struct sbt_lock lock;      /* over `turn`, but for what its holder reads and changes alone: `now`, `next_due` */
    struct det_look look;      /* under the lock */
    uint32_t generation;       /* the fork generation, plus 1; 0: not begun */
    uint32_t n_creating;       /* creations under way; atomic */
    uint32_t sleeps_off;       /* 1: the holder waits until the kernel's time is as far as logical time; atomic */
    uint32_t n_lookers;        /* threads that look for stalls; atomic */
    uint32_t n_objects;        /* that have a number; the holder's */
    uint32_t n_cancelled;      /* threads that have been cancelled and have not ended; the holder's */
    uint64_t n_ops, hash;      /* of the schedule; the holder's */
    long process;              /* its id */
    uint32_t told;             /* its end: det.c; atomic */
    uint32_t told_stuck;       /* has a deadlock been told of (stall.h)? Atomic, written under the lock */
    uint32_t live;             /* deadlock.c: the last thread that was found to be able to go on; under the lock */
    bool is_watched;           /* operations take the slow way: for the log, hints or a cancellation; the holder's */
    bool is_logged;            /* atomic; relaxed: what is written after the end of the log is dropped */
    bool is_hinted;            /* operations are looked at for hints (hints.h); the holder's */
    bool is_timed;             /* the log has times; set before there is a second thread */
    struct det_newcomer {      /* the last thread that came from nowhere; under the lock */
        const uint32_t *in_op; /* its det_self.in_op; NULL: there was none */
        uint32_t number;
        uint64_t first; /* logical time of its first turn, plus 1; 0: it has not had one */
    } newcomer;
    uint32_t n_newcomers; /* threads from nowhere that are to come into the round behind that one; atomic */
    uint64_t n_outside;   /* returns at a point that the outside decided; under the lock */
    uint64_t n_futexes;   /* operations on futexes; the holder's */
    struct det_thread {
        uint32_t words[2];   /* what the thread sleeps on until it has the turn: det_word */
        uint32_t waits;      /* 1: the thread is in a wait for the turn, which it may have got */
        uint32_t looks;      /* 1: the thread is kept waiting, and looks for stalls while it sleeps; atomic */
        uint32_t alias;      /* plus 1: a guest sleeps on that thread's word, the interrupted one's; 0: none; atomic */
        uint32_t generation; /* of the round in which the creator made this record */
        uint32_t is_new;     /* 1: its creation is under way, and it cannot have the turn; atomic */
        uint32_t handlers_before; /* what det_self.handlers counted when its last wait began; under the lock */
        const uint32_t *in_op;    /* the thread's det_self.in_op; NULL: it has not begun; atomic */
        uint32_t tid;             /* the kernel thread that was created with it; 0: not known; atomic */
        uint32_t release;         /* enum det_release; atomic */
        uint64_t released_ns;     /* logical time then; written before `release` */
        struct det_offer {
            void *object;
            uintptr_t site;
            enum det_op op;
            int result; /* by the thread that performs it */
        } offer;
        struct sbt_adapt adapt;
        uintptr_t site;    /* of its last operation, where operations are watched; 0: not known; atomic */
        uintptr_t routine; /* where it begins; 0: not known, or the main thread */
        pthread_t handle;
        bool has_handle;
        uint32_t futex;    /* the object of its wait (futex.c); the holder's */
        uint8_t awaits;    /* enum det_op, while it is blocked: for what; under the lock */
        bool is_detached;  /* the number is free when the thread has ended; the holder's */
        bool is_cancelled; /* its next cancellation point acts; the holder's */
    } thread[TURN_THREADS];
} __attribute__((aligned(SBT_PAGE_MAX))); /* pages of its own, which a child gives back */
extern struct det_round det_round[1];

/*
 * A child's threads sleep on other words than the parent's:
 *  1. A handler interrupts a thread asleep, forks, and in the child creates a thread, which gets the same number.
 *  2. The handler returns in the child, and the kernel restarts the sleep. That must end, whatever the new thread does.
 */
static inline uint32_t *det_word(uint32_t number) {
    return &det_round->thread[number].words[det_round->generation % 2];
}

/* Of a thread that has no number now. Never the holder, which TURN_NO_THREAD may be. */
#define DET_NO_NUMBER (UINT32_MAX - 1)

/* Of in_op: the thread has the turn for a creation, and loses it if it sleeps in the kernel. */
#define DET_CREATES 2

/*
 * While a thread is blocked or outside, the operations of its signal handlers are a guest's: what it was before.
 */
struct det_aside {
    uint32_t number, waiting;
    bool is_guest, is_absent;
};

/* So many times that a clock has shown at one logical time, the first ones, are kept. */
#define DET_EARLIER 3

struct det_self {
    uint32_t number;     /* DET_NO_NUMBER: of no thread of the round, or its thread is blocked or outside */
    uint32_t waiting;    /* plus 1: the number of the thread that is blocked or outside; 0: it is not */
    uint32_t generation; /* of the round in which that is so */
    uint32_t offers;  /* plus 1: the number of the thread, which has offered an operation and stands aside; 0: none */
    uint32_t in_op;   /* 1: it looks whether it has the turn, or has it for an operation; DET_CREATES; atomic */
    uint32_t n_inner; /* operations under way inside of that one */
    const uint32_t
        *handlers;       /* sbt_self.handlers_running; found by in_op, while the thread is blocked; under the lock */
    uint32_t tid_before; /* while it creates: of its record */
    uint32_t in_pcs;     /* performance-critical sections that it is in */
    const struct det_hint *hint; /* for when the operation passes the turn (hints.h); NULL: none */
    bool creates;                /* it is in the C library's pthread_create; counts as one of n_inner */
    bool unwinds;                /* it is in libgcc's unwinder, for this library: what that calls is no operation */
    uint32_t n_within;           /* mutexes that it holds there */
    bool is_guest;
    bool is_absent;      /* the thread `waiting`: a handler has made an operation and the thread has not looked since */
    bool is_ended;       /* what follows is in the last destructors, or in exit handlers: a guest's operations */
    bool is_exiting;     /* a cancellation has been acted upon: further ones do nothing */
    bool is_out;         /* it is outside because of a hint, and in no call: its next operation is not a guest's */
    bool in_fork;        /* it has the turn until the fork has been made */
    uint64_t last_ns;    /* logical time of its last operation */
    uint64_t arrived_ns; /* with times in the log: when it began to wait for the turn; 0: it did not */
    bool has_handled;    /* of a wait with `looks_again`: a handler has run */
    bool is_new;         /* it came from nowhere, and has not had a turn */
    bool has_gone_on;    /* its last wait has ended without the turn */
    bool is_restarted;   /* of its last such wait: it was interrupted by a handler that restarts system calls */
    uint32_t n_restarts, n_interrupts; /* handlers that it was told of: that restart system calls, and others */
    uint64_t read_since_ns;            /* with --serial: last_ns when it counted the first of */
    uint32_t n_readings;               /* its readings of clocks */
    uint64_t looked_since_ns;          /* last_ns when it counted the first of */
    uint32_t n_looks;                  /* its looks for the outside without a wait */
    struct det_reading {
        int64_t at_ns; /* what the clock has shown */
        uint64_t ns;   /* logical time then, plus 1; 0: it has not been read, or a handler interrupts the reading */
        struct det_effort {
            int64_t cpu_ns, n_sleeps; /* of the kernel thread then: CPU time, waits in the kernel */
        } effort;
    } reading[2]; /* CLOCK_REALTIME, CLOCK_MONOTONIC */
    struct det_earlier {
        uint64_t ns; /* logical time, plus 1, at which the clock has shown these times, and then other ones */
        uint32_t n;
        int64_t at_ns[DET_EARLIER];
    } earlier[2];
    struct det_due {
        uint64_t ns;      /* logical time when its wait ended by its deadline, plus 1; 0: none has */
        int64_t cpu_ns;   /* its CPU time then */
        int64_t at_ns[2]; /* the deadline, as those clocks show it; 0: not known, or shown */
    } due;
};
extern _Thread_local struct det_self det_self __attribute__((tls_model("initial-exec")));

#endif
