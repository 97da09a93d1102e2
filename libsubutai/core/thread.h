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

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/arch.h"
#include "os/fork.h"

struct sbt_fiber;
struct sbt_waiter;

struct sbt_thread {
    /* What waiting and waking look at: one cache line. */
    struct sbt_fiber *fiber;        /* the thread's fiber (switch/fiber.h), NULL: it has none */
    struct sbt_waiter *waiter;      /* other threads may rely on it to look (sbt_lot_relied_on), NULL: they do not */
    volatile uint32_t in_lot;       /* > 0: it holds a bucket of the parking lot; a signal handler looks at it */
    volatile uint32_t owes_wakeups; /* a signal handler could not wake through the parking lot: this thread must when it
                                       leaves the lot */
    volatile uint32_t handlers_held;     /* > 0: signal handlers are deferred (core/handlers.h) */
    volatile uint32_t handlers_deferred; /* 1: some are deferred and wait to run */
    volatile uint32_t in_switch;         /* > 0: inside switch/, which remembers deferred wake-ups (switch/state.h) */
    uint32_t pin_held; /* > 0: it stays on its own kernel thread (sbt_pin_hold), with a fiber or without */
    uint32_t tid;      /* kernel thread id, 0: not read yet (sbt_thread_tid) */

    /* For the decision whether switching pays (switch/pays.h): sbt_progress, and what other threads know of it */
    uint32_t progress, progress_told;
    uint32_t progress_sure;     /* sbt_progress_surely: what progress was at that time */
    uint32_t progress_yielded;  /* what it was at the last yield that the program asked for */
    uint32_t n_waits, n_yields; /* that a switch would have made cheaper */
    uint32_t told_round;        /* in which round of telling the caller was counted last (switch/state.h) */
    uint32_t handlers_running;  /* that have begun and not returned; one that has left by a jump counts on; atomic */

    bool in_cancellation; /* the C library's handler of a cancellation runs, or the thread ends by it */
    bool of_site;         /* created by a library with sites (core/sites.h) */
    bool has_yielded;     /* it has called sched_yield since its last wait on a futex */
    uint8_t spare_yields; /* that may be left out before its next one (wait/yield_gate.h) */
    bool has_loaded;      /* it has loaded code that is not judged yet (switch/eligibility_dynamic.c) */
    volatile uint8_t pin; /* enum sbt_pin (switch/switch.h) */
} __attribute__((aligned(64)));

extern _Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));

/* The caller's kernel thread id. It is cached, and right in a forked child too. One system call at most. */
uint32_t sbt_thread_tid(void);

/*
 * Where glibc keeps its own copy of a thread's id, in bytes from the thread pointer; 0: not known. Written once, by
 * sbt_thread_learn.
 */
extern intptr_t sbt_thread_copy_at;

/*
 * The id under which the caller owns recursive and error-checking mutexes and write locks: the id that glibc would
 * write. In a child of vfork or of a raw clone that is not the kernel's id. There glibc keeps the parent's id, until
 * the program writes another id into glibc's copy. Sandboxes read it back from a mutex.
 */
static inline uint32_t sbt_thread_owner(void) {
    typedef uint32_t __attribute__((may_alias)) word;
    if (SBT_UNLIKELY(sbt_thread_copy_at == 0))
        return sbt_thread_tid();
    return *(const volatile word *)((const char *)__builtin_thread_pointer() + sbt_thread_copy_at);
}

/*
 * The calling thread has got something done: a mutex, a signal, an arrival at a barrier, a post, a futex wake-up. Only
 * what a program does as often whether its threads are switched or not, so no waits and no attempts in vain.
 */
static inline void sbt_progress(void) {
    sbt_self.progress++;
}

/* The same, by what no thread does again and again while it waits for others: anything but to take a mutex. */
static inline void sbt_progress_surely(void) {
    sbt_self.progress_sure = ++sbt_self.progress;
}

/*
 * A thread that yields of its own accord looks again and again for what others do, under a mutex perhaps. What it has
 * told stays told: a loop of yields without a mutex would take away from what the thread gets done later.
 */
static inline void sbt_progress_undo(void) {
    uint32_t progress = sbt_self.progress;
    sbt_self.progress -= progress != sbt_self.progress_told && progress != sbt_self.progress_sure;
}

/* The caller, self, yields of its own accord. Has it got nothing done since its last such yield? Undone is not done. */
static inline bool sbt_progress_is_vain(struct sbt_thread *self) {
    bool vain = (int32_t)(self->progress - self->progress_yielded) <= 0;
    self->progress_yielded = self->progress;
    return vain;
}

/*
 * The number of the process's threads that are not parked by the library, not joining and not ended. A thread that
 * blocks in the kernel by other means counts as runnable. So the number errs towards too many threads, and too little
 * spinning. Relaxed everywhere: it guides waiting and nothing depends on it.
 */
extern uint32_t sbt_n_runnable;
extern uint32_t sbt_n_cpus;         /* CPUs that the process may use (core/cpus.h), at least 1 */
extern uint32_t sbt_n_cpus_at_once; /* likewise without the quota, which limits what they get in a while */
extern cpu_set_t sbt_cpus;          /* which its first thread could run on at the start. Empty: not known */

/* Relaxed, as the count: a decision that is a moment old does no harm. */
static inline uint32_t sbt_usable_cpus(void) {
    return __atomic_load_n(&sbt_n_cpus, __ATOMIC_RELAXED);
}

static inline void sbt_runnable_add(int n) {
    __atomic_fetch_add(&sbt_n_runnable, (uint32_t)n, __ATOMIC_RELAXED);
}

/* Would there be no more threads than cores with so many more of them? */
static inline bool sbt_cores_to_spare_for(uint32_t n_more) {
    uint32_t n = __atomic_load_n(&sbt_n_runnable, __ATOMIC_RELAXED) + n_more;
    return (int32_t)n <= (int32_t)sbt_usable_cpus();
}

static inline bool sbt_cores_to_spare(void) {
    return sbt_cores_to_spare_for(0);
}

/* May the process run on more CPUs at once than its quota lets it use for long? */
static inline bool sbt_has_quota(void) {
    return __atomic_load_n(&sbt_n_cpus_at_once, __ATOMIC_RELAXED) > sbt_usable_cpus();
}

/* Called once, by start/init.c; sbt_thread_learn as soon as symbols can be looked up. */
void sbt_thread_start(void);
void sbt_thread_learn(void);

/*
 * Wait until a kernel thread of the library's has ended, which was asked to end before. glibc counts it among the
 * process's threads, and calls exit() on the last of them. The program's last thread waits here, so that it is the
 * last. Blocks; no cancellation point.
 */
void sbt_thread_await_end(pthread_t thread);

#endif
