/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/real.h"

#include <gnu/libc-version.h>

struct sbt_real sbt_real;

bool sbt_real_is_2_35(void) {
    const char *version = gnu_get_libc_version();
    unsigned minor = 0;
    if (version[0] != '2' || version[1] != '.')
        return false;
    for (const char *p = version + 2; *p >= '0' && *p <= '9'; p++)
        minor = minor * 10 + (unsigned)(*p - '0');
    return minor >= 35;
}
