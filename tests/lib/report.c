/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report.h"

#include <stdio.h>

static int n_broken;

void report(bool kept, const char *promise) {
    printf("%s: %s\n", promise, kept ? "yes" : "NO");
    n_broken += !kept;
}

int report_end(void) {
    return n_broken != 0;
}
