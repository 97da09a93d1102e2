/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where two runs of `subutai check` have printed something else first. A run may have printed gigabytes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check_run.h"

/* What is shown of a line, and of that what is before the difference; PART: what is read at a time. */
enum { SHOWN_MOST = 120, SHOWN_BEFORE = 60, PART = 1 << 16 };

/* Fewer than n: the file ends there. */
static size_t read_part(int fd, char *to, size_t n, off_t at) {
    size_t done = 0;
    for (ssize_t got; done < n && (got = pread(fd, to + done, n - done, at + (off_t)done)) > 0;)
        done += (size_t)got;
    return done;
}

/* The line around the byte `at`, on a terminal as well; allocated. `exact`: other bytes than printable ones as \xHH. */
static char *shown(int fd, off_t at, bool exact) {
    static const char digits[] = "0123456789abcdef";
    char text[SHOWN_BEFORE + SHOWN_MOST];
    size_t before = at < SHOWN_BEFORE ? (size_t)at : SHOWN_BEFORE, begin = before, end = before;
    size_t n = read_part(fd, text, sizeof text, at - (off_t)before);
    if (n <= before)
        return cmd_format("it ends there");
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    while (end < n && end - begin < SHOWN_MOST && text[end] != '\n')
        end++;
    char *line = cmd_allocate(4 * (end - begin) + 1, 1), *to = line;
    for (size_t i = begin; i < end; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= ' ' && c < 127) {
            *to++ = (char)c;
        } else if (exact) {
            *to++ = '\\';
            *to++ = 'x';
            *to++ = digits[c / 16];
            *to++ = digits[c % 16];
        } else {
            *to++ = '?';
        }
    }
    *to = '\0';
    return line;
}

/* The first byte that differs, and its line; false: they are the same. */
static bool first_difference(int first, int other, off_t *at, size_t *line) {
    static char a[PART], b[PART];
    for (*at = 0, *line = 1;;) {
        size_t n_a = read_part(first, a, PART, *at), n_b = read_part(other, b, PART, *at);
        size_t n = n_a < n_b ? n_a : n_b, i = 0;
        for (; i < n && a[i] == b[i]; i++)
            *line += a[i] == '\n';
        *at += (off_t)i;
        if (i < n || n_a != n_b)
            return true;
        if (n == 0)
            return false;
    }
}

/* False: they are the same. */
static bool find(struct check_output_difference *d, const char *stream, int first, int other) {
    off_t at;
    *d = (struct check_output_difference){.stream = stream};
    if (!first_difference(first, other, &at, &d->line))
        return false;
    for (int exact = 0; exact < 2; exact++) { /* exact: the lines would look the same */
        d->text[0] = shown(first, at, exact != 0);
        d->text[1] = shown(other, at, exact != 0);
        if (exact != 0 || strcmp(d->text[0], d->text[1]) != 0)
            break;
        free(d->text[0]);
        free(d->text[1]);
    }
    return true;
}

void check_output_compare(struct check_output_difference *d, const struct trial *first, const struct trial *other) {
    char ends[2][32];
    if (find(d, "stdout", first->out, other->out) || find(d, "stderr", first->err, other->err))
        return;
    *d = (struct check_output_difference){
        .stream = "status",
        .text = {cmd_format("%s", trial_outcome(first, ends[0])), cmd_format("%s", trial_outcome(other, ends[1]))}};
}
