/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loaded behind the C library, with a function of its name that a resolver chooses there. */
#include <time.h>

extern void of_module_alone(void);

time_t time(time_t *at) {
    (void)at;
    return 42;
}

void of_module_alone(void) {}
