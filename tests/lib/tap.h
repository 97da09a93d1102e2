/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The points of a test as TAP on stdout, one line each and each at once, for programs that are a whole test. */
#ifndef TESTS_LIB_TAP_H
#define TESTS_LIB_TAP_H

#include <stdbool.h>

/* How many points there will be: before the first one, or, by tap_end, behind the last. */
void tap_plan(unsigned n);
/* One point, numbered from 1. Returns `ok`. A line that ends in the middle of the text is cut there. */
bool tap_point(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tap_skip(const char *text, const char *reason);
/* The whole test is skipped; instead of any points. */
void tap_skip_all(const char *reason);
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The test cannot go on. Returns the exit status. */
int tap_bail_out(const char *reason);
/* Returns the exit status: 0 if there was a point and none failed, or the whole test was skipped. */
int tap_end(void);

#endif
