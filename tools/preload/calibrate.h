/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of `subutai calibrate` share. subutai-calibrate (bench/calibrate) measures a part and prints samples;
 * calibrate_run.c runs it for each part and collects; calibrate_report.c makes the file and the table of it.
 */
#ifndef CMD_CALIBRATE_H
#define CMD_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "calibrate_busy.h"
#include "host_costs.h"

struct cost_samples {
    double *value;
    size_t n;
};

struct calibration {
    const char *program, *library;
    double seconds; /* for all parts together */
    char cpu_name[SIM_HOST_TEXT], kernel_name[SIM_HOST_TEXT], libc_name[SIM_HOST_TEXT];
    uint32_t n_cpus, n_cores;
    struct cost_samples *samples; /* of each row of sim_host_cost_table */
    double own_s;                 /* CPU time that the runs used */
    struct busy_shares busy;
    double took_s;
    int64_t at; /* when it was measured, seconds since 1970 */
    bool forced;
};

/* What the machine is: names, CPUs, caches. A machine that cannot be measured is refused. */
void calibrate_machine(struct calibration *c);
/* Everything else, with progress on a terminal. */
void calibrate_measure(struct calibration *c);

/*
 * The file's text, allocated; *n its length. Refused if it is not what sim_host_costs_parse() reads: no file is better
 * than a file that predict refuses.
 */
char *calibrate_text(const struct calibration *c, size_t *n);
void calibrate_table(const struct calibration *c, FILE *out);

#endif
