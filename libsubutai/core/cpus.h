/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The CPUs that the process may use: those that its threads may run on, and no more than its control group has CPU time
 * for (os/quota.h). sbt_n_cpus (core/thread.h) is their number. Both change while the program runs: `taskset -p`,
 * sched_setaffinity, a container's limits. So threads look again.
 */
#ifndef SBT_CORE_CPUS_H
#define SBT_CORE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

/* Once, at start-up: which CPUs the caller may run on. Reads no file. */
void sbt_cpus_start(void);

/* May the caller run on the CPUs that the process began with, and on no others? A system call. */
bool sbt_cpus_are_as_at_start(void);

/*
 * Look again, if the last look is a tenth of a second old. For a thread that is about to sleep or to create a thread,
 * and for the monitor: a program that never waits need not know. The first call always looks. A tenth of the looks
 * reads files. Reads a clock of some nanoseconds otherwise. May be called in a signal handler.
 */
void sbt_cpus_look(void);

/* CPUs of the machine: no fewer than may be used. May read a file. */
uint32_t sbt_cpus_most(void);

/* Do not look any more: a filter of system calls is about to be set, which may end the process at a look. */
void sbt_cpus_forbid(void);

/* In a forked child: a thread that looks does not exist here. */
void sbt_cpus_fork_child(void);

#endif
