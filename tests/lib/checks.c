/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__thread uint64_t checks_of_thread;

const char *check_errno_name(int number) {
    const char *name = number == 0 ? "0" : strerrorname_np(number);
    return name != NULL ? name : "an unknown error";
}

static void fail(const char *file, int line, const char *format, va_list arguments) {
    char text[512];
    int before = errno; /* of a program that goes on */
    vsnprintf(text, sizeof text, format, arguments);
    check_failed(file, line, text);
    errno = before;
}

void check_fail(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail(file, line, format, arguments);
    va_end(arguments);
}

void check_end(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fail(file, line, format, arguments);
    abort();
}
