/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A small JSON writer and a reader of flat numbers; see json.h. */
#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void write_text(FILE *out, const char *text) {
    putc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0';) {
        size_t n = utf8_length(s);
        if (n == 0) {
            fputs("\\ufffd", out);
            n = 1;
        } else if (*s == '"' || *s == '\\') {
            fprintf(out, "\\%c", *s);
        } else if (*s < 0x20 || *s == 0x7f) {
            fprintf(out, "\\u%04x", *s);
        } else {
            fwrite(s, 1, n, out);
        }
        s += n;
    }
    putc('"', out);
}

static void start_member(struct json *j, const char *key) {
    if (j->needs_comma)
        putc(',', j->out);
    j->needs_comma = true;
    if (key != NULL) {
        write_text(j->out, key);
        putc(':', j->out);
    }
}

void json_open(struct json *j, const char *key, char bracket) {
    start_member(j, key);
    putc(bracket, j->out);
    j->needs_comma = false;
}

void json_close(struct json *j, char bracket) {
    putc(bracket, j->out);
    j->needs_comma = true;
}

void json_text(struct json *j, const char *key, const char *s) {
    start_member(j, key);
    if (s == NULL)
        fputs("null", j->out);
    else
        write_text(j->out, s);
}

void json_int(struct json *j, const char *key, int64_t i) {
    start_member(j, key);
    fprintf(j->out, "%jd", (intmax_t)i);
}

void json_real(struct json *j, const char *key, double d, int n_decimals) {
    start_member(j, key);
    if (isfinite(d))
        fprintf(j->out, "%.*f", n_decimals, d);
    else
        fputs("null", j->out);
}

void json_bool(struct json *j, const char *key, bool b) {
    start_member(j, key);
    fputs(b ? "true" : "false", j->out);
}

void json_line(struct json *j) {
    if (j->needs_comma)
        putc(',', j->out);
    putc('\n', j->out);
    j->needs_comma = false;
}

void json_end(struct json *j) {
    putc('\n', j->out);
    j->needs_comma = false;
}

bool json_find_number(const char *text, const char *key, double *value) {
    size_t n = strlen(key);
    for (const char *at = text; (at = strchr(at, '"')) != NULL; at++) {
        if (strncmp(at + 1, key, n) != 0 || at[1 + n] != '"')
            continue;
        const char *number = at + 2 + n;
        number += strspn(number, " \t");
        if (*number++ != ':')
            continue;
        number += strspn(number, " \t");
        char *end;
        *value = strtod(number, &end);
        return end != number && (*number == '-' || (*number >= '0' && *number <= '9'));
    }
    return false;
}
