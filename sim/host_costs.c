/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The numbers of a file of costs: names, places and limits. */
#include "host_costs.h"

/* Limits keep nonsense out; no machine is near them: a picosecond to a second, 1 MB/s to 1000 TB/s, 1 TiB. */
#define TIMES 0.001, 1e9
#define RATES 0.001, 1e6
#define BYTES 1099511627776.0
#define CPUS 65536

#define AT(member) offsetof(struct sim_host_costs, member)
#define IN(base, member) ((base) + offsetof(struct sim_host_sync, member))
#define SYNC(group, base)                                                                                              \
    {group, "mutex_ns", IN(base, mutex_ns), TIMES, "lock and unlock of a mutex"},                                      \
        {group, "cond_signal_ns", IN(base, cond_signal_ns), TIMES, "signal of a condition with no waiter"},            \
        {group, "cond_broadcast_ns", IN(base, cond_broadcast_ns), TIMES, "broadcast of a condition with no waiter"},   \
        {group, "barrier_ns", IN(base, barrier_ns), TIMES, "wait at a barrier of one thread"},                         \
        {group, "read_lock_ns", IN(base, read_lock_ns), TIMES, "read lock and unlock"},                                \
        {group, "write_lock_ns", IN(base, write_lock_ns), TIMES, "write lock and unlock"},                             \
        {group, "semaphore_ns", IN(base, semaphore_ns), TIMES, "post of a semaphore and wait"},                        \
        {group, "spinlock_ns", IN(base, spinlock_ns), TIMES, "lock and unlock of a spinlock"},                         \
        {group, "spawn_ns", IN(base, spawn_ns), TIMES, "pthread_create, the caller's time"},                           \
        {group, "spawn_latency_ns", IN(base, spawn_latency_ns), TIMES, "until the new thread runs"}, {                 \
        group, "join_ns", IN(base, join_ns), TIMES, "from a thread's end until its joiner runs"                        \
    }

const struct sim_host_cost sim_host_cost_table[] = {
    {"kernel", "call_ns", AT(kernel.call_ns), TIMES, "a system call that does nothing"},
    {"kernel", "wake_nobody_ns", AT(kernel.wake_nobody_ns), TIMES, "futex wake, no thread sleeps there"},
    {"kernel", "wait_changed_ns", AT(kernel.wait_changed_ns), TIMES, "futex wait on a word that has changed"},
    {"kernel", "sleep_ns", AT(kernel.sleep_ns), TIMES, "futex wait that sleeps, CPU time"},
    {"kernel", "wake_busy_ns", AT(kernel.wake_busy_ns), TIMES, "futex wake to a busy CPU, the waker's time"},
    {"kernel", "wake_remote_ns", AT(kernel.wake_remote_ns), TIMES, "futex wake to another CPU that computes on"},
    {"kernel", "interrupt_ns", AT(kernel.interrupt_ns), TIMES, "what an interrupt takes from a thread that computes"},
    {"kernel", "idle_entry_ns", AT(kernel.idle_entry_ns), TIMES, "until a CPU without a thread is idle"},
    {"kernel", "wake_soon_ns", AT(kernel.wake_soon_ns), TIMES, "futex wake before that, the waker's time"},
    {"kernel", "wake_short_ns", AT(kernel.wake_short_ns), TIMES, "futex wake to a CPU of short pauses alone"},
    {"kernel", "wake_idle_ns", AT(kernel.wake_idle_ns), TIMES, "futex wake to an idle CPU, the waker's time"},
    {"kernel", "wake_deep_ns", AT(kernel.wake_deep_ns), TIMES, "futex wake to a CPU long idle, the waker's time"},
    {"kernel", "latency_busy_ns", AT(kernel.latency_busy_ns), TIMES, "until the sleeper runs, its CPU was busy"},
    {"kernel", "latency_soon_ns", AT(kernel.latency_soon_ns), TIMES, "from there until the sleeper runs"},
    {"kernel", "latency_short_ns", AT(kernel.latency_short_ns), TIMES, "until the sleeper runs on such a CPU"},
    {"kernel", "latency_idle_ns", AT(kernel.latency_idle_ns), TIMES, "until the sleeper runs, its CPU was idle"},
    {"kernel", "latency_deep_ns", AT(kernel.latency_deep_ns), TIMES, "until the sleeper runs, its CPU was long idle"},
    {"kernel", "switch_ns", AT(kernel.switch_ns), TIMES, "to another thread, without the call"},
    {"kernel", "yield_ns", AT(kernel.yield_ns), TIMES, "sched_yield, no other thread is runnable"},
    {"kernel", "yield_switch_ns", AT(kernel.yield_switch_ns), TIMES, "sched_yield that switches"},
    {"kernel", "tick_ns", AT(kernel.tick_ns), TIMES, "period of the scheduler's tick"},
    {"kernel", "slice_ns", AT(kernel.slice_ns), TIMES, "run of a thread beside another on its CPU"},
    {"core", "atomic_ns", AT(core.atomic_ns), TIMES, "atomic addition in the core's own cache"},
    {"core", "line_transfer_ns", AT(core.line_transfer_ns), TIMES, "a modified line to another core, one way"},
    {"core", "line_after_work_ns", AT(core.line_after_work_ns), TIMES, "of it, what a lock waits for after work"},
    {"memory", "latency_ns", AT(memory.latency_ns), TIMES, "a load that misses the last-level cache"},
    {"memory", "core_bytes_per_ns", AT(memory.core_bytes_per_ns), RATES, "one core reads memory (GB/s)"},
    {"memory", "all_bytes_per_ns", AT(memory.all_bytes_per_ns), RATES, "all cores read memory (GB/s)"},
    {"caches", "line_bytes", AT(caches.line_bytes), 1, 4096, "a cache line"},
    {"caches", "l1d_bytes", AT(caches.l1d_bytes), 1, BYTES, "first-level data cache"},
    {"caches", "l2_bytes", AT(caches.l2_bytes), 0, BYTES, "second-level cache; 0: none"},
    {"caches", "l3_bytes", AT(caches.l3_bytes), 0, BYTES, "third-level cache; 0: none"},
    {"caches", "last_level_cpus", AT(caches.last_level_cpus), 1, CPUS, "usable CPUs that share the last level"},
    SYNC("glibc", AT(glibc)),
    SYNC("direct", AT(direct)),
    SYNC("switch", AT(switching)),
    {"switch", "fiber_switch_ns", AT(fiber_switch_ns), TIMES, "wake a fiber, wait, and run the woken fiber"},
};
const size_t sim_n_host_costs = sizeof sim_host_cost_table / sizeof *sim_host_cost_table;
