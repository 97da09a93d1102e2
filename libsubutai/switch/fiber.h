/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fiber: a thread of the program in a form that can be switched. It is a stackful coroutine with its own TLS base.
 *
 * A fiber's token says whether it waits and whether it has been woken. The name is from the permit of Java's
 * LockSupport.
 *
 * | token   | meaning                                | set by                                                 |
 * |---------|----------------------------------------|--------------------------------------------------------|
 * | NONE    | not woken; or woken and made runnable  | the fiber, which consumes TOKEN; a waker, after PARKED |
 * | TOKEN   | woken: the next park returns at once   | a waker                                                |
 * | PARKED  | waits with its registers saved         | from NONE, by code on the stack that was switched to   |
 * | BLOCKED | sleeps in the kernel on this very word | from NONE, by the fiber itself                         |
 *
 * The waker that replaces PARKED by TOKEN owns the fiber from then on, and must make it runnable.
 *
 * Invariants:
 *  - A fiber is in one place: running on its home thread or on a carrier, PARKED, in one run queue, or on its way to
 *    its home thread (home_call is COME). Only the thread that owns it may move it.
 *  - Fibers are never freed, only used again (pool.h). A late wake-up of a fiber that has ended is a spurious wake-up
 *    of the next thread that uses it.
 */
#ifndef SBT_SWITCH_FIBER_H
#define SBT_SWITCH_FIBER_H

#include "os/futex.h"
#include "switch/regs.h"
#include "switch/switch.h"

enum sbt_token { SBT_TOKEN_NONE, SBT_TOKEN_TOKEN, SBT_TOKEN_PARKED, SBT_TOKEN_BLOCKED };

/* The futex word of a parked home thread: what its fiber, or the thread that owns the fiber, asks of it. */
enum sbt_home_call {
    SBT_HOME_NOTHING,
    SBT_HOME_LOOK, /* look at `due` again; set by the fiber itself, which runs on a carrier */
    SBT_HOME_COME  /* run the fiber; set by the thread that owns the fiber */
};

/* Why a fiber is left: what code on the stack that was switched to has yet to do for it. */
enum sbt_leaving {
    SBT_LEAVES_NOTHING,
    SBT_LEAVES_TO_PARK,
    SBT_LEAVES_TO_YIELD, /* queue it behind all other fibers */
    SBT_LEAVES_TO_GO_ON, /* queue it with the fibers that have been woken */
    SBT_LEAVES_FOR_HOME,
    SBT_LEAVES_FRESH /* queue it with those that have got something done since they yielded last */
};

/*
 * Where a fiber stands with its waiter stack. The fiber sets NONE and JOINED, the thread that takes it out of the stack
 * sets the other two. Until the fiber has seen that it is out it joins no other stack, not even in a signal handler.
 */
enum sbt_on_stack {
    SBT_STACK_NONE,
    SBT_STACK_JOINED,
    SBT_STACK_OUT,    /* taken out: the fiber looks at the object again */
    SBT_STACK_COUNTED /* taken out and counted: the fiber does not touch the object again */
};

struct sbt_carrier;

struct sbt_fiber {
    /* What every switch looks at: one cache line. */
    uint32_t token;      /* enum sbt_token, atomic; first, and aligned: its address is the fiber's */
    uint32_t stack_next; /* the fiber that joined before it, in the form of the waiter stack's word (waiter_stack.c) */
    struct sbt_regs regs;
    struct sbt_fiber *next; /* in a run queue, a wake list or the pool; of the thread that owns the fiber */
    /* the carrier that runs it, NULL: its home thread; the fiber's own, atomic for recalls */
    struct sbt_carrier *carrier;
    uint64_t mask;         /* its signal mask when it last left a carrier or its home thread; atomic, the fiber's own */
    uint32_t pinned_waits; /* waits that it is still to spend on its home thread; atomic, set by the monitor */
    uint32_t ticket;       /* the number of the event that it waits for in its waiter stack */
    uint8_t pinned;        /* enum sbt_pin; atomic: other threads set it too */
    uint8_t away;          /* 1: its home thread is parked; atomic, the fiber's own */
    uint8_t on_stack;      /* enum sbt_on_stack; atomic */
    bool dozes;            /* its last wait with a deadline lasted until the deadline; the fiber's own */
    bool interrupted;      /* a recall has ended its wait, which fails with EINTR; of the thread that owns it */
    volatile uint8_t mask_unsure; /* 1: its mask may have changed since; handlers on its own thread set it too */
    uint8_t server;               /* 1 + the number of the server of its section; of the thread that owns it */

    uint32_t home_call __attribute__((aligned(64))); /* enum sbt_home_call, atomic */
    uint32_t pinned_waits_next;                      /* how many pinned_waits the next time gives; the monitor's */
    uint64_t due;                                    /* deadline of its wait; atomic, the fiber's own (due.c) */
    uint64_t armed; /* the deadline that the parked home thread sleeps towards; atomic, the parked home thread's */
    struct sbt_regs home_regs;
    struct sbt_regs scratch; /* where the parked home thread leaves registers that are never loaded */
    char *home_stack;        /* of SBT_HOME_STACK_BYTES, where its parked home thread sleeps; the pool's, for good */
    enum sbt_leaving why;    /* why it leaves its home thread */
    uint64_t duty;           /* signals to the process for which it waits on its home thread (receive.c); its own */
    pthread_t thread;        /* set by the fiber, read by other threads: atomic */
    uint32_t tid;            /* the kernel id of its home thread */
    const void *section;     /* the object of its section, which servers run (serve.h); NULL: none; atomic, as server */
} __attribute__((aligned(64)));

/*
 * Give the token. True: the caller now owns the fiber and must make it runnable. *asleep is false if the fiber was
 * awake: about to wait, or in a signal handler on its home thread.
 *
 * If the caller owns the fiber it takes the token back itself, which spares the fiber an atomic operation. A second
 * waker may have given the token once more in between. Its token is lost, and its wake-up is not: what the second waker
 * did before comes before this store, and the fiber goes on after it and looks at everything again.
 */
static inline bool sbt_token_give(struct sbt_fiber *f, bool *asleep) {
    uint32_t old = __atomic_exchange_n(&f->token, SBT_TOKEN_TOKEN, __ATOMIC_ACQ_REL);
    *asleep = old == SBT_TOKEN_PARKED;
    if (SBT_UNLIKELY(old == SBT_TOKEN_BLOCKED))
        *asleep = sbt_futex_wake(&f->token, 1) > 0;
    if (old != SBT_TOKEN_PARKED)
        return false;
    __atomic_store_n(&f->token, SBT_TOKEN_NONE, __ATOMIC_RELEASE);
    return true;
}

/* Append the fiber, which the caller owns, to the wake list. */
static inline void sbt_wake_list_append(struct sbt_wake_list *list, struct sbt_fiber *f) {
    f->next = NULL;
    if (list->last != NULL)
        list->last->next = f;
    else
        list->first = f;
    list->last = f;
    list->n++;
}

/*
 * Switch away from f, the caller's own fiber, for that reason. Returns when f has been resumed. A fiber that leaves its
 * home thread, or arrives there, makes system calls. Any other switch makes none unless signal masks differ.
 */
void sbt_fiber_leave(struct sbt_fiber *f, enum sbt_leaving why);

/*
 * As sbt_fiber_park(NULL), of the caller's own fiber f. The caller is between sbt_switch_enter and sbt_switch_leave,
 * which this does.
 */
int sbt_fiber_park_entered(struct sbt_fiber *f);

/* As sbt_fiber_park. The caller has no fiber, or the wait is not as usual, or has a deadline. */
int sbt_fiber_park_otherwise(const struct sbt_deadline *deadline);

#endif
