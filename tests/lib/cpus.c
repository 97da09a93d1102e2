/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpus.h"

#include "checks.h"

#include <sched.h>

void stay_on_one_cpu(void) {
    cpu_set_t set;
    SYS(sched_getaffinity(0, sizeof set, &set));
    for (int i = 0, n = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set) && n++ > 0)
            CPU_CLR(i, &set);
    SYS(sched_setaffinity(0, sizeof set, &set));
}
