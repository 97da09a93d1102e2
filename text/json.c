/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The JSON writer; see json.h. snprintf writes into a buffer on the stack: for so few digits it allocates nothing. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "decimal.h"

enum {
    MAX_DECIMALS = 20,
    REAL_SIZE = 1 + 309 + 8 + MAX_DECIMALS + 1 /* sign, digits of DBL_MAX, point of any locale, decimals, terminator */
};

static void put(struct json *j, const char *s) {
    j->put(j->to, s, strlen(s));
}

/* Length of the well-formed UTF-8 sequence at `s` (RFC 3629: no overlong forms, no surrogates), 0 if there is none. */
static size_t utf8_length(const unsigned char *s) {
    if (s[0] < 0x80)
        return 1;
    unsigned char low = 0x80, high = 0xbf;
    size_t n = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
    if (s[0] == 0xe0)
        low = 0xa0;
    else if (s[0] == 0xed)
        high = 0x9f;
    else if (s[0] == 0xf0)
        low = 0x90;
    else if (s[0] == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < n; i++, low = 0x80, high = 0xbf)
        if (s[i] < low || s[i] > high) /* also stops at the terminator */
            return 0;
    return n;
}

static void put_escaped(struct json *j, unsigned char c) {
    char escape[8];
    if (c == '"' || c == '\\')
        snprintf(escape, sizeof escape, "\\%c", c);
    else
        snprintf(escape, sizeof escape, "\\u%04x", c);
    put(j, escape);
}

static void put_text(struct json *j, const char *text) {
    put(j, "\"");
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0';) {
        size_t n = utf8_length(s);
        if (n == 0)
            put(j, "\\ufffd");
        else if (*s == '"' || *s == '\\' || *s < 0x20 || *s == 0x7f)
            put_escaped(j, *s);
        else
            j->put(j->to, (const char *)s, n);
        s += n > 0 ? n : 1;
    }
    put(j, "\"");
}

static void start_member(struct json *j, const char *key) {
    if (j->needs_comma)
        put(j, ",");
    j->needs_comma = true;
    if (key != NULL) {
        put_text(j, key);
        put(j, ":");
    }
}

void json_open(struct json *j, const char *key, char bracket) {
    start_member(j, key);
    j->put(j->to, &bracket, 1);
    j->needs_comma = false;
}

void json_close(struct json *j, char bracket) {
    j->put(j->to, &bracket, 1);
    j->needs_comma = true;
}

void json_text(struct json *j, const char *key, const char *s) {
    start_member(j, key);
    if (s == NULL)
        put(j, "null");
    else
        put_text(j, s);
}

void json_uint(struct json *j, const char *key, uint64_t u) {
    char digits[DECIMAL_SIZE];
    start_member(j, key);
    put(j, decimal_of(digits, u));
}

void json_int(struct json *j, const char *key, int64_t i) {
    char digits[DECIMAL_SIZE];
    start_member(j, key);
    if (i < 0)
        put(j, "-");
    put(j, decimal_of(digits, i < 0 ? -(uint64_t)i : (uint64_t)i));
}

/* The program's locale may have another decimal point than JSON, of several bytes. */
static void put_number(struct json *j, const char *digits) {
    static const char ours[] = "+-0123456789e";
    size_t whole = strspn(digits, ours);
    j->put(j->to, digits, whole);
    digits += whole;
    if (*digits != '\0') {
        put(j, ".");
        put(j, digits + strcspn(digits, ours));
    }
}

static void put_double(struct json *j, char format, const char *key, double d, int n) {
    char digits[REAL_SIZE];
    start_member(j, key);
    if (!isfinite(d)) {
        put(j, "null");
        return;
    }
    n = n < MAX_DECIMALS ? n : MAX_DECIMALS;
    if (format == 'f')
        snprintf(digits, sizeof digits, "%.*f", n, d);
    else
        snprintf(digits, sizeof digits, "%.*g", n, d);
    put_number(j, digits);
}

void json_real(struct json *j, const char *key, double d, int n_decimals) {
    put_double(j, 'f', key, d, n_decimals);
}

void json_significant(struct json *j, const char *key, double d, int n_digits) {
    put_double(j, 'g', key, d, n_digits);
}

void json_bool(struct json *j, const char *key, bool b) {
    start_member(j, key);
    put(j, b ? "true" : "false");
}

void json_line(struct json *j) {
    put(j, j->needs_comma ? ",\n" : "\n");
    j->needs_comma = false;
}

void json_end(struct json *j) {
    put(j, "\n");
    j->needs_comma = false;
}
