/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From measured costs to the model.
 *
 * What is not measured is Linux's or the library's own constant, and stands here:
 *  - A slice is 0.7 ms times 1 + log2 of the number of cores, of which 8 count at most (Linux since 6.12). The measured
 *    slice is that, rounded up to ticks. Where it is longer than that, the machine has other settings: then it counts.
 *  - A thread's cache is warm for 0.5 ms (sysctl_sched_migration_cost); a busy core balances each 16 ms times the
 *    number of cores of its domain, of which 16 count.
 *  - glibc's barrier of one thread calls the kernel in vain. That is the last arrival's part, and is taken off.
 *  - Spins, yields and searches are those of libsubutai/wait and libsubutai/switch.
 */
#include "host_model.h"

enum {
    BASE_SLICE_NS = 700000,
    MOST_SCALED = 8,
    HOT_NS = 500000,
    BALANCE_NS = 16000000,
    MOST_BALANCED = 16,
    SHORT_NS = 75000,       /* on one machine pauses of 50 us were short, and of 120 us were not */
    DEEP_AFTER_NS = 200000, /* between the 20 us and the 2 ms of the measurement, by ratio */
    SPIN_NS = 2000,
    SPIN_LOOKS_NS = 1500, /* 100 looks */
    N_YIELDS = 12,
    IDLE_YIELDS_NS = 40000,
    SEARCH_NS = 30000,
};

const char *const sim_host_effect_names[SIM_HOST_N_EFFECTS] = {"lines",   "latency", "slices",     "balance", "memory",
                                                               "preempt", "ahead",   "interrupts", "protect", "delay"};

static uint32_t ns(double value) {
    return value < 0 ? 0 : value > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)(value + 0.5);
}

static uint64_t slice(const struct sim_host_costs *costs, uint32_t n_cores) {
    uint64_t scale = 1, own = 0;
    for (uint32_t n = n_cores < MOST_SCALED ? n_cores : MOST_SCALED; n > 1; n /= 2)
        scale++;
    own = BASE_SLICE_NS * scale;
    uint64_t tick = ns(costs->kernel.tick_ns), measured = ns(costs->kernel.slice_ns);
    return measured > own + 2 * tick ? measured - tick / 2 : own;
}

/* One core has the memory for itself, also where both were measured the same and differ by chance. */
static uint32_t memory_cores(const struct sim_host_costs *costs) {
    uint32_t cores = ns(1000 * costs->memory.all_bytes_per_ns / costs->memory.core_bytes_per_ns);
    return cores > 1000 ? cores : 1000;
}

struct sim_host_model sim_host_model_of(const struct sim_host_costs *c, enum sim_host_engine engine, uint32_t n_cores) {
    const struct sim_host_sync *sync = engine == SIM_HOST_GLIBC    ? &c->glibc
                                       : engine == SIM_HOST_DIRECT ? &c->direct
                                                                   : &c->switching;
    double half = c->kernel.sleep_ns / 2, empty_wake = c->kernel.wake_nobody_ns;
    /* Neither rule can do with a part of its costs. */
    bool soon_known = c->kernel.wake_soon_ns > 0 && c->kernel.latency_soon_ns > 0;
    bool short_known = c->kernel.wake_short_ns > 0 && c->kernel.latency_short_ns > 0;
    double before = engine == SIM_HOST_GLIBC ? c->kernel.wait_changed_ns : 0;
    return (struct sim_host_model){
        .lock_ns = ns(sync->mutex_ns / 2),
        .unlock_ns = ns(sync->mutex_ns / 2),
        .cond_ns = ns(sync->cond_signal_ns),
        .barrier_ns = ns(engine == SIM_HOST_GLIBC ? sync->barrier_ns - empty_wake : sync->barrier_ns),
        .rwlock_ns = ns(sync->read_lock_ns / 2),
        .semaphore_ns = ns(sync->semaphore_ns / 2),
        .spin_lock_ns = ns(sync->spinlock_ns / 2),
        .atomic_ns = ns(c->core.atomic_ns),
        .line_ns = ns(c->core.line_transfer_ns),
        .line_late_ns = ns(c->core.line_after_work_ns), /* none if it is not known */
        .futex_wait_ns = ns(before),
        .fall_asleep_ns = ns(half - before),
        .awake_ns = ns(half),
        .futex_wake_ns = ns(empty_wake),
        .wake_busy_ns = ns(c->kernel.wake_busy_ns - empty_wake),
        .remote_lines_ns = ns(c->kernel.wake_remote_ns - c->kernel.wake_busy_ns), /* none if it is not known */
        .idle_entry_ns = soon_known ? ns(c->kernel.idle_entry_ns) : 0,            /* none if it is not known */
        .wake_soon_ns = ns(c->kernel.wake_soon_ns - empty_wake),
        .late_soon_ns = ns(c->kernel.latency_soon_ns - half),
        .short_ns = short_known ? SHORT_NS : 0,
        .wake_short_ns = ns(c->kernel.wake_short_ns - empty_wake),
        .late_short_ns = ns(c->kernel.latency_short_ns - c->kernel.wake_short_ns - half),
        .wake_idle_ns = ns(c->kernel.wake_idle_ns - empty_wake),
        .wake_deep_ns = ns(c->kernel.wake_deep_ns - empty_wake),
        .late_idle_ns = ns(c->kernel.latency_idle_ns - c->kernel.wake_idle_ns - half),
        .late_deep_ns = ns(c->kernel.latency_deep_ns - c->kernel.wake_deep_ns - half),
        .late_busy_ns = ns(c->kernel.latency_busy_ns - c->kernel.wake_idle_ns - half - c->kernel.switch_ns),
        .interrupt_ns = ns(c->kernel.interrupt_ns), /* none if it is not known */
        .switch_ns = ns(c->kernel.switch_ns),
        .yield_ns = ns(c->kernel.yield_ns),
        .spawn_ns = ns(sync->spawn_ns),
        .born_ns = ns(sync->spawn_latency_ns - sync->spawn_ns),
        .end_ns = ns((sync->join_ns - c->kernel.latency_idle_ns) / 2),
        .slice_ns = slice(c, n_cores),
        .tick_ns = ns(c->kernel.tick_ns) > 0 ? ns(c->kernel.tick_ns) : 1,
        .deep_after_ns = DEEP_AFTER_NS,
        .hot_ns = HOT_NS,
        .balance_ns = (uint64_t)BALANCE_NS * (n_cores < MOST_BALANCED ? n_cores : MOST_BALANCED),
        .fiber_ns = ns(c->fiber_switch_ns * 2 / 3),
        .fiber_wake_ns = ns(c->fiber_switch_ns / 3),
        .search_ns = SEARCH_NS,
        .spin_ns = SPIN_NS,
        .spin_looks_ns = SPIN_LOOKS_NS,
        .n_yields = N_YIELDS,
        .idle_yields_ns = IDLE_YIELDS_NS,
        .memory_cores = memory_cores(c),
        .recorded_cores = 1000,
        .n_servers = engine == SIM_HOST_DELEGATE && n_cores > 1,
        .effects = SIM_HOST_ALL,
    };
}
