/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real functions for a preloaded library: the functions that the dynamic linker finds behind ours. */
#include "os/real.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "os/arch.h"
#include "os/elf.h"
#include "os/real_outside.h"

const bool sbt_real_is_linked = false;

/*
 * dlsym and dlvsym are ours (abi/kernel_thread/load.c), so glibc's are found without the dynamic linker. Relaxed: all
 * threads find the same.
 */
sbt_dlsym_function *sbt_real_dlsym(void) {
    static sbt_dlsym_function *found;
    sbt_dlsym_function *f = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (SBT_UNLIKELY(f == NULL)) {
        f = (sbt_dlsym_function *)sbt_elf_libc("dlsym");
        __atomic_store_n(&found, f, __ATOMIC_RELAXED);
    }
    return f;
}

sbt_dlvsym_function *sbt_real_dlvsym(void) {
    static sbt_dlvsym_function *found;
    sbt_dlvsym_function *f = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (SBT_UNLIKELY(f == NULL)) {
        f = (sbt_dlvsym_function *)sbt_elf_libc("dlvsym");
        __atomic_store_n(&found, f, __ATOMIC_RELAXED);
    }
    return f;
}

static void *plain_lookup(const char *name) {
    return sbt_real_dlsym()(RTLD_NEXT, name);
}

/*
 * On x86-64 the C library has two versions of the functions of conditions, and before 2.36 the dynamic linker finds the
 * old one by a look-up without a version, for objects with the layout of 2002. The default version is the new one. A
 * function of another preloaded library has no version, or the C library's.
 *
 * Called late, by any call of the program's: between dlopen and dlerror, in a handler that has interrupted the dynamic
 * linker, or in a thread that a module's constructor waits for, under the dynamic linker's lock. So the dynamic linker
 * is asked only for what is no plain function.
 */
void *sbt_real_lookup(const char *name) {
    void *found = (void *)(uintptr_t)sbt_elf_next(name);
    return found != NULL ? found : plain_lookup(name);
}

struct real_function {
    const char *name;
    size_t at; /* where its pointer is in sbt_real */
};

#define ROW(result, name, parameters) {#name, offsetof(struct sbt_real, name)},

/* The first that is missing; NULL: none. */
static const char *find(const struct real_function *functions, size_t n) {
    for (size_t i = 0; i < n; i++) {
        void *found = sbt_real_lookup(functions[i].name);
        if (found == NULL)
            return functions[i].name;
        *(void **)(void *)((char *)&sbt_real + functions[i].at) = found; /* POSIX: a function's address fits */
    }
    return NULL;
}

const char *sbt_real_start(void) {
    sbt_elf_start();
    static const struct real_function all[] = {SBT_REAL_FUNCTIONS(ROW) SBT_REAL_COND_FUNCTIONS(
        ROW) SBT_REAL_COND_CLOCK_FUNCTIONS(ROW) SBT_REAL_KERNEL_THREAD_FUNCTIONS(ROW) SBT_REAL_CPU_TIME_FUNCTIONS(ROW)};
    static const struct real_function from_2_35[] = {SBT_REAL_NEW_FUNCTIONS(ROW)};
    const char *missing = find(all, sizeof all / sizeof *all);
    if (missing == NULL && sbt_real_is_2_35())
        missing = find(from_2_35, sizeof from_2_35 / sizeof *from_2_35);
    return missing;
}
