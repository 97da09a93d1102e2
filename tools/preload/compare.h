/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Results of `subutai compare`: filled by cmd_compare.c, printed by compare_report.c.
 *
 * A comparison has one point per value of -n (or a single one), a point one side per engine, a side one record per
 * measured run. The reference for "same" is the first run of the first engine at that point, a warm-up if there is one:
 * the first engine's own later runs are held against it as well, which shows programs that are not deterministic.
 */
#ifndef CMD_COMPARE_H
#define CMD_COMPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "contender.h"

struct run_record {
    int64_t wall_ns, cpu_ns, peak_kib;
    char outcome[32];
    bool same_status, same_output;
};

struct side {
    struct run_record *records; /* n_runs */
    char outcome[32];           /* of its first run */
    /* Over warm-ups too. */
    int n_other_status, n_other_output, n_timeouts;
    bool showed_stderr, showed_library;
};

struct point {
    uint64_t threads;    /* value of -n, 0 without */
    bool missing_output; /* a file named by --output was not written */
    struct side sides[MAX_CONTENDERS];
};

struct comparison {
    char *const *command_line; /* {} not replaced */
    struct contender contenders[MAX_CONTENDERS];
    size_t n_contenders;
    int n_runs, n_warmups;
    size_t n_beside;
    bool sweep;
    struct point *points;
    size_t n_points;
};

bool point_is_same(const struct comparison *c, const struct point *point);
void compare_print_table(const struct comparison *c, FILE *out);
void compare_print_json(const struct comparison *c, FILE *out);

#endif
