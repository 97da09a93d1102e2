/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report on paper: as text, as JSON, as CSV, and as folded stacks. docs/report.md says what is in each. */
#ifndef CMD_REPORT_PRINT_H
#define CMD_REPORT_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "progress.h"
#include "report.h"
#include "report_names.h"

/* What `subutai compare` has measured of the command that advice names; the ratios are to the first engine. */
enum { REPORT_TRIED_ENGINES = 3 }; /* at most */
#define REPORT_TRY_ENGINES "glibc,direct,direct:wait=switch"
#define REPORT_TRY_DELEGATED "direct:wait=switch,delegate="
struct report_tried {
    int n_runs;
    bool identical; /* all runs had the same output and exit status */
    double base_ns; /* median of glibc's runs */
    struct {
        char name[160];
        double ns, ratio, ratio_min, ratio_max;
    } engines[REPORT_TRIED_ENGINES];
    size_t n_engines;
};

struct report_page {
    const char *path; /* of the trace */
    const struct sbt_trace *trace;
    const struct rep_report *report;
    struct names *names;
    unsigned top;                     /* rows of a table, elements of an array */
    const char *command;              /* the command line, in advice's commands */
    const struct report_tried *tried; /* NULL: nothing was measured */
};

void report_text(const struct report_page *page, FILE *out);
void report_json(const struct report_page *page, FILE *out);
void report_csv_heading(FILE *out);
void report_csv(const struct report_page *page, FILE *out);
/* False: the trace is damaged, and *error says where. */
bool report_folded(const struct report_page *page, FILE *out, struct progress *progress, struct sbt_trace_error *error);

/* What the advice says, and the command line to try, both allocated; *command may be NULL. */
char *report_advice_text(const struct report_page *page, const struct rep_advice *advice, char **command);

/*
 * The lock that --delegate would have of these, by its name: that of a hot lock or convoy, if it is a mutex. Of
 * `advice`, or, if that is NULL, of the first that has one. NULL: none.
 */
const char *report_delegated(const struct report_page *page, const struct rep_advice *advice);

/*
 * From which shares of the threads' active time in a lock's sections on delegation beats POSIX locks, and all others,
 * on the machine of the reports: "POSIX,ALL", in percent, or `never`, of bench/delegation-thresholds. Without a call
 * they are those of RCL's authors. False: it is something else.
 */
bool report_delegate_from(const char *shares);

/* By how many times the program would be faster, by its gain; NAN: the advice has none. */
double report_advice_ratio(const struct report_page *page, const struct rep_advice *advice);

/* The objects that a report shows, the most waiting first, then the most used: at most `top`, and at least those that
 * the advice is about. Allocated. */
uint32_t *report_objects(const struct report_page *page, uint32_t *n);

/* A row of the text's table of objects. */
struct report_row {
    uint32_t object; /* of a class one of its objects */
    bool is_class;   /* it stands for n_objects objects that were made at the same call site */
    uint64_t n_objects, n, n_contended, wait_ns, hold_n, hold_ns, path_ns;
};
/* All rows, the most time on the critical path or waiting first, then the most used. Allocated. */
struct report_row *report_rows(const struct report_page *page, uint32_t *n);
char *report_row_name(const struct report_page *page, const struct report_row *row); /* allocated */
const char *report_plural(unsigned type);                                            /* "mutexes", ... */

#endif
