/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program that goes on after a failed check, as torture does: with a check_failed of its own, and not after FAIL. */
#include <stdio.h>

#include "lib/checks.h"

void check_failed(const char *file, int line, const char *text) {
    (void)file, (void)line;
    puts(text);
    fflush(stdout);
    errno = ERANGE;
}

int main(void) {
    errno = EDOM;
    CHECK(errno == 0);
    CHECK_INT(errno, 0);
    CHECK(errno == EDOM);
    printf("%d checks\n", (int)checks_of_thread);
    FAIL("no further");
    puts("further");
    return 0;
}
