/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The calling thread's own record, and the count of runnable threads.
 *
 * The record is initial-exec thread-local storage and all-zero is its valid initial state: it works in constructors
 * that run before ours, in threads that were not made by our pthread_create, and in TSD and TLS destructors that run
 * after our clean-up. Nothing here allocates or blocks.
 */
#ifndef SBT_CORE_THREAD_H
#define SBT_CORE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arch.h"

struct sbt_context;

struct sbt_thread {
    /* What waiting and waking look at: one cache line. */
    struct sbt_context *context; /* what switch/ knows this thread by, NULL: it is not switched */
    const void *trylock_last;
    const void *woken_by;     /* condition, whose signal has ended a wait; this thread has made none since */
    const void *spun_outer;   /* mutex that this thread has got by trylock, where others spin, and not unlocked since */
    volatile uint32_t in_lot; /* > 0 while this thread holds a lock of the parking lot; a signal handler looks at it */
    volatile uint32_t overdue;       /* a signal handler could not wake through the lot: whoever leaves the lot must */
    volatile uint32_t handlers_held; /* > 0: signal handlers are put off (core/handlers.h), as in the lot, */
    volatile uint32_t handlers_put_off; /* and some are */
    volatile uint32_t in_switch;        /* > 0 inside switch/, likewise; switch/ remembers what is overdue */
    uint32_t held;                      /* > 0: stays on its own kernel thread (sbt_switch_hold_home), context or not */
    uint32_t passed_over;               /* unlocks of mutexes that left sleepers asleep because somebody comes */
    uint32_t tid;                       /* kernel thread id, 0: not read yet (sbt_thread_tid) */

    uint32_t trylock_fails;      /* consecutive failed trylocks of `trylock_last` */
    uint32_t spun_inner;         /* unlocks of others while it holds `spun_outer` */
    uint32_t random;             /* xorshift state, 0: not seeded */
    uint16_t woken_after;        /* so many switches, by `woken_by` */
    uint8_t crowded;             /* its last yields, in a row, that gave the core to somebody else (wait/adapt.c) */
    bool has_loaded;             /* code that is yet to be judged (switch/later.c) */
    bool counted;                /* its root frame tells switch/ of its end */
    volatile uint8_t stays_home; /* enum sbt_stays (switch/switch.h) */
} __attribute__((aligned(64)));

extern _Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));

/* Kernel thread id of the caller, cached; right in a forked child too. One system call at most. */
uint32_t sbt_thread_tid(void);

/*
 * A page that the kernel zeroes in a forked child: that is how a child notices that it is one, whichever of fork,
 * _Fork and clone made it, before any atfork handler. `known` is the generation and 1 from the start of the library on.
 */
extern union sbt_thread_process {
    uint32_t known;
    char page[SBT_PAGE_MAX];
} sbt_thread_process;
void sbt_thread_fork_noticed(void);

/* How often a process was forked on the way to this one since the library started: other than in the parent. */
static inline uint32_t sbt_thread_process_generation(void) {
    if (SBT_UNLIKELY(sbt_thread_process.known == 0))
        sbt_thread_fork_noticed();
    return sbt_thread_process.known - 1;
}

/*
 * How many threads of the process are neither parked by us, nor joining, nor ended. Threads blocked in the kernel by
 * other means count as runnable, so the number errs towards "too many", that is, towards not spinning.
 * Relaxed everywhere: it steers waiting and decides nothing.
 */
extern uint32_t sbt_n_runnable;
extern uint32_t sbt_n_cpus; /* CPUs that the process may use, at least 1 */

static inline void sbt_runnable_add(int n) {
    __atomic_fetch_add(&sbt_n_runnable, (uint32_t)n, __ATOMIC_RELAXED);
}

static inline bool sbt_cores_to_spare(void) {
    uint32_t n = __atomic_load_n(&sbt_n_runnable, __ATOMIC_RELAXED);
    return (int32_t)n <= (int32_t)sbt_n_cpus;
}

/*
 * In a forked child, whose only thread is the caller. True if the kernel did not wipe what it should have: then the lot
 * must be forgotten by hand.
 */
bool sbt_thread_fork_child(void);

/* Does the kernel wipe memory in forked children (MADV_WIPEONFORK)? */
bool sbt_thread_wipes_on_fork(void);

/* Called once by core/init.c. */
void sbt_thread_start(void);

#endif
