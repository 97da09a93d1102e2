/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/settle.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>

#include "core/log.h"
#include "core/thread.h"
#include "engine/ni/place.h"
#include "engine/ni/service.h"
#include "os/real.h"

static struct ni_topology topology;
static bool several_nodes;

/*
 * Learn on which memory node each CPU is. libnuma is loaded only if there are several nodes: it reads /sys when it is
 * loaded, which would cost every program start as much as the rest of this library.
 */
void ni_settle_start(void) {
    if (CPU_COUNT(&topology.allowed) != 0)
        return;
    topology.allowed = sbt_cpus;
    if (sbt_syscall3(SYS_faccessat, AT_FDCWD, "/sys/devices/system/node/node1", 0) != 0)
        return;
    void *numa = sbt_real.dlopen("libnuma.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*available)(void) = numa != NULL ? (int (*)(void))sbt_real_dlsym()(numa, "numa_available") : NULL;
    int (*node_of_cpu)(int) = numa != NULL ? (int (*)(int))sbt_real_dlsym()(numa, "numa_node_of_cpu") : NULL;
    if (available == NULL || node_of_cpu == NULL || available() < 0) {
        sbt_log(1, "no libnuma: the NI threads do not know the memory nodes", NULL);
        return;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        int node = CPU_ISSET(cpu, &topology.allowed) ? node_of_cpu(cpu) : 0;
        topology.node[cpu] = node > 0 ? (uint16_t)node : 0;
    }
    several_nodes = true;
}

static uint32_t told; /* 1: a thread has said that it cannot, here or in the process that this one was forked from */

void ni_settle(uint32_t number, uint32_t from, uint32_t to) {
    cpu_set_t cpus;
    if (CPU_COUNT(&topology.allowed) == 0)
        return;
    uint32_t node = ni_place(&topology, number, ni_services.n, &cpus);
    if (sbt_syscall3(SYS_sched_setaffinity, 0, sizeof cpus, &cpus) < 0 &&
        !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
        sbt_log(1, "NI threads cannot choose their CPUs", NULL);
    if (several_nodes && !ni_tile_bind(from, to, node))
        sbt_log(1, "memory of tiles cannot be bound to a node", NULL);
}
