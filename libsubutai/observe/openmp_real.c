/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of the OpenMP run-time library that a call site of the program would have called. */
#include <dlfcn.h>

#include "observe/openmp.h"

#include "observe/profile.h"
#include "os/elf.h"
#include "os/fork.h"

/*
 * Where the run-time library is in the program's scope it is the same for all callers. A Python package has one for
 * itself, which is found by the dependencies of the object that the call site is in. Not by sbt_elf_next, which goes by
 * what is loaded: that may be another package's.
 */
static sbt_function *find(const char *name, const void *site) {
    sbt_function *found = NULL, *open = sbt_elf_libc("dlopen");
    Dl_info info;
    *(void **)(void *)&found = sbt_real_dlsym()(RTLD_NEXT, name);
    if (found != NULL || open == NULL || dladdr(site, &info) == 0)
        return found;
    void *object = ((void *(*)(const char *, int))open)(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    if (object == NULL)
        return NULL;
    *(void **)(void *)&found = sbt_real_dlsym()(object, name);
    dlclose(object);
    return found;
}

/* What was found, by function and call site. A place is written once, its site last. */
enum { N_FOUND = 1024, MOST_PROBES = 8 };
static struct found {
    const char *name;
    const void *site; /* atomic; NULL: the place is free */
    sbt_function *function;
} all_found[N_FOUND];
static uint32_t writing; /* a thread writes a place: the fork generation of its process, plus 1; atomic */

/* If another thread is at it, this one looks the function up again the next time. */
static void remember(const char *name, const void *site, sbt_function *function, uint32_t at) {
    uint32_t now = sbt_fork_generation() + 1, seen = __atomic_load_n(&writing, __ATOMIC_RELAXED);
    if (seen == now || !__atomic_compare_exchange_n(&writing, &seen, now, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    for (uint32_t i = 0; i < MOST_PROBES; i++) {
        struct found *f = &all_found[(at + i) % N_FOUND];
        if (f->site != NULL)
            continue;
        f->name = name;
        f->function = function;
        __atomic_store_n(&f->site, site, __ATOMIC_RELEASE);
        break;
    }
    __atomic_store_n(&writing, 0, __ATOMIC_RELEASE);
}

sbt_function *rec_openmp_real(const char *name, const void *site) {
    uint32_t at = (uint32_t)(rec_hash_of((uintptr_t)name, (uintptr_t)site) >> 32);
    for (uint32_t i = 0; i < MOST_PROBES; i++) {
        const struct found *f = &all_found[(at + i) % N_FOUND];
        const void *of = __atomic_load_n(&f->site, __ATOMIC_ACQUIRE);
        if (of == site && f->name == name)
            return f->function;
        if (of == NULL)
            break;
    }
    sbt_function *function = find(name, site);
    if (function != NULL)
        remember(name, site, function, at);
    return function;
}
