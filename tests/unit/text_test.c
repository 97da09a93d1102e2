/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* text/: decimal digits, and JSON that is valid whatever the text, the number and the program's locale are. */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decimal.h"
#include "json.h"
#include "lib/suite.h"
#include "words.h"

static char document[4096];
static size_t n_document;

static void take(void *to, const char *bytes, size_t n) {
    ck_assert_ptr_eq(to, &n_document);
    ck_assert_uint_lt(n_document + n, sizeof document);
    memcpy(document + n_document, bytes, n);
    document[n_document += n] = '\0';
}

static struct json begin(void) {
    n_document = 0;
    document[0] = '\0';
    return (struct json){.put = take, .to = &n_document};
}

/* What json.c is compiled with here in place of snprintf: the decimal point of a locale, of two bytes. */
int other_point_snprintf(char *to, size_t size, const char *format, ...);
int other_point_snprintf(char *to, size_t size, const char *format, ...) {
    char plain[512];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(plain, sizeof plain, format, list);
    va_end(list);
    char *point = strchr(plain, '.');
    if (point == NULL)
        return snprintf(to, size, "%s", plain);
    *point = '\0';
    snprintf(to, size, "%s\xd9\xab%s", plain, point + 1);
    return n + 1;
}

TEST(decimals) {
    static const uint64_t numbers[] = {0, 9, 10, 4294967296, UINT64_MAX};
    char digits[DECIMAL_SIZE], expected[32];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(expected, sizeof expected, "%ju", (uintmax_t)numbers[i]);
        ck_assert_str_eq(decimal_of(digits, numbers[i]), expected);
    }
}

TEST(commas) {
    struct json j = begin();
    json_open(&j, NULL, '{');
    json_open(&j, "empty", '[');
    json_close(&j, ']');
    json_open(&j, "list", '[');
    json_uint(&j, NULL, UINT64_MAX);
    json_int(&j, NULL, INT64_MIN);
    json_int(&j, NULL, -1);
    json_open(&j, NULL, '{');
    json_close(&j, '}');
    json_close(&j, ']');
    json_bool(&j, "yes", true);
    json_line(&j);
    json_text(&j, "none", NULL);
    json_close(&j, '}');
    json_end(&j);
    json_bool(&j, NULL, false);
    ck_assert_str_eq(document,
                     "{\"empty\":[],\"list\":[18446744073709551615,-9223372036854775808,-1,{}],\"yes\":true,\n"
                     "\"none\":null}\nfalse");
}

TEST(texts) {
    static const char *const pairs[][2] = {
        {"", "\"\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\n\x1f\x7f", "\"\\u000a\\u001f\\u007f\""},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff", "\"\\ufffd\""},
        {"\xc3", "\"\\ufffd\""},                                  /* ends too early */
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},                       /* overlong */
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},            /* a surrogate */
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* above U+10FFFF */
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct json j = begin();
        json_text(&j, NULL, pairs[i][0]);
        ck_assert_str_eq(document, pairs[i][1]);
    }
}

TEST(reals) {
    static const struct {
        double value;
        int n_decimals;
        const char *text;
    } cases[] = {
        {0, 0, "0"},          {1.25, 1, "1.2"}, {-1.005, 2, "-1.00"},   {1e21, 3, "1000000000000000000000.000"},
        {0.0004, 3, "0.000"}, {NAN, 2, "null"}, {-INFINITY, 0, "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json j = begin();
        json_real(&j, NULL, cases[i].value, cases[i].n_decimals);
        ck_assert_str_eq(document, cases[i].text);
    }
    struct json j = begin();
    json_significant(&j, NULL, 1234.5678, 6);
    json_significant(&j, NULL, 400, 6);
    json_significant(&j, NULL, -1.5e-30, 9);
    json_significant(&j, NULL, NAN, 9);
    ck_assert_str_eq(document, "1234.57,400,-1.5e-30,null");
    j = begin();
    json_real(&j, NULL, -1.7976931348623157e308, 1000); /* the longest, and more decimals than there are */
    ck_assert_uint_eq(n_document, 1 + 309 + 1 + 20);
}

/* ---- command lines ---- */

static const char *quoted(const char *words, size_t n, size_t room) {
    static char text[128];
    memset(text, '~', sizeof text);
    size_t length = words_quote(text, room, words, n);
    ck_assert_uint_le(length, room);
    ck_assert(text[room] == '~'); /* nothing behind its room */
    text[length] = '\0';
    return text;
}
#define QUOTED(words) quoted(words, sizeof(words) - 1, 100)

TEST(command_lines) {
    ck_assert_str_eq(QUOTED(""), "");
    ck_assert_str_eq(QUOTED("./app\0-n=4\0"), "./app -n=4");
    ck_assert_str_eq(QUOTED("sh\0-c\0a; b"), "sh -c 'a; b'");
    ck_assert_str_eq(QUOTED("a\0\0it's\0...\0"), "a '' 'it'\\''s' '...'");
    ck_assert_str_eq(quoted("one\0two\0three\0", 14, 16), "one two ...");
    ck_assert_str_eq(quoted("one\0two\0three\0", 14, 18), "one two three");
    ck_assert_str_eq(quoted("nothing fits\0", 13, 8), "...");
}

TEST(command_lines_are_read_back) {
    static const char words[] = "a\0\0it's \\ \"so\"\0$HOME `x` * #\0...\0\nend";
    char text[128], *read[8];
    size_t n = words_quote(text, sizeof text - 1, words, sizeof words - 1);
    text[n] = '\0';
    ck_assert_uint_eq(words_split(text, read, 8), 6);
    const char *word = words;
    for (size_t i = 0; i < 6; word += strlen(word) + 1, i++)
        ck_assert_str_eq(read[i], word);
}

static size_t split(const char *line, char **words) {
    static char text[64];
    snprintf(text, sizeof text, "%s", line);
    return words_split(text, words, 3);
}

TEST(command_lines_of_people) {
    char *words[3];
    ck_assert_uint_eq(split("  a\t\"b \\\" \\n\"'c'  d\\ e ", words), 3);
    ck_assert_str_eq(words[1], "b \" \\nc");
    ck_assert_str_eq(words[2], "d e");
    ck_assert_uint_eq(split("", words), 0);
    ck_assert_uint_eq(split("a b c d", words), WORDS_BAD);
    ck_assert_uint_eq(split("a 'b", words), WORDS_BAD);
    ck_assert_uint_eq(split("a \"b\\", words), WORDS_BAD);
    ck_assert_uint_eq(split("a b\\", words), WORDS_BAD);
    ck_assert_uint_eq(split("a ...", words), WORDS_BAD);
    ck_assert_uint_eq(split("a '...'", words), 2);
}
