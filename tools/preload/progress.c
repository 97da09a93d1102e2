/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See progress.h. */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 30 };
static const double quiet_s = 2, period_s = 0.1;

double progress_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_bar(char *bar, int width, double done) {
    int n = done >= 1 ? width : done > 0 ? (int)(width * done) : 0;
    memset(bar, '#', (size_t)n);
    memset(bar + n, '.', (size_t)(width - n));
    bar[width] = '\0';
}

struct progress progress_begin(const char *what) {
    double now = progress_now_s();
    return (struct progress){.what = what, .from_s = now, .shown_s = now, .terminal = isatty(STDERR_FILENO)};
}

/* Is it time for another line? Then *s is for how long the work has been going on. */
static bool is_due(struct progress *p, double *s) {
    double now = p->terminal ? progress_now_s() : 0;
    *s = now - p->from_s;
    if (!p->terminal || *s < quiet_s || now - p->shown_s < period_s)
        return false;
    p->shown_s = now;
    return p->shown = true;
}

void progress_show(struct progress *p, double done) {
    char bar[WIDTH + 1];
    double s;
    if (!is_due(p, &s))
        return;
    done = done < 1 ? done : 1;
    progress_bar(bar, WIDTH, done);
    fprintf(stderr, "\r%s [%s] %3.0f %%, %.0f s left\033[K", p->what, bar, 100 * done, done > 0 ? s / done - s : 0);
    fflush(stderr);
}

void progress_count(struct progress *p, unsigned long n, const char *things) {
    double s;
    if (!is_due(p, &s))
        return;
    fprintf(stderr, "\r%s: %lu %s, %.0f s\033[K", p->what, n, things, s);
    fflush(stderr);
}

void progress_callback(void *progress, double done) {
    progress_show(progress, done);
}

void progress_end(struct progress *p) {
    if (p->shown)
        fprintf(stderr, "\r\033[K");
    p->shown = false;
}
