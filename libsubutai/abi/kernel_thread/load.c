/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dlopen, dlmopen, dlsym and vfork. The C library finds out the caller by the return address: for the caller's search
 * path and namespace, and for the meaning of RTLD_NEXT. So the library's entry points (load_*.S) jump to the C
 * library's own functions and do not return. Before the jump they call a function of this file. It returns
 * the place to jump to.
 */

#include <dlfcn.h>
#include <string.h>

#include "abi/abi.h"
#include "abi/unseen.h"
#include "switch/switch.h"

typedef void *target(void);

/* From load_*.S. */
target *sbt_dlopen_target(void);
target *sbt_dlmopen_target(void);
target *sbt_dlsym_target(void *handle, const char *symbol);
target *sbt_vfork_target(void);

/* In the middle of the library's start `known` may still be NULL. */
static target *next(target *known, const char *name) {
    if (SBT_UNLIKELY(known == NULL))
        *(void **)(void *)&known = sbt_real_dlsym()(RTLD_NEXT, name);
    return known;
}
#define NEXT(name) next((target *)(void (*)(void))sbt_real.name, #name)

target *sbt_dlopen_target(void) {
    sbt_init();
    sbt_eligibility_before_load();
    abi_unseen_load_begins();
    return NEXT(dlopen);
}

/* Another namespace has its own C library. None of its functions is served. */
target *sbt_dlmopen_target(void) {
    sbt_init();
    sbt_switch_refuse("dlmopen", "loads a second C library, out of Subutai's reach");
    return NEXT(dlmopen);
}

static bool is_served_at_home(const char *symbol) {
#define NAME(result, name, parameters) #name,
    static const char *const names[] = {SBT_REAL_KERNEL_THREAD_FUNCTIONS(NAME) SBT_REAL_NEW_FUNCTIONS(NAME) "dlsym",
                                        "syscall", "prctl"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(symbol, names[i]) == 0)
            return true;
    return false;
}

/*
 * The child of vfork shares our memory and its thread's stack. It must find its thread at home, and the C library's
 * vfork needs the return address of its caller.
 */
target *sbt_vfork_target(void) {
    sbt_init();
    sbt_pin_self(false);
    return NEXT(vfork);
}

/*
 * A look-up in the scope of the program finds our functions first. Any other look-up may find the C library's. This may
 * come before the library knows its options.
 */
target *sbt_dlsym_target(void *handle, const char *symbol) {
    sbt_dlsym_function *real = sbt_real_dlsym();
    abi_unseen_load_over();
    if (SBT_UNLIKELY(sbt_switch_wanted || !sbt_init_done()) && symbol != NULL)
        sbt_eligibility_looked_up(symbol,
                                  handle != RTLD_DEFAULT && is_served_at_home(symbol) &&
                                      (handle == RTLD_NEXT || real(handle, symbol) != real(RTLD_DEFAULT, symbol)));
    return (target *)(void (*)(void))real;
}
