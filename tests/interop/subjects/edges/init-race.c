/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See init-race-lib.c: everything has happened before main. */
#include <stdio.h>

extern long n_counted;
extern const long n_expected;

int main(void) {
    printf("counted %ld of %ld\n", n_counted, n_expected);
    return n_counted != n_expected;
}
