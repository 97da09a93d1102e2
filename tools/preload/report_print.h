/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report on paper: as text, as JSON, as CSV, and as folded stacks. docs/report.md says what is in each. */
#ifndef CMD_REPORT_PRINT_H
#define CMD_REPORT_PRINT_H

#include <stdio.h>

#include "report.h"
#include "report_names.h"

struct report_page {
    const char *path; /* of the trace */
    const struct sbt_trace *trace;
    const struct rep_report *report;
    struct names *names;
    unsigned top; /* rows of a table, elements of an array */
};

void report_text(const struct report_page *page, FILE *out);
void report_json(const struct report_page *page, FILE *out);
void report_csv_heading(FILE *out);
void report_csv(const struct report_page *page, FILE *out);
/* False: the trace is damaged, and *error says where. */
bool report_folded(const struct report_page *page, FILE *out, struct sbt_trace_error *error);

/* What the advice says, and the command line to try, both allocated; *command may be NULL. */
char *report_advice_text(const struct report_page *page, const struct rep_advice *advice, char **command);

/* The objects that a report shows, the most waiting first, then the most used: at most `top`, and at least those that
 * the advice is about. Allocated. */
uint32_t *report_objects(const struct report_page *page, uint32_t *n);

#endif
