/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a real machine costs, as `subutai calibrate` measures it, for the simulator's model of a host. This is the
 * file's form too: host_costs.c has a row for each number, and writer and reader walk the rows.
 *
 * All are medians. A time is of an uncontended operation on a machine that is otherwise idle, except where it says so.
 */
#ifndef SIM_HOST_COSTS_H
#define SIM_HOST_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_HOST_COSTS_FORMAT "subutai host costs"
enum { SIM_HOST_COSTS_VERSION = 1, SIM_HOST_TEXT = 128 };

/* What calls cost under one way to serve them. Nanoseconds; no other thread uses the object. */
struct sim_host_sync {
    double mutex_ns;          /* lock and unlock of a mutex */
    double cond_signal_ns;    /* signal of a condition on which no thread waits */
    double cond_broadcast_ns; /* broadcast of such a condition */
    double barrier_ns;        /* wait at a barrier of one thread */
    double read_lock_ns;      /* read lock and unlock of a read-write lock */
    double write_lock_ns;     /* write lock and unlock of a read-write lock */
    double semaphore_ns;      /* post of a semaphore, and a wait that takes it at once */
    double spinlock_ns;       /* lock and unlock of a spinlock */
    double spawn_ns;          /* pthread_create: the time of the calling thread */
    double spawn_latency_ns;  /* from the call of pthread_create to the first instruction of the new thread */
    double join_ns;           /* from the last instruction of a thread to the return of the pthread_join that waits */
};

struct sim_host_costs {
    /* The machine on which this was measured; terminated texts. */
    char cpu_name[SIM_HOST_TEXT];    /* name of the processor */
    char kernel_name[SIM_HOST_TEXT]; /* name and release of the kernel */
    char libc_name[SIM_HOST_TEXT];   /* name and release of the C library */
    uint32_t n_cpus;                 /* logical CPUs that the measured process might use */
    uint32_t n_cores; /* cores that those belong to; fewer than n_cpus if cores have several threads each */
    bool forced;      /* the machine was busy, and --force was given: the numbers may be wrong */

    /* The kernel. Nanoseconds. */
    struct {
        double call_ns;         /* a system call that does nothing: in and out */
        double wake_nobody_ns;  /* FUTEX_WAKE of a word on which no thread sleeps */
        double wait_changed_ns; /* FUTEX_WAIT on a word that has changed: returns at once */
        double sleep_ns;        /* CPU time of a FUTEX_WAIT that sleeps, without the switch: in, asleep, awake, out */
        double wake_busy_ns;    /* FUTEX_WAKE, the waker's time: the sleeper's CPU is the waker's */
        double
            wake_remote_ns;  /* FUTEX_WAKE, the waker's time: the sleeper's CPU, another one, computes on; 0: unknown */
        double interrupt_ns; /* what an interrupt from another CPU takes from a thread that computes; 0: unknown */
        double idle_entry_ns;    /* a CPU that has no thread any more is idle after that; 0: unknown, as the next two */
        double wake_soon_ns;     /* FUTEX_WAKE, the waker's time: the sleeper's CPU is on its way there */
        double latency_soon_ns;  /* from the end of that way to the sleeper's return; the same */
        double wake_short_ns;    /* as wake_idle_ns, where all pauses of the CPU are so short; 0: unknown */
        double latency_short_ns; /* as latency_idle_ns; the same */
        double wake_idle_ns;     /* FUTEX_WAKE, the waker's time: the sleeper's CPU has been idle for some 20 us */
        double wake_deep_ns;     /* FUTEX_WAKE, the waker's time: the sleeper's CPU has been idle for some 2 ms */
        double
            latency_busy_ns; /* from the call of FUTEX_WAKE to the sleeper's return; its CPU, another one, computes */
        double latency_idle_ns; /* the same; as wake_idle_ns */
        double latency_deep_ns; /* the same; as wake_deep_ns */
        double switch_ns;       /* a CPU changes to another thread of the process, without the call that led there */
        double yield_ns;        /* sched_yield, and no other thread is runnable on the CPU */
        double yield_switch_ns; /* sched_yield that switches: from its call to the next instruction of the other */
        double tick_ns;         /* period of the scheduler's tick */
        double slice_ns;        /* how long a thread runs that shares its CPU with another that computes */
    } kernel;

    /* One core. Nanoseconds. */
    struct {
        double atomic_ns;          /* atomic addition to a line in the core's own cache */
        double line_transfer_ns;   /* a modified cache line to another core, one way */
        double line_after_work_ns; /* what a lock and an unlock still wait for the line that went away, after work
                                      during which the processor could ask for it; 0: unknown */
    } core;

    /* Memory: what threads share that do not share lines. */
    struct {
        double latency_ns;        /* a load that misses the last-level cache, and the next waits for it */
        double core_bytes_per_ns; /* bandwidth of reading of one core; bytes a nanosecond are GB/s */
        double all_bytes_per_ns;  /* bandwidth of reading of n_cores cores together */
    } memory;

    /* Caches that a core uses; bytes; 0: there is no such level. */
    struct {
        double line_bytes;      /* a cache line */
        double l1d_bytes;       /* first level, data */
        double l2_bytes;        /* second level */
        double l3_bytes;        /* third level */
        double last_level_cpus; /* number of usable CPUs that share the highest level */
    } caches;

    /* What serves the calls. */
    struct sim_host_sync glibc;     /* glibc alone, without the library */
    struct sim_host_sync direct;    /* the engine direct, waiting in the kernel */
    struct sim_host_sync switching; /* the engine direct with --wait switch: all threads are fibers; "switch" in JSON */
    double fiber_switch_ns; /* a carrier changes from a fiber that waits to another that was woken; both calls */
};

/* A number of the file: "group": {"key": ...}. Rows of a group follow one another. */
struct sim_host_cost {
    const char *group, *key;
    size_t offset;   /* of the double in struct sim_host_costs */
    double min, max; /* legal values */
    const char *help;
};
extern const struct sim_host_cost sim_host_cost_table[];
/* A cost that not every machine lets measure: without it, it is 0. */
bool sim_host_cost_is_optional(const struct sim_host_cost *row);
extern const size_t sim_n_host_costs;

/*
 * Read the file. 0, or -1, and *error has one line without the path: which key is wrong, what it has and what is legal.
 * Files of another version are refused, and missing and unknown keys, wrong types and numbers outside their limits.
 */
int sim_host_costs_read(const char *path, struct sim_host_costs *costs, char *error, size_t error_size);
/* The same from memory. */
int sim_host_costs_parse(const char *text, size_t n, struct sim_host_costs *costs, char *error, size_t error_size);
/* The reference machine's, compiled in: sim/reference.costs. */
struct sim_host_costs sim_host_costs_reference(void);
extern const char sim_host_costs_reference_text[]; /* the file; the build makes the string */

#endif
