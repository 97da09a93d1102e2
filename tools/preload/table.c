/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Aligned tables and the formats of their numbers; see table.h. */
#include "table.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

void table_add(struct table *t, const char *format, ...) {
    if (t->n_cells == t->capacity) {
        size_t capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
        char **cells = cmd_allocate(capacity, sizeof *cells);
        for (size_t i = 0; i < t->n_cells; i++)
            cells[i] = t->cells[i];
        free(t->cells);
        t->cells = cells;
        t->capacity = capacity;
    }
    va_list list;
    va_start(list, format);
    if (vasprintf(&t->cells[t->n_cells], format, list) < 0)
        cmd_refuse("out of memory");
    va_end(list);
    t->n_cells++;
}

void table_print(struct table *t, FILE *out) {
    for (size_t i = 0; i < t->n_cells; i++) {
        size_t column = i % t->n_columns, width = 0;
        for (size_t k = column; k < t->n_cells; k += t->n_columns)
            width = strlen(t->cells[k]) > width ? strlen(t->cells[k]) : width;
        if (column + 1 == t->n_columns && t->alignment[column] == 'l')
            fprintf(out, "%s\n", t->cells[i]);
        else
            fprintf(out, t->alignment[column] == 'l' ? "%-*s%s" : "%*s%s", (int)width, t->cells[i],
                    column + 1 == t->n_columns ? "\n" : "  ");
    }
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i]);
    free(t->cells);
    t->cells = NULL;
    t->n_cells = t->capacity = 0;
}

const char *format_ns(char buffer[static 32], double ns) {
    if (!isfinite(ns))
        snprintf(buffer, 32, "-");
    else if (ns < 1e3)
        snprintf(buffer, 32, "%.1f ns", ns);
    else if (ns < 1e6)
        snprintf(buffer, 32, "%.1f us", ns / 1e3);
    else if (ns < 1e9)
        snprintf(buffer, 32, "%.1f ms", ns / 1e6);
    else
        snprintf(buffer, 32, "%.3f s", ns / 1e9);
    return buffer;
}
