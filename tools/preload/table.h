/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table for people: cells are collected row by row; a column is as wide as its widest cell. */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include <stddef.h>
#include <stdio.h>

enum { TABLE_MAX_COLUMNS = 16 };

struct table {
    size_t n_columns;
    char alignment[TABLE_MAX_COLUMNS + 1]; /* one character per column: 'l' or 'r' */
    char **cells;
    size_t n_cells, capacity;
};

/* Append a cell; a full row starts the next row. The first row is the heading. */
void table_add(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Print the rows and forget them. */
void table_print(struct table *t, FILE *out);

/* "812 us", "12.3 ms", "1.234 s" in `buffer`; "-" for a NaN. */
const char *format_ns(char buffer[static 32], double ns);

#endif
