/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A failed check ends the process: what it says stands on stderr, whatever the failing thread holds or has interrupted.
 * In a file of its own, since other programs bring another check_failed.
 */
#include "checks.h"

#include <stdio.h>
#include <unistd.h>

void check_failed(const char *file, int line, const char *text) {
    char whole[1024];
    int n = snprintf(whole, sizeof whole, "%s:%d: %s\n", file, line, text);
    if (n > (int)sizeof whole - 1)
        n = sizeof whole - 1;
    _exit(write(STDERR_FILENO, whole, (size_t)n) == n ? 1 : 98);
}
