/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where two runs of `subutai check` have printed something else first. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check_run.h"

/* What is shown of a line, and of that what is before the difference. */
enum { SHOWN_MOST = 120, SHOWN_BEFORE = 60 };

struct output {
    char *text;
    size_t n;
};

static struct output read_output(int fd) {
    off_t n = lseek(fd, 0, SEEK_END);
    return (struct output){trial_text(fd), n > 0 ? (size_t)n : 0};
}

/* The line around the byte `at`, on a terminal as well; allocated. */
static char *shown(const struct output *o, size_t at) {
    size_t begin = at, end = at;
    if (at == o->n)
        return cmd_format("it ends there");
    while (begin > 0 && at - begin < SHOWN_BEFORE && o->text[begin - 1] != '\n')
        begin--;
    while (end < o->n && end - begin < SHOWN_MOST && o->text[end] != '\n')
        end++;
    char *text = cmd_allocate(end - begin + 1, 1);
    for (size_t i = 0; i < end - begin; i++)
        text[i] = o->text[begin + i] >= ' ' && o->text[begin + i] < 127 ? o->text[begin + i] : '?';
    text[end - begin] = '\0';
    return text;
}

/* False: they are the same. */
static bool find(struct check_output_difference *d, const char *stream, int first, int other) {
    struct output a = read_output(first), b = read_output(other);
    size_t at = 0;
    bool differs = a.n != b.n || memcmp(a.text, b.text, a.n) != 0;
    if (differs) {
        *d = (struct check_output_difference){.stream = stream, .line = 1};
        for (; at < a.n && at < b.n && a.text[at] == b.text[at]; at++)
            d->line += a.text[at] == '\n';
        d->text[0] = shown(&a, at);
        d->text[1] = shown(&b, at);
    }
    free(a.text);
    free(b.text);
    return differs;
}

void check_output_compare(struct check_output_difference *d, const struct trial *first, const struct trial *other) {
    char ends[2][32];
    if (find(d, "stdout", first->out, other->out) || find(d, "stderr", first->err, other->err))
        return;
    *d = (struct check_output_difference){
        .stream = "status",
        .text = {cmd_format("%s", trial_outcome(first, ends[0])), cmd_format("%s", trial_outcome(other, ends[1]))}};
}
