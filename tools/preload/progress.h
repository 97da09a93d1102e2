/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A line on stderr that says how far the command is, while it works for longer than two seconds. Only on a terminal;
 * elsewhere nothing is printed.
 */
#ifndef CMD_PROGRESS_H
#define CMD_PROGRESS_H

#include <stdbool.h>

struct progress {
    const char *what; /* "app.sbt", or what is done with it */
    double from_s, shown_s;
    bool terminal, shown;
};

/* `what` is not copied. */
struct progress progress_begin(const char *what);
/* `done`: so large a part, 0 to 1. Cheap enough for every 10,000 events: it shows ten lines a second at most. */
void progress_show(struct progress *p, double done);
/* What cannot be said in parts: so many things are done. `things`: "names". */
void progress_count(struct progress *p, unsigned long n, const char *things);
/* The same, for interfaces that take a function and a pointer to its state. */
void progress_callback(void *progress, double done);
/* The line goes. To be called before anything else is printed; later calls of progress_show bring it back. */
void progress_end(struct progress *p);

/* What the line is made of: the seconds of a clock that only goes forward, and a bar of `width` characters. */
double progress_now_s(void);
void progress_bar(char *bar, int width, double done);

#endif
