/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dlopen, dlmopen, dlsym and vfork. The C library finds out who calls them by their return address: for the caller's
 * search path and namespace, and for what is "next". So they are entered, and left for the C library's own, by a jump
 * (load_*.S); in between one of the functions here is called, which returns where to jump to.
 */
#ifndef SBT_PREFIX

#include <dlfcn.h>
#include <string.h>

#include "abi/abi.h"
#include "switch/switch.h"

typedef void *target(void);

/* From load_*.S. */
target *sbt_dlopen_target(void);
target *sbt_dlmopen_target(void);
target *sbt_dlsym_target(void *handle, const char *symbol);
target *sbt_vfork_target(void);

/* During the library's start, which is in the middle of it, `known` may be NULL yet. */
static target *next(target *known, const char *name) {
    if (SBT_UNLIKELY(known == NULL))
        *(void **)(void *)&known = sbt_real_dlsym()(RTLD_NEXT, name);
    return known;
}
#define NEXT(name) next((target *)(void (*)(void))sbt_real.name, #name)

target *sbt_dlopen_target(void) {
    sbt_init();
    sbt_switch_before_load();
    return NEXT(dlopen);
}

/* Another namespace has a C library of its own, of whose functions none is served. */
target *sbt_dlmopen_target(void) {
    sbt_init();
    sbt_switch_refuse("dlmopen", "loads code that calls another C library");
    return NEXT(dlmopen);
}

static bool is_served_at_home(const char *symbol) {
#define NAME(result, name, parameters) #name,
    static const char *const names[] = {SBT_REAL_HOME_FUNCTIONS(NAME) SBT_REAL_NEW_FUNCTIONS(NAME) "dlsym", "syscall",
                                        "prctl"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(symbol, names[i]) == 0)
            return true;
    return false;
}

/*
 * The child of vfork shares our memory and its thread's stack: it must find its thread at home, and the C library's own
 * needs its caller's return address.
 */
target *sbt_vfork_target(void) {
    sbt_init();
    sbt_switch_stay_home(false);
    return NEXT(vfork);
}

/*
 * In the scope of the program itself ours come first; anywhere else the C library's may. Also before the library knows
 * what it is to do.
 */
target *sbt_dlsym_target(void *handle, const char *symbol) {
    sbt_dlsym_function *real = sbt_real_dlsym();
    if (SBT_UNLIKELY(sbt_switch_wanted || !sbt_init_done()) && symbol != NULL)
        sbt_switch_looked_up(symbol, handle != RTLD_DEFAULT && is_served_at_home(symbol) &&
                                         (handle == RTLD_NEXT || real(handle, symbol) != real(RTLD_DEFAULT, symbol)));
    return (target *)(void (*)(void))real;
}

#endif
