/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real functions for a preloaded library: the functions that the dynamic linker finds behind ours. */
#include "os/real.h"

#include <dlfcn.h>
#include <stddef.h>

const bool sbt_real_is_linked = false;

/* Turn a data pointer into a function pointer, as POSIX requires of dlsym's callers. */
#define RESOLVE(lookup, name)                                                                                          \
    do {                                                                                                               \
        void *address = lookup(#name);                                                                                 \
        if (address == NULL)                                                                                           \
            return #name;                                                                                              \
        *(void **)(void *)&sbt_real.name = address;                                                                    \
    } while (0);
#define PLAIN_LOOKUP(name) sbt_real_dlsym()(RTLD_NEXT, name)
#define RESOLVE_PLAIN(result, name, parameters) RESOLVE(PLAIN_LOOKUP, name)
#define RESOLVE_COND(result, name, parameters) RESOLVE(cond_lookup, name)

/*
 * dlsym is ours (abi/kernel_thread/load.c), and dlvsym is glibc's: it finds the version of dlsym that this C library
 * has. Relaxed: all threads find the same.
 */
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

/*
 * A function of conditions. On x86-64 the C library has two versions of each. Before 2.36 a look-up without a version
 * returned the old version, for objects with the layout of 2002. A function of another preloaded library is found only
 * without a version, unless that library gives it the C library's.
 */
static void *cond_lookup(const char *name) {
    void *found = sbt_real_dlsym()(RTLD_NEXT, name);
#if defined(__x86_64__)
    if (sbt_real_is_of_libc(found))
        found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#endif
    return found;
}

const char *sbt_real_start(void) {
    SBT_REAL_FUNCTIONS(RESOLVE_PLAIN)
    SBT_REAL_COND_FUNCTIONS(RESOLVE_COND)
    SBT_REAL_COND_CLOCK_FUNCTIONS(RESOLVE_PLAIN)
    /* NOLINTNEXTLINE(bugprone-unsafe-functions): vfork, for programs that call it */
    SBT_REAL_KERNEL_THREAD_FUNCTIONS(RESOLVE_PLAIN)
    if (sbt_real_is_2_35()) {
        SBT_REAL_NEW_FUNCTIONS(RESOLVE_PLAIN)
    }
    return NULL;
}
