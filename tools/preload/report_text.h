/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of the text share: it is at most TEXT_WIDTH columns wide. */
#ifndef CMD_REPORT_TEXT_H
#define CMD_REPORT_TEXT_H

#include <stdio.h>

#include "report_print.h"
#include "table.h"

enum { TEXT_WIDTH = 100 };

struct text {
    const struct report_page *page;
    const struct rep_report *r;
    FILE *out;
};

/* Words of `text` on lines of at most TEXT_WIDTH columns; the first line begins behind `first`, the others behind
 * blanks. */
void text_paragraph(FILE *out, const char *first, const char *text);
double text_percent(double part, double whole);
void text_heading(const struct text *t, const char *words);
void text_ns(struct table *table, double ns);
/* Shortened in the middle to `width` columns. */
void text_name(struct table *table, const char *name, size_t width);
unsigned text_most(const struct text *t, size_t n); /* rows of a table, of n */

/* The critical path, objects, waits, chains, barriers, tasks, orders of locks, threads. */
void text_tables(const struct text *t);

#endif
