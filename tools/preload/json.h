/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writing JSON, and reading single numbers out of a flat object.
 *
 * The writer puts commas by itself. `key` is NULL for the elements of an array and at the top level. Text that is
 * not UTF-8 (file names may be anything) is written with U+FFFD for each wrong byte: the result is always valid.
 */
#ifndef CMD_JSON_H
#define CMD_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool needs_comma;
};

void json_open(struct json *j, const char *key, char bracket);  /* '{' or '[' */
void json_close(struct json *j, char bracket);                  /* '}' or ']' */
void json_text(struct json *j, const char *key, const char *s); /* NULL writes null */
void json_int(struct json *j, const char *key, int64_t i);
void json_real(struct json *j, const char *key, double d, int n_decimals); /* NaN writes null */
void json_bool(struct json *j, const char *key, bool b);
/* Comma and line break in front of the next member, for people and line tools that read along. */
void json_line(struct json *j);
/* Ends a document with a line break; another one may follow. */
void json_end(struct json *j);

/* The number of member `key` in the flat object `text`; false if there is none. */
bool json_find_number(const char *text, const char *key, double *value);

#endif
