/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decimal digits without stdio, for code that may run inside malloc, in a signal handler or at the end of a process.
 * Never blocks or allocates; usable before any constructor has run.
 */
#ifndef TEXT_DECIMAL_H
#define TEXT_DECIMAL_H

#include <stdint.h>

enum { DECIMAL_SIZE = 21 }; /* bytes: the 20 digits of UINT64_MAX and the terminator */

/* Writes the digits of `number`, terminated, to the end of `buffer`; returns where they start in it. */
static inline const char *decimal_of(char buffer[static DECIMAL_SIZE], uint64_t number) {
    char *at = buffer + DECIMAL_SIZE - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return at;
}

#endif
