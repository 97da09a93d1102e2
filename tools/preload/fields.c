/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Walks fields; see fields.h. */
#include "fields.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define VALUE(type) (*(const type *)at)

static void put_member(struct json *j, const struct field *f, const void *at) {
    switch (f->kind) {
    case FIELD_TEXT:
        json_text(j, f->key, VALUE(char *));
        break;
    case FIELD_CHARS:
        json_text(j, f->key, at);
        break;
    case FIELD_BOOL:
        json_bool(j, f->key, VALUE(bool));
        break;
    case FIELD_INT:
        json_int(j, f->key, VALUE(int));
        break;
    case FIELD_INT64:
        json_int(j, f->key, VALUE(int64_t));
        break;
    case FIELD_UINT32:
        json_uint(j, f->key, VALUE(uint32_t));
        break;
    case FIELD_UINT64:
    case FIELD_NS64:
        json_uint(j, f->key, VALUE(uint64_t));
        break;
    default:
        json_real(j, f->key, VALUE(double), f->n_decimals);
        break;
    }
}

static bool same_group(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_hidden(unsigned hidden, int column) {
    return (hidden & FIELDS_HIDE(column)) != 0;
}

void fields_json(struct json *j, const struct field *fields, unsigned hidden, const void *record) {
    const char *group = NULL;
    for (const struct field *f = fields; f->kind != FIELD_END; f++) {
        if (f->key == NULL || (f->column != 0 && is_hidden(hidden, f->column)))
            continue;
        if (!same_group(group, f->group)) {
            if (group != NULL)
                json_close(j, '}');
            if (f->group != NULL)
                json_open(j, f->group, '{');
            group = f->group;
        }
        put_member(j, f, (const char *)record + f->offset);
    }
    if (group != NULL)
        json_close(j, '}');
}

static const struct field *field_of_column(const struct field *fields, int column) {
    for (const struct field *f = fields; f->kind != FIELD_END; f++)
        if (f->column == column && f->heading != NULL)
            return f;
    return NULL;
}

struct table fields_table(const struct field *fields, unsigned hidden) {
    struct table t = {0};
    const struct field *f;
    for (int column = 1; (f = field_of_column(fields, column)) != NULL; column++) {
        if (is_hidden(hidden, column))
            continue;
        t.alignment[t.n_columns++] = f->kind == FIELD_TEXT || f->kind == FIELD_CHARS ? 'l' : 'r';
    }
    for (int column = 1; (f = field_of_column(fields, column)) != NULL; column++)
        if (!is_hidden(hidden, column))
            table_add(&t, "%s", f->heading);
    return t;
}

/* "-" for a NaN: the run has no such number. */
static void format_real(char cell[static 64], double value, int n_decimals, const char *unit) {
    if (isfinite(value))
        snprintf(cell, 64, "%.*f%s", n_decimals, value, unit);
    else
        snprintf(cell, 64, "-");
}

static const char *cell_of(const struct field *f, const void *at, char cell[static 64]) {
    switch (f->kind) {
    case FIELD_TEXT:
        return VALUE(char *);
    case FIELD_CHARS:
        return at;
    case FIELD_INT:
        snprintf(cell, 64, "%d", VALUE(int));
        break;
    case FIELD_INT64:
        snprintf(cell, 64, "%jd", (intmax_t)VALUE(int64_t));
        break;
    case FIELD_UINT32:
        snprintf(cell, 64, "%u", VALUE(uint32_t));
        break;
    case FIELD_UINT64:
        snprintf(cell, 64, "%ju", (uintmax_t)VALUE(uint64_t));
        break;
    case FIELD_NS64:
        format_ns(cell, (double)VALUE(uint64_t));
        break;
    case FIELD_NS:
        format_ns(cell, VALUE(double));
        break;
    case FIELD_REAL:
        format_real(cell, VALUE(double), 1, "");
        break;
    case FIELD_RATIO:
        format_real(cell, VALUE(double), 2, "");
        break;
    case FIELD_INDEX:
        format_real(cell, VALUE(double), 3, "");
        break;
    case FIELD_SHARE:
        format_real(cell, VALUE(double) * 100, 1, " %");
        break;
    case FIELD_SHARE_2:
        format_real(cell, VALUE(double) * 100, 2, " %");
        break;
    case FIELD_BOOL:
    case FIELD_END:
        return VALUE(bool) ? "yes" : "no";
    }
    return cell;
}

void fields_row(struct table *t, const struct field *fields, unsigned hidden, const void *record) {
    const struct field *f;
    char cell[64];
    for (int column = 1; (f = field_of_column(fields, column)) != NULL; column++)
        if (!is_hidden(hidden, column))
            table_add(t, "%s%s%s", f->heading[0] == '(' ? "(" : "", cell_of(f, (const char *)record + f->offset, cell),
                      f->heading[strlen(f->heading) - 1] == ')' ? ")" : "");
}
