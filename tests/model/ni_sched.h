/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Included before everything else in files of libsubutai/engine/ni, this puts their threads under a scheduler of the
 * test's: at each atomic access, and wherever the kernel would be called, ni_sched.c decides which thread goes on. All
 * of them live in one thread of the system. Only what is done in sequence is seen: reorderings that the memory model
 * would allow are not. A step of liburcu's queue is taken at once.
 */
#ifndef NI_SCHED_H
#define NI_SCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "core/thread.h"
#include "engine/ni/wfqueue.h"
#include "os/arch.h"
#include "os/clock.h"
#include "os/fence.h"
#include "os/futex.h"

/* Another thread may go on here. */
void sched_point(void);
/* The calling thread has nothing to do for the moment: another thread goes on, if there is one. */
void sched_pause(void);
/* Block until sched_wake, if *word has that value. */
void sched_wait(const uint32_t *word, uint32_t expected);
long sched_wake(const uint32_t *word);
uint64_t sched_now_ns(void);
long sched_syscall(long nr);

#ifndef NI_SCHED_ITSELF
#define __atomic_load_n(...) (sched_point(), __atomic_load_n(__VA_ARGS__))
#define __atomic_store_n(...) (sched_point(), __atomic_store_n(__VA_ARGS__))
#define __atomic_exchange_n(...) (sched_point(), __atomic_exchange_n(__VA_ARGS__))
#define __atomic_compare_exchange_n(...) (sched_point(), __atomic_compare_exchange_n(__VA_ARGS__))
#define __atomic_fetch_add(...) (sched_point(), __atomic_fetch_add(__VA_ARGS__))
#define __atomic_fetch_or(...) (sched_point(), __atomic_fetch_or(__VA_ARGS__))
#define sbt_futex_wake(word, n) ((void)(n), sched_wake(word))
#define sbt_pause_ns(ns) ((void)(ns), sched_pause())
#define sbt_now_ns() sched_now_ns()
#define sbt_cpu_relax() ((void)0)
#define sbt_fence_light() ((void)0)
#define sbt_syscall6(nr, a, b, c, d, e, f) ((void)(a), (void)(b), (void)(c), sched_syscall(nr))
#endif

/* ---- for the test ---- */
enum { SCHED_MAX_THREADS = 6 };

/* Makes the first threads (sched_thread). */
typedef void sched_setup(void);
/* Returns the number of the thread. */
uint32_t sched_thread(void *(*routine)(void *), void *argument);
bool sched_has_ended(uint32_t thread);
void sched_await_end(uint32_t thread);
/* The calling thread goes on alone until this is called again with false. */
void sched_alone(bool alone);
/* The number of the calling thread. */
uint32_t sched_self(void);
/* That thread does not go on until this is called with false, as while a signal handler of its runs. */
void sched_interrupt(uint32_t thread, bool interrupt);
/* That thread does not go on, as in a forked child that does not have it. */
void sched_vanish(uint32_t thread);
/* The schedule shows a mistake. Does not return. */
_Noreturn void sched_wrong(const char *what);

/*
 * Runs `setup` once for each schedule with at most so many preemptions. NULL, or what went wrong in the last one, of
 * which `show` prints the course. *n is how many schedules there were. `at_end` says what is wrong in the end, or NULL.
 */
const char *sched_walk(uint32_t n_preemptions, sched_setup *setup, const char *(*at_end)(void), bool show, uint64_t *n);

#endif
