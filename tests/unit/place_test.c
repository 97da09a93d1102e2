/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where NI threads run (engine/ni/place.h), on machines that are made up. */
#include "engine/ni/place.h"
#include "lib/suite.h"

static struct ni_topology machine;

/* n_nodes nodes of cpus_each CPUs; node i has the CPUs from i * cpus_each on. */
static void build(uint32_t n_nodes, uint32_t cpus_each) {
    CPU_ZERO(&machine.allowed);
    for (uint32_t cpu = 0; cpu < n_nodes * cpus_each; cpu++) {
        CPU_SET(cpu, &machine.allowed);
        machine.node[cpu] = (uint16_t)(cpu / cpus_each);
    }
}

/* Thread `number` of n: its node, and its CPUs from `from` to `to`, all of them. */
static void runs_on(uint32_t number, uint32_t n, uint32_t node, uint32_t from, uint32_t to) {
    cpu_set_t cpus;
    ck_assert_uint_eq(ni_place(&machine, number, n, &cpus), node);
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (!CPU_ISSET(cpu, &cpus) != !(cpu >= from && cpu <= to))
            ck_abort_msg("thread %u of %u, CPU %u", number, n, cpu);
}

TEST(one_node__few_cpus, "no CPUs to spare: each thread has all of them") {
    build(1, 2);
    runs_on(0, 1, 0, 0, 1);
    build(1, 7);
    runs_on(0, 2, 0, 0, 6);
    runs_on(1, 2, 0, 0, 6);
}

TEST(one_node__cpus_to_spare, "each thread has one, the last of its share") {
    build(1, 4);
    runs_on(0, 1, 0, 3, 3);
    build(1, 64);
    for (uint32_t i = 0; i < 4; i++)
        runs_on(i, 4, 0, 16 * i + 15, 16 * i + 15);
}

TEST(nodes__threads_are_dealt_out_in_blocks) {
    build(2, 8);
    runs_on(0, 4, 0, 3, 3);
    runs_on(1, 4, 0, 7, 7);
    runs_on(2, 4, 1, 11, 11);
    runs_on(3, 4, 1, 15, 15);
    runs_on(0, 2, 0, 7, 7);
    runs_on(1, 2, 1, 15, 15);
    build(2, 3);
    runs_on(0, 2, 0, 0, 2);
    runs_on(1, 2, 1, 3, 5);
}

TEST(nodes__more_than_threads_and_threads_that_do_not_divide) {
    build(4, 4);
    runs_on(0, 1, 0, 3, 3);
    runs_on(0, 2, 0, 3, 3);
    runs_on(1, 2, 2, 11, 11);
    build(2, 2);
    runs_on(0, 3, 0, 0, 1); /* two threads on the first node */
    runs_on(1, 3, 0, 0, 1);
    runs_on(2, 3, 1, 2, 3);
}

TEST(allowed_cpus__are_never_left, "as taskset sets them: any set, any number of threads") {
    uint32_t state = 1;
    for (int round = 0; round < 300; round++) {
        cpu_set_t cpus;
        CPU_ZERO(&machine.allowed);
        for (uint32_t cpu = 0; cpu < 96; cpu++) {
            state = state * 1103515245 + 12345;
            machine.node[cpu] = (uint16_t)(cpu / 16 * 3);
            if (state >> 28 == 0)
                CPU_SET(cpu, &machine.allowed);
        }
        CPU_SET(95, &machine.allowed);
        uint32_t n = 1 + (state >> 8) % 64, last = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t node = ni_place(&machine, i, n, &cpus);
            ck_assert_int_gt(CPU_COUNT(&cpus), 0);
            ck_assert_uint_ge(node, last);
            last = node;
            for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &cpus) && (!CPU_ISSET(cpu, &machine.allowed) || machine.node[cpu] != node))
                    ck_abort_msg("CPU %u", cpu); /* a passed assertion is a system call */
        }
    }
}

TEST(pages__each_belongs_to_one_part, "from a page's middle, parts of less than a page") {
    const uintptr_t begin = 0x10100, bytes = 0x700, page = 0x1000;
    uintptr_t expected = 0x10000;
    for (uintptr_t i = 0; i < 64; i++) {
        uintptr_t from = begin + i * bytes, to = from + bytes;
        ni_place_pages(begin, page, &from, &to);
        ck_assert_uint_eq(from, expected);
        ck_assert_uint_eq(to % page, 0);
        expected = to;
    }
    ck_assert_uint_ge(expected, begin + 64 * bytes);
}
