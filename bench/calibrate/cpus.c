/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPUs and cores that the process may use. */
#include "calibrate.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static cpu_set_t usable;

/* Is `cpu` in the list of that file: "0-1,4"? False where the kernel does not tell. */
static bool add_list(int of_cpu, const char *file, cpu_set_t *set) {
    char path[160], text[4096];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", of_cpu, file);
    FILE *list = fopen(path, "re");
    if (list == NULL)
        return false;
    bool any = fgets(text, sizeof text, list) != NULL;
    for (char *p = text, *end; any; p = end + 1) {
        long from = strtol(p, &end, 10), to = from;
        if (end != p && *end == '-')
            to = strtol(end + 1, &end, 10);
        for (; end != p && from <= to && from < CPU_SETSIZE; from++)
            CPU_SET((size_t)from, set);
        if (end == p || *end != ',')
            break;
    }
    fclose(list);
    return any;
}

const struct cpus *cpus_usable(void) {
    static struct cpus c;
    cpu_set_t known; /* CPUs of the cores found so far */
    if (c.n > 0)
        return &c;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0)
        fail("sched_getaffinity: %s", strerror(errno));
    CPU_ZERO(&known);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((size_t)cpu, &usable))
            continue;
        c.cpu[c.n++] = cpu;
        if (CPU_ISSET((size_t)cpu, &known))
            continue;
        c.core[c.n_cores++] = cpu;
        if (!add_list(cpu, "topology/thread_siblings_list", &known))
            CPU_SET((size_t)cpu, &known);
    }
    return &c;
}

int cpus_sharing(int cpu, const char *list) {
    cpu_set_t set;
    CPU_ZERO(&set);
    cpus_usable();
    if (!add_list(cpu, list, &set))
        return 1;
    CPU_AND(&set, &set, &usable);
    return CPU_COUNT(&set);
}

/* Straight to the kernel: a thread that is pinned through the C library is no fiber, and a fiber's cost is wanted. */
void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (syscall(SYS_sched_setaffinity, 0, sizeof set, &set) != 0)
        fail("CPU %d: sched_setaffinity: %s", cpu, strerror(errno));
}

void cpus_pair(int pair[static 2]) {
    const struct cpus *c = cpus_usable();
    if (c->n < 2)
        refuse("this process may use one CPU, and two are needed");
    pair[0] = c->core[0];
    pair[1] = c->n_cores > 1 ? c->core[1] : c->cpu[1];
}
