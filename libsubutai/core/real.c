/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/real.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

struct sbt_real sbt_real;

#ifdef SBT_PREFIX
/* Linked in under other names: the plain names are the real ones, or a sanitizer's, which must see the calls. */
#define RESOLVE(lookup, name) sbt_real.name = name;
#else
#define RESOLVE(lookup, name) RESOLVE_NEXT(lookup, name)
#endif

#if defined(__x86_64__)
/* Before 2.36 an unversioned look-up returned the oldest version, the one with the layout of 2002. */
#define COND_LOOKUP(name) dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2")
#else
#define COND_LOOKUP(name) sbt_real_dlsym()(RTLD_NEXT, name)
#endif

/* A data pointer turned into a function pointer, as POSIX requires of dlsym's callers. */
#define RESOLVE_NEXT(lookup, name)                                                                                     \
    do {                                                                                                               \
        void *address = lookup(#name);                                                                                 \
        if (address == NULL)                                                                                           \
            return #name;                                                                                              \
        *(void **)(void *)&sbt_real.name = address;                                                                    \
    } while (0);
#define PLAIN_LOOKUP(name) sbt_real_dlsym()(RTLD_NEXT, name)
#define RESOLVE_PLAIN(result, name, parameters) RESOLVE(PLAIN_LOOKUP, name)
#define RESOLVE_COND(result, name, parameters) RESOLVE(COND_LOOKUP, name)

#ifdef SBT_PREFIX
sbt_dlsym_function *sbt_real_dlsym(void) {
    return dlsym;
}
#else
/* dlsym itself is ours (abi/load.c), dlvsym is not; which of its versions this C library has is for it to say. */
sbt_dlsym_function *sbt_real_dlsym(void) {
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    static sbt_dlsym_function *found;
    sbt_dlsym_function *f = __atomic_load_n(&found, __ATOMIC_RELAXED);
    for (size_t i = 0; f == NULL && i < sizeof versions / sizeof *versions; i++) {
        *(void **)(void *)&f = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        __atomic_store_n(&found, f, __ATOMIC_RELAXED);
    }
    return f;
}
#endif

bool sbt_real_is_2_35(void) {
    const char *version = gnu_get_libc_version();
    return version[0] == '2' && version[1] == '.' && strtoul(version + 2, NULL, 10) >= 35;
}

const char *sbt_real_start(void) {
    SBT_REAL_FUNCTIONS(RESOLVE_PLAIN)
    SBT_REAL_COND_FUNCTIONS(RESOLVE_COND)
    SBT_REAL_COND_CLOCK_FUNCTIONS(RESOLVE_PLAIN)
    SBT_REAL_HOME_FUNCTIONS(RESOLVE_PLAIN)
#ifndef SBT_PREFIX
    if (sbt_real_is_2_35()) {
        SBT_REAL_NEW_FUNCTIONS(RESOLVE_PLAIN)
    }
#endif
    return NULL;
}
