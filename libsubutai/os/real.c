/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/real.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdint.h>

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

bool sbt_real_is_of_libc(const void *function) {
    Dl_info libc, other;
    return dladdr((void *)(uintptr_t)gnu_get_libc_version, &libc) != 0 && dladdr(function, &other) != 0 &&
           libc.dli_fbase == other.dli_fbase;
}
