/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads single numbers; see json_read.h. */
#include "json_read.h"

#include <stdlib.h>
#include <string.h>

bool json_find_number(const char *text, const char *key, double *value) {
    size_t n = strlen(key);
    for (const char *at = text; (at = strchr(at, '"')) != NULL; at++) {
        if (strncmp(at + 1, key, n) != 0 || at[1 + n] != '"')
            continue;
        const char *number = at + 2 + n;
        number += strspn(number, " \t");
        if (*number++ != ':')
            continue;
        number += strspn(number, " \t");
        char *end;
        *value = strtod(number, &end);
        return end != number && (*number == '-' || (*number >= '0' && *number <= '9'));
    }
    return false;
}
