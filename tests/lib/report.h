/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Promises that a program reports, kept or not, as lines on stdout, and goes on: what it prints is compared with what
 * it prints without the library.
 */
#ifndef TESTS_LIB_REPORT_H
#define TESTS_LIB_REPORT_H

#include <stdbool.h>

/* "PROMISE: yes", or NO. */
void report(bool kept, const char *promise);
/* The exit status: 1 if one was not kept. */
int report_end(void);

#endif
