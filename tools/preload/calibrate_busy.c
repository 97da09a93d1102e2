/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How busy the machine is; see calibrate_busy.h. */
#include "calibrate_busy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

/* A line of a CPU: "cpu3 user nice system idle iowait irq softirq steal guest guest_nice"; guests are in user too. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N_TIMES };

bool cpu_time_read(const char *text, const cpu_set_t *cpus, double ticks_a_second, struct cpu_time *time) {
    int n = 0;
    *time = (struct cpu_time){0};
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        double t[N_TIMES];
        int cpu;
        line += *line == '\n';
        if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, &t[USER], &t[NICE], &t[SYSTEM], &t[IDLE],
                   &t[IOWAIT], &t[IRQ], &t[SOFTIRQ], &t[STEAL]) != 1 + N_TIMES ||
            cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, cpus))
            continue;
        double used = t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ];
        time->used += used / ticks_a_second;
        time->stolen += t[STEAL] / ticks_a_second;
        time->all += (used + t[IDLE] + t[IOWAIT] + t[STEAL]) / ticks_a_second;
        n++;
    }
    return n == CPU_COUNT(cpus);
}

struct busy_shares busy_shares(const struct cpu_time *before, const struct cpu_time *after, double own) {
    double all = after->all - before->all, others = after->used - before->used - own;
    if (!(all > 0))
        return (struct busy_shares){0, 0};
    /* The kernel counts by ticks, and own time exactly: a small difference may be negative. */
    return (struct busy_shares){others > 0 ? others / all : 0, (after->stolen - before->stolen) / all};
}

bool is_busy(const struct busy_shares *shares) {
    return shares->others > BUSY_SHARE_MAX || shares->stolen > STOLEN_SHARE_MAX;
}

struct cpu_time cpu_time_now(void) {
    cpu_set_t cpus;
    struct cpu_time time;
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL || getdelim(&text, &size, '\0', file) < 0 || sched_getaffinity(0, sizeof cpus, &cpus) != 0)
        cmd_refuse("calibrate: /proc/stat: %s", strerror(errno));
    fclose(file);
    if (!cpu_time_read(text, &cpus, (double)sysconf(_SC_CLK_TCK), &time))
        cmd_refuse("calibrate: /proc/stat does not tell how busy the CPUs are");
    free(text);
    return time;
}
