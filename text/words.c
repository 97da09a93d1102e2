/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Quoted command lines; see words.h. */
#include "words.h"

#include <stdbool.h>
#include <string.h>

/* Of these a shell changes none, wherever they stand. */
static bool is_plain(const char *word, size_t n) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_+=:,./-";
    for (size_t i = 0; i < n; i++)
        if (memchr(plain, word[i], sizeof plain - 1) == NULL)
            return false;
    return n > 0 && !(n == strlen(WORDS_CUT) && memcmp(word, WORDS_CUT, n) == 0);
}

/* Appends to the text of *at bytes. False: there is no room. */
static bool put(char *to, size_t *at, size_t room, const char *bytes, size_t n) {
    if (room - *at < n)
        return false;
    memcpy(to + *at, bytes, n);
    *at += n;
    return true;
}

static bool put_word(char *to, size_t *at, size_t room, const char *word, size_t n) {
    if (is_plain(word, n))
        return put(to, at, room, word, n);
    bool fits = put(to, at, room, "'", 1);
    for (size_t i = 0; i < n && fits; i++)
        fits = word[i] == '\'' ? put(to, at, room, "'\\''", 4) : put(to, at, room, word + i, 1);
    return fits && put(to, at, room, "'", 1);
}

size_t words_quote(char *to, size_t room, const char *words, size_t n) {
    size_t at = 0, whole = 0, kept = room - strlen(WORDS_CUT) - 1;
    for (size_t from = 0; from < n;) {
        const char *end = memchr(words + from, '\0', n - from);
        size_t length = end != NULL ? (size_t)(end - words) - from : n - from;
        if ((at > 0 && !put(to, &at, kept, " ", 1)) || !put_word(to, &at, kept, words + from, length)) {
            at = whole;
            put(to, &at, room, " ", at > 0);
            put(to, &at, room, WORDS_CUT, strlen(WORDS_CUT));
            return at;
        }
        whole = at;
        from += length + 1;
    }
    return at;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n';
}

/* Takes the quotes off the word at *text, and moves *text behind it. False: a quote has no end. */
static bool take_word(char **text, bool *plain) {
    char *from = *text, *to = *text, quote = '\0';
    *plain = true;
    for (; *from != '\0' && (quote != '\0' || !is_blank(*from)); from++) {
        if (quote == '\0' ? *from == '\'' || *from == '"' : *from == quote) {
            quote = quote == '\0' ? *from : '\0';
            *plain = false;
            continue;
        }
        bool escapes = *from == '\\' && (quote == '\0' || (quote == '"' && strchr("\\\"$`", from[1]) != NULL));
        if (escapes && *++from == '\0')
            return false;
        *to++ = *from;
    }
    *text = *from != '\0' ? from + 1 : from;
    *to = '\0';
    return quote == '\0';
}

size_t words_split(char *text, char **words, size_t most) {
    size_t n = 0;
    bool plain = false;
    for (;;) {
        while (is_blank(*text))
            text++;
        if (*text == '\0')
            break;
        if (n == most)
            return WORDS_BAD;
        words[n++] = text;
        if (!take_word(&text, &plain))
            return WORDS_BAD;
    }
    return n > 0 && plain && strcmp(words[n - 1], WORDS_CUT) == 0 ? WORDS_BAD : n;
}
