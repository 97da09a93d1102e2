/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the NI threads run. Pure: the topology is an argument.
 *
 * The threads are dealt out to the memory nodes in blocks, so that neighbouring tiles stay together. On a node each has
 * a CPU of its own if there are CPUs to spare, and otherwise all CPUs of the node. No thread leaves the CPUs that the
 * process may use.
 */
#ifndef SBT_ENGINE_NI_PLACE_H
#define SBT_ENGINE_NI_PLACE_H

#include <sched.h>
#include <stdint.h>

/* CPUs to spare: a node has at least this many for each NI thread on it. The others are the program's. */
#define NI_CPUS_TO_SPARE 4

/* The CPUs of a machine: which of them may be used, and the memory node of each, below CPU_SETSIZE. */
struct ni_topology {
    cpu_set_t allowed;
    uint16_t node[CPU_SETSIZE];
};

/* The CPUs on which thread `number` of `n` may run; the answer is its memory node. At least one CPU is allowed. */
uint32_t ni_place(const struct ni_topology *topology, uint32_t number, uint32_t n, cpu_set_t *cpus);

/*
 * The pages of the part [from, to) of an array that begins at `begin`, all addresses. Each page belongs to one part:
 * that in which the page begins, and the array's first page to the first part.
 */
void ni_place_pages(uintptr_t begin, uintptr_t page_bytes, uintptr_t *from, uintptr_t *to);

#endif
