/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Command lines as one text that a shell reads back as the same words. Without malloc, stdio and locks, since the
 * recorder writes one into its trace. Source: POSIX.1-2024, Shell Command Language, 2.2 Quoting.
 */
#ifndef TEXT_WORDS_H
#define TEXT_WORDS_H

#include <stddef.h>

#define WORDS_CUT "..." /* the last word of a text for which there was not room enough */
#define WORDS_BAD ((size_t)-1)

/*
 * `words` has n bytes: words, each with a NUL behind it, which the last one may lack. Writes them into `to`, of `room`
 * bytes (at least 8), with blanks between them; a word that a shell would change stands in apostrophes. Whole words
 * only; if not all of them have room, WORDS_CUT is the last one. No terminator. The result is the text's length.
 */
size_t words_quote(char *to, size_t room, const char *words, size_t n);

/*
 * The words of `text`, in its own memory, which is changed: apostrophes, double quotes and backslashes quote, nothing
 * is expanded. words[] gets at most `most` of them. The result is how many there are; WORDS_BAD: more than that, a
 * quote without its end, or a text that was cut.
 */
size_t words_split(char *text, char **words, size_t most);

#endif
