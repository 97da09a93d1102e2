/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* By one thread of the program. Each line is one write, so that it stays whole among what other threads write. */
#include "tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static unsigned n_points, n_failed, n_planned;
static bool is_planned, is_skipped;

static void line(const char *before, const char *format, va_list arguments) {
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = '\0';
    printf("%s%s\n", before, text);
    fflush(stdout);
}

void tap_plan(unsigned n) {
    n_planned = n;
    is_planned = true;
    printf("1..%u\n", n);
    fflush(stdout);
}

bool tap_point(bool ok, const char *format, ...) {
    char before[32];
    va_list arguments;
    snprintf(before, sizeof before, "%sok %u - ", ok ? "" : "not ", ++n_points);
    n_failed += !ok;
    va_start(arguments, format);
    line(before, format, arguments);
    va_end(arguments);
    return ok;
}

void tap_skip(const char *text, const char *reason) {
    printf("ok %u - %s # SKIP %s\n", ++n_points, text, reason);
    fflush(stdout);
}

void tap_skip_all(const char *reason) {
    is_skipped = true;
    printf("1..0 # SKIP %s\n", reason);
    fflush(stdout);
}

void tap_note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line("# ", format, arguments);
    va_end(arguments);
}

int tap_bail_out(const char *reason) {
    printf("Bail out! %s\n", reason);
    fflush(stdout);
    return 1;
}

int tap_end(void) {
    if (is_skipped)
        return 0;
    if (!is_planned)
        tap_plan(n_points);
    return n_points > 0 && n_points == n_planned && n_failed == 0 ? 0 : 1;
}
