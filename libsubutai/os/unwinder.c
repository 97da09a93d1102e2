/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/unwinder.h"

#include <dlfcn.h>
#include <stddef.h>

#include "os/arch.h"
#include "os/elf.h"
#include "os/real.h"

struct sbt_unwinder sbt_unwinder;
struct sbt_unwinder_forced sbt_unwinder_forced;

#define MEMBER(name, member)                                                                                           \
    { name, offsetof(struct sbt_unwinder, member) }

static const struct {
    const char *name;
    size_t at; /* where its pointer is in sbt_unwinder */
} members[] = {
    MEMBER("_Unwind_Resume", resume),       MEMBER("__gcc_personality_v0", personality),
    MEMBER("_Unwind_Backtrace", backtrace), MEMBER("_Unwind_GetIP", ip),
    MEMBER("_Unwind_GetIPInfo", ip_info),   MEMBER("_Unwind_GetCFA", cfa),
    MEMBER("_Unwind_Find_FDE", find_fde),
};
enum { N_MEMBERS = sizeof members / sizeof *members };

#define FORCED(name, member)                                                                                           \
    { name, offsetof(struct sbt_unwinder_forced, member) }

static const struct {
    const char *name;
    size_t at; /* where its pointer is in sbt_unwinder_forced */
} forced[] = {
    FORCED("_Unwind_Resume", resume),         FORCED("_Unwind_GetIPInfo", ip_info),
    FORCED("_Unwind_GetRegionStart", region), FORCED("_Unwind_GetLanguageSpecificData", language_data),
    FORCED("_Unwind_SetGR", set_register),    FORCED("_Unwind_SetIP", set_ip),
};
enum { N_FORCED = sizeof forced / sizeof *forced, N_ALL = N_MEMBERS + N_FORCED };

static void **pointer(unsigned i) {
    return i < N_MEMBERS ? (void **)(void *)((char *)&sbt_unwinder + members[i].at)
                         : (void **)(void *)((char *)&sbt_unwinder_forced + forced[i - N_MEMBERS].at);
}

static const char *name_of(unsigned i) {
    return i < N_MEMBERS ? members[i].name : forced[i - N_MEMBERS].name;
}

void sbt_unwinder_start(void) {
    for (unsigned i = 0; i < N_MEMBERS; i++) {
        void *found = (void *)(uintptr_t)sbt_elf_global(members[i].name);
        if (found == NULL && i == 0)
            return; /* no unwinder at all, as in most programs of C: one look-up, and not seven */
        __atomic_store_n(pointer(i), found, __ATOMIC_RELAXED);
    }
}

bool sbt_unwinder_is_whole(void) {
    bool is_whole = true;
    for (unsigned i = 0; i < N_MEMBERS; i++)
        is_whole = is_whole && __atomic_load_n(pointer(i), __ATOMIC_RELAXED) != NULL;
    return is_whole;
}

/*
 * Threads that come at the same time find the same. A name that is missing in an old libgcc is the same failure.
 *
 * RTLD_NODELETE: the C library's own look-ups in an object that may be unloaded allocate, to note that it is needed.
 * Its first cancellation under the engine det is made by a thread of the library's (core/handlers.c), for which an
 * allocator's lock must not be an operation.
 */
bool sbt_unwinder_load(void) {
    typedef void *open_function(const char *file, int how);
    open_function *open = NULL;
    void *library = NULL;
    for (unsigned i = 0; i < N_ALL; i++) {
        if (__atomic_load_n(pointer(i), __ATOMIC_RELAXED) != NULL)
            continue;
        if (open == NULL) {
            open = (open_function *)sbt_elf_libc("dlopen"); /* ours looks for system calls in what is loaded */
            library = open("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        }
        void *found = library != NULL ? sbt_real_dlsym()(library, name_of(i)) : NULL;
        if (found == NULL)
            return false;
        __atomic_store_n(pointer(i), found, __ATOMIC_RELEASE); /* pairs with need (abi/unwinding.c) */
    }
    return true;
}
