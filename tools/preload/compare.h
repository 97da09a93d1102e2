/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Results of `subutai compare`: filled in by cmd_compare.c, printed by compare_report.c.
 *
 * A comparison has a point for each value of -n (or a single point). A point has a side for each engine, and a side a
 * record for each measured run. The reference for "same" is the first run of the first engine at that point, a warm-up
 * if there is one. The first engine's own later runs are compared with it too, which reveals programs that are not
 * deterministic.
 */
#ifndef CMD_COMPARE_H
#define CMD_COMPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "measure.h"

struct run_record {
    int64_t wall_ns, cpu_ns, peak_kib;
    char outcome[32];
    bool same_status, same_output;
};

struct side {
    struct run_record *records; /* n_runs */
    char outcome[32];           /* of its first run */
    /* Warm-ups count too. */
    int n_other_status, n_other_output, n_timeouts;
    bool showed_stderr, showed_library;
};

struct point {
    uint64_t threads;    /* the value of -n; 0: -n is not given */
    bool missing_output; /* a file of --output was not written */
    struct side sides[MAX_ENGINE_SPECS];
};

struct comparison {
    char *const *command_line; /* with {} as the user wrote it */
    struct measure measure;
    bool sweep;
    struct point *points;
    size_t n_points;
};

bool point_is_same(const struct comparison *c, const struct point *point);
void compare_print_table(const struct comparison *c, FILE *out);
void compare_print_json(const struct comparison *c, FILE *out);

#endif
