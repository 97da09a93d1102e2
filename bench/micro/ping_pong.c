/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ping-pong: two threads on two CPUs hand a cache line to and fro. No object is involved, so no engine can change it:
 * it is the floor of everything that asks another CPU and waits for its answer, a service thread of the engine ni for
 * instance. The CPUs are two that share no core, if there are such.
 *
 * The line holds the number of times it has been handed over. Each thread waits for a change and checks that it is the
 * one it must be; the first ends the game by a number that says so. They look without a pause: what is measured is the
 * machine, not its busy-wait hint.
 */
#include "bench.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define OVER UINT64_MAX

static struct {
    _Alignas(BENCH_LINE) _Atomic uint64_t n_handed;
    char rest[BENCH_LINE - sizeof(uint64_t)]; /* of the line and of its neighbour: no other variable's */
} ball;
static int cpus[2];

static int two_workers(const struct bench *b) {
    (void)b;
    return 2;
}

/* Adds the CPUs in the core of `cpu` to *set; nothing where the kernel does not tell. */
static void add_core(int cpu, cpu_set_t *set) {
    char path[96], text[4096];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *list = fopen(path, "r");
    if (list == NULL)
        return;
    if (fgets(text, sizeof text, list) != NULL)
        for (char *p = text, *end;; p = end + 1) { /* "0-1,4" */
            long from = strtol(p, &end, 10), to = from;
            if (end != p && *end == '-')
                to = strtol(end + 1, &end, 10);
            for (; end != p && from <= to && from < CPU_SETSIZE; from++)
                CPU_SET((size_t)from, set);
            if (end == p || *end != ',')
                break;
        }
    fclose(list);
}

static void ping_pong_setup(struct bench *b) {
    cpu_set_t allowed, first_core;
    int n = 0;
    CPU_ZERO(&first_core);
    if (b->threads != 2)
        bench_refuse("ping-pong: --threads: illegal value '%d' (legal: 2)", b->threads);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        bench_fail("sched_getaffinity failed");
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, &allowed) && n++ == 0)
            cpus[0] = cpus[1] = cpu;
    if (n < 2)
        bench_refuse("ping-pong needs two CPUs, and this process may use one");
    add_core(cpus[0], &first_core);
    for (int cpu = CPU_SETSIZE - 1; cpu > cpus[0]; cpu--) /* the lowest of those in another core, or else of all */
        if (CPU_ISSET((size_t)cpu, &allowed) &&
            (cpus[1] == cpus[0] || !CPU_ISSET((size_t)cpu, &first_core) || CPU_ISSET((size_t)cpus[1], &first_core)))
            cpus[1] = cpu;
}

static void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_fail("CPU %d: sched_setaffinity failed", cpu);
}

/* Acquire and release order the two threads' turns; nothing but the number itself is handed over. */
static uint64_t next_after(uint64_t seen) {
    uint64_t now;
    while ((now = atomic_load_explicit(&ball.n_handed, memory_order_acquire)) == seen)
        ;
    return now;
}

static void hand_over(uint64_t number) {
    atomic_store_explicit(&ball.n_handed, number, memory_order_release);
}

static void ping_pong_worker(struct bench *b, struct bench_worker *w) {
    uint64_t ops = 0, number;
    pin_to(cpus[w->id]);
    if (w->id == 0) {
        uint64_t share = bench_share(b, 1);
        for (; bench_more(b, ops, share); ops++) {
            hand_over(2 * ops + 1);
            if ((number = next_after(2 * ops + 1)) != 2 * ops + 2)
                bench_check_equal("the number that came back", number, 2 * ops + 2);
        }
        hand_over(OVER);
    } else {
        while ((number = next_after(2 * ops)) != OVER) {
            if (number != 2 * ops + 1)
                bench_check_equal("the number that was handed over", number, 2 * ops + 1);
            hand_over(2 * ++ops);
        }
    }
    w->ops = ops;
}

static uint64_t ping_pong_finish(struct bench *b) {
    bench_check_equal("the second thread's count", b->workers[1].ops, b->workers[0].ops);
    return b->workers[0].ops;
}

const struct bench_kind bench_ping_pong = {
    "ping-pong",     "a cache line to another CPU and back", 0, two_workers, ping_pong_setup, ping_pong_worker,
    ping_pong_finish};
