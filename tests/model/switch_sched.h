/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Included before everything else in libsubutai/switch, this puts its kernel threads under a scheduler of the test's:
 * at each atomic access, and wherever the kernel would be called, switch_sched.c decides which of them goes on. All
 * of them live in one thread of the system. Only what is done in sequence is seen: reorderings that the memory model
 * would allow are not.
 */
#ifndef SWITCH_SCHED_H
#define SWITCH_SCHED_H

#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "core/log.h"
#include "core/thread.h"
#include "engine/direct/self.h"
#include "os/arch.h"
#include "os/clock.h"
#include "os/fence.h"
#include "os/futex.h"
#include "os/real.h"
#include "switch/regs.h"

/* Another thread may go on here. */
void sched_point(void);

/* The kernel's part. */
int sched_futex_wait(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline);
long sched_futex_wake(uint32_t *word, int n);
void sched_pause(void);
long sched_syscall(long nr, long a, long b, long c);
static inline bool sched_futex_pause_ns(long ns) {
    (void)ns;
    sched_pause();
    return true;
}
uint64_t sched_now_ns(void);

/* Registers and thread-local storage: a fiber's come with it, whichever kernel thread runs it. */
void *sched_regs_switch(struct sbt_regs *from, const struct sbt_regs *to, void *value);
void sched_regs_make(struct sbt_regs *regs, void *stack, size_t bytes, void (*entry)(void *value), void *tls);
extern struct sbt_thread *sched_self;
extern uint32_t sched_n_cpus_most; /* of the machine */
struct direct_self *sched_direct_self(void);

#ifndef SWITCH_SCHED_ITSELF
#define __atomic_load_n(...) (sched_point(), __atomic_load_n(__VA_ARGS__))
#define __atomic_store_n(...) (sched_point(), __atomic_store_n(__VA_ARGS__))
#define __atomic_exchange_n(...) (sched_point(), __atomic_exchange_n(__VA_ARGS__))
#define __atomic_compare_exchange_n(...) (sched_point(), __atomic_compare_exchange_n(__VA_ARGS__))
#define __atomic_fetch_add(...) (sched_point(), __atomic_fetch_add(__VA_ARGS__))
#define __atomic_fetch_sub(...) (sched_point(), __atomic_fetch_sub(__VA_ARGS__))
#define __atomic_fetch_or(...) (sched_point(), __atomic_fetch_or(__VA_ARGS__))
#define __atomic_fetch_and(...) (sched_point(), __atomic_fetch_and(__VA_ARGS__))
#define __atomic_sub_fetch(...) (sched_point(), __atomic_sub_fetch(__VA_ARGS__))
#define sbt_futex_wait(...) sched_futex_wait(__VA_ARGS__)
#define sbt_futex_wait_frame(...) sched_futex_wait(__VA_ARGS__)
#define sbt_futex_wake(...) sched_futex_wake(__VA_ARGS__)
#include "os/objects.h"                                          /* before its function is a macro */
#define sbt_objects_iterate(look, at) ((void)(look), (void)(at)) /* how much a stack needs: there is one size */
#define sbt_pause_ns(ns) ((void)(ns), sched_pause())
#define sbt_futex_pause_ns(ns) sched_futex_pause_ns(ns)
#define sbt_syscall6(nr, a, b, c, d, e, f) sched_syscall((nr), (a), (b), (c))
#define sbt_now_ns() sched_now_ns()
#define sbt_cpu_relax() ((void)0)
#define sbt_fence_light() ((void)0)
#define sbt_fence_heavy() true
#define sbt_regs_switch(...) sched_regs_switch(__VA_ARGS__)
#define sbt_regs_make(...) sched_regs_make(__VA_ARGS__)
#define sbt_tls_base() ((void *)sched_self)
#define sbt_self (*sched_self)
#define direct_self (*sched_direct_self())
#endif

/* ---- for the test ---- */
enum { SCHED_MAX_THREADS = 8 };

/* How to go: every schedule with at most so many preemptions, or one by chance. */
enum sched_monitor {
    SCHED_ALONE,     /* without a monitor */
    SCHED_MONITORED, /* with one */
    SCHED_BY_TURNS,  /* with one that begins and ends switching at each look */
    SCHED_LEAVING    /* with one that never begins it, and that leaves a program of one thread */
};
struct sched_how {
    enum sched_monitor with_monitor;
    uint32_t n_preemptions;
};

/* Makes the program's threads (sched_thread); the caller's own counts as one that ends when this returns. */
typedef void sched_setup(void);
/* For threads of the program, too. */
void sched_thread(void (*routine)(void *), void *argument);
/* Monitors that have not ended. */
uint32_t sched_n_monitors(void);
/* The program destroys its object (one in a schedule): to write it from now on is wrong. */
void sched_free(void *object, size_t bytes);
bool sched_is_freed(const void *object);
/* The next time the calling kernel thread is about to sleep, and not for the lot itself, a handler runs instead. */
void sched_interrupt(void (*handler)(void));
/* The schedule shows a mistake. Does not return. */
_Noreturn void sched_wrong(const char *what);

/*
 * Runs `setup` once for each schedule. NULL, or what went wrong in the last one, of which `show` prints the course. At
 * most `limit` schedules; *n is how many there were. `at_end` may look whether all is as it should be, NULL: it is.
 */
const char *sched_walk(const struct sched_how *how, sched_setup *setup, const char *(*at_end)(void), uint64_t limit,
                       bool show, uint64_t *n);
/* The same with schedules by chance, n of them. */
const char *sched_roam(const struct sched_how *how, sched_setup *setup, const char *(*at_end)(void), uint64_t n,
                       uint64_t seed);

#endif
