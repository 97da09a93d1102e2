/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One row for one number. A field says where a number lies in a report's record, its names in JSON and in a table, and
 * how a table shows it. The JSON object and the table of a report walk the same array of fields, so both have the same
 * numbers.
 */
#ifndef CMD_FIELDS_H
#define CMD_FIELDS_H

#include <stddef.h>

#include "json_file.h"
#include "table.h"

/* The type of what lies at the field's offset, and how a table shows it. JSON has the plain value. */
enum field_kind {
    FIELD_END,     /* ends an array of fields */
    FIELD_TEXT,    /* const char *; NULL is null in JSON */
    FIELD_CHARS,   /* char [], terminated */
    FIELD_BOOL,    /* bool */
    FIELD_INT,     /* int */
    FIELD_INT64,   /* int64_t */
    FIELD_UINT32,  /* uint32_t */
    FIELD_UINT64,  /* uint64_t */
    FIELD_NS64,    /* uint64_t, nanoseconds: "1.2 ms" */
    FIELD_NS,      /* double, nanoseconds: the same */
    FIELD_REAL,    /* double: one decimal */
    FIELD_RATIO,   /* double: two decimals, "-" for a NaN */
    FIELD_INDEX,   /* double: three decimals, "-" for a NaN */
    FIELD_SHARE,   /* double, a part of 1: percent with one decimal */
    FIELD_SHARE_2, /* the same with two decimals */
};

struct field {
    const char *group; /* JSON: the object that has this field and its neighbours of the same group; NULL: none */
    const char *key;   /* JSON: the member; NULL: not in JSON */
    /* heading of the table's column; its cells have a parenthesis of it too; NULL: not in the table */
    const char *heading;
    int column; /* place of the column in the table, from 1; the array is in the order of JSON */
    enum field_kind kind;
    size_t offset;  /* in the record */
    int n_decimals; /* of a double in JSON */
};

/* Write the members of the object that is open in `j`, without the fields of the columns of `hidden`: FIELDS_HIDE,
 * or-ed; 0: all. */
#define FIELDS_HIDE(column) (1u << (column))
void fields_json(struct json *j, const struct field *fields, unsigned hidden, const void *record);

/* A table with the headings of those fields, without the hidden columns; then its rows, one after another. */
struct table fields_table(const struct field *fields, unsigned hidden);
void fields_row(struct table *t, const struct field *fields, unsigned hidden, const void *record);

#endif
