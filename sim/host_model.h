/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host machine's model, as the parts that simulate it read it: what everything costs, and which effects are
 * simulated. It is derived from the measured costs. docs/simulator.md explains each rule.
 */
#ifndef SIM_HOST_MODEL_H
#define SIM_HOST_MODEL_H

#include <stdint.h>

#include "host_costs.h"

/* Effects that can be left out, to see what they are worth. */
enum sim_host_effect {
    SIM_HOST_LINES = 1,        /* a cache line that another core had last costs a transfer */
    SIM_HOST_LATENCY = 2,      /* a woken thread begins late on a core that was idle */
    SIM_HOST_SLICES = 4,       /* the scheduler preempts; without it a thread keeps its core until it waits */
    SIM_HOST_BALANCE = 8,      /* busy cores exchange threads at intervals */
    SIM_HOST_MEMORY = 16,      /* threads that run at once slow each other down in memory */
    SIM_HOST_PREEMPT = 32,     /* a woken thread takes the core from the thread that runs there */
    SIM_HOST_AHEAD = 64,       /* a processor fetches a line while the work before the call is under way */
    SIM_HOST_INTERRUPTS = 128, /* an interrupt takes time from the thread that it interrupts */
    SIM_HOST_PROTECT = 256,    /* the thread that runs there keeps the core while it has run less than its share */
    SIM_HOST_DELAY = 512, /* a thread that sleeps with a debt stays in its core's virtual time until that is paid */
    SIM_HOST_N_EFFECTS = 10,
    SIM_HOST_ALL = 1023
};

enum sim_host_engine { SIM_HOST_GLIBC, SIM_HOST_DIRECT, SIM_HOST_SWITCH, SIM_HOST_DELEGATE };

/* Nanoseconds of one core's time, if nothing else is said. */
struct sim_host_model {
    /* in user mode, with the object's cache line at hand */
    uint32_t lock_ns, unlock_ns, cond_ns, barrier_ns, rwlock_ns, semaphore_ns, spin_lock_ns, atomic_ns;
    uint32_t line_ns;      /* the object's cache line comes from another core, */
    uint32_t line_late_ns; /* at least so much of which the thread waits for, however long it has worked before */
    /* in the kernel */
    uint32_t futex_wait_ns;                /* into the kernel, up to the look whether the word has changed */
    uint32_t fall_asleep_ns;               /* from there until the core is free */
    uint32_t awake_ns;                     /* a woken thread's way out of the kernel */
    uint32_t futex_wake_ns;                /* a wake-up call, without the sleepers that it wakes */
    uint32_t wake_busy_ns;                 /* the waker, for each sleeper with a busy core, */
    uint32_t remote_lines_ns;              /* more where that core is not the waker's, */
    uint32_t wake_soon_ns;                 /* on its way to being idle, */
    uint32_t wake_idle_ns, wake_deep_ns;   /* idle for a moment, or for long */
    uint32_t idle_entry_ns;                /* how long that way is (0: none), from the end of which on */
    uint32_t late_soon_ns;                 /* such a core needs until the sleeper runs there, */
    uint32_t late_idle_ns, late_deep_ns;   /* and one that is idle, from the wake-up on; */
    uint32_t wake_short_ns, late_short_ns; /* as idle ones, if the core's last pauses were short_ns on average */
    uint32_t late_busy_ns;                 /* a core with another thread, interrupted at the cost of wake_idle_ns */
    uint32_t interrupt_ns;                 /* which takes so much from the thread that runs there */
    uint32_t switch_ns;                    /* a core changes to another thread */
    uint32_t yield_ns;                     /* a yield that finds no other thread */
    uint32_t spawn_ns, born_ns, end_ns;    /* creating a thread; until it runs on an idle core; its end and a join */
    uint64_t slice_ns, tick_ns;            /* what a thread may run before others, and when the kernel looks */
    uint64_t short_ns;                     /* or less */
    uint64_t deep_after_ns;                /* since when a core has been idle for long */
    uint64_t hot_ns;                       /* an idle core takes no thread that has run elsewhere within that time */
    uint64_t balance_ns;                   /* a busy core compares run queues so often */
    /* waiting by switching */
    uint32_t fiber_ns, fiber_wake_ns; /* from fiber to fiber; putting a fiber into a run queue */
    uint32_t search_ns;               /* an idle carrier searches for so long before it sleeps */
    /* active waiting */
    uint32_t spin_ns, spin_looks_ns, n_yields, idle_yields_ns;
    /*
     * Memory, in thousandths. The share of the work, on one core, that waits for memory; so many cores, at least
     * one, reach its bandwidth; so many worked at once, on average over the work, when it was recorded (recorded.h).
     */
    uint32_t memory_share, memory_cores, recorded_cores;
    uint32_t n_servers; /* SIM_HOST_DELEGATE: the first cores, on which sections run; less than cores */
    uint32_t effects;   /* enum sim_host_effect, or-ed */
};

/* "lines", "latency", "slices", "balance", "memory", "preempt", "ahead", "interrupts", "protect", "delay": of effect 1
 * << number. */
extern const char *const sim_host_effect_names[SIM_HOST_N_EFFECTS];

/* The model of a machine with those costs and n_cores cores. */
struct sim_host_model sim_host_model_of(const struct sim_host_costs *costs, enum sim_host_engine engine,
                                        uint32_t n_cores);

#endif
