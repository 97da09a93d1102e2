/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Is the machine busy with anything but the measurement? From the kernel's count of each CPU's time. */
#ifndef CMD_CALIBRATE_BUSY_H
#define CMD_CALIBRATE_BUSY_H

#include <sched.h>
#include <stdbool.h>

/* Above these shares a measurement is not trusted: of the CPUs' time, what others used, what the hypervisor took. */
#define BUSY_SHARE_MAX 0.05
#define STOLEN_SHARE_MAX 0.02

/* Time of some CPUs together since the machine started, seconds. */
struct cpu_time {
    double used, stolen, all; /* all: with idle time */
};

/* From the text of /proc/stat, for the CPUs in `cpus`. False: the text has not all of them. */
bool cpu_time_read(const char *text, const cpu_set_t *cpus, double ticks_a_second, struct cpu_time *time);

struct busy_shares {
    double others, stolen; /* of all CPU time */
};

/* What happened between two readings, less `own` seconds that the measurement itself used. */
struct busy_shares busy_shares(const struct cpu_time *before, const struct cpu_time *after, double own);
bool is_busy(const struct busy_shares *shares);

/* This machine now, for the CPUs that the process may use. Refuses where /proc/stat does not tell. */
struct cpu_time cpu_time_now(void);

#endif
