/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A JSON writer. It allocates nothing, opens nothing and takes no lock: the caller says where the bytes go. So the
 * command, the bench programs and the library's own report at exit share it. Source: RFC 8259.
 *
 * The writer sets the commas. `key` is NULL for an element of an array and at the top level. The result is valid JSON
 * whatever the text is: each byte that is not UTF-8 (a file name may hold any) becomes U+FFFD.
 */
#ifndef TEXT_JSON_H
#define TEXT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes `n` bytes of the document. An error is the receiver's to remember: the writer goes on. */
typedef void json_sink(void *to, const char *bytes, size_t n);

struct json {
    json_sink *put;
    void *to; /* handed to `put` */
    bool needs_comma;
};

void json_open(struct json *j, const char *key, char bracket);  /* '{' or '[' */
void json_close(struct json *j, char bracket);                  /* '}' or ']' */
void json_text(struct json *j, const char *key, const char *s); /* NULL is written as null */
void json_int(struct json *j, const char *key, int64_t i);
void json_uint(struct json *j, const char *key, uint64_t u);
/* Exactly rounded to that many decimals, at most 20. NaN and infinity, which JSON has not, are written as null. */
void json_real(struct json *j, const char *key, double d, int n_decimals);
/* To that many significant digits, at most 20, with an exponent where that is shorter. */
void json_significant(struct json *j, const char *key, double d, int n_digits);
void json_bool(struct json *j, const char *key, bool b);
/* A comma and a line break in front of the next member, for people and line tools that read along. */
void json_line(struct json *j);
/* Ends a document with a line break; another one may follow. */
void json_end(struct json *j);

#endif
