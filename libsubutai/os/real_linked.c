/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The real functions where the library is linked into a program and its own functions have other names (abi/names.h):
 * the plain names are glibc's, or a sanitizer's, which must see the calls.
 */
#include "os/real.h"

#include <dlfcn.h>
#include <stddef.h>

const bool sbt_real_is_linked = true;

#define TAKE(result, name, parameters) sbt_real.name = name;

sbt_dlsym_function *sbt_real_dlsym(void) {
    return dlsym;
}

sbt_dlvsym_function *sbt_real_dlvsym(void) {
    return dlvsym;
}

const char *sbt_real_start(void) {
    SBT_REAL_FUNCTIONS(TAKE)
    SBT_REAL_COND_FUNCTIONS(TAKE)
    SBT_REAL_COND_CLOCK_FUNCTIONS(TAKE)
    /* NOLINTNEXTLINE(bugprone-unsafe-functions): vfork, for programs that call it */
    SBT_REAL_KERNEL_THREAD_FUNCTIONS(TAKE)
    SBT_REAL_CPU_TIME_FUNCTIONS(TAKE)
    return NULL;
}
