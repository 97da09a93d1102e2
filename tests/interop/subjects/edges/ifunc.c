/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See ifunc-lib.c: the resolver has run, and the lock that it took and gave back is free. */
#include <stdio.h>

extern int chosen(void);

int main(void) {
    int answer = chosen();
    printf("chosen %d\n", answer);
    return answer != 42;
}
