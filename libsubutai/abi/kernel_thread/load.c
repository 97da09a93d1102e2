/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dlopen, dlmopen, dlsym, dlvsym and vfork. The C library finds out the caller by the return address: for the caller's
 * search path and namespace, and for the meaning of RTLD_NEXT. So the library's entry points (load_*.S) jump to the C
 * library's own functions and do not return. Before the jump they call a function of this file. It returns
 * the place to jump to.
 */

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "abi/abi.h"
#include "abi/outside.h"
#include "abi/unseen.h"
#include "os/elf.h"
#include "os/real_outside.h"
#include "switch/switch.h"

typedef void *target(void);

/* From load_*.S. */
target *sbt_dlopen_target(const char *file, int mode);
target *sbt_dlmopen_target(void);
target *sbt_dlsym_target(void *handle, const char *symbol, const void *unused, const void *caller);
target *sbt_dlvsym_target(void *handle, const char *symbol, const char *version, const void *caller);
target *sbt_vfork_target(void);

/* In the middle of the library's start `known` may still be NULL. */
static target *next(target *known, const char *name) {
    if (SBT_UNLIKELY(known == NULL))
        *(void **)(void *)&known = sbt_real_dlsym()(RTLD_NEXT, name);
    return known;
}
#define NEXT(name) next((target *)(void (*)(void))sbt_real.name, #name)

/* Code that is bound to the C library's own functions installs handlers unseen. */
target *sbt_dlopen_target(const char *file, int mode) {
    (void)file;
    sbt_init();
    if ((mode & RTLD_DEEPBIND) != 0)
        sbt_switch_handles_signals();
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
    static const char *const names[] = {SBT_REAL_KERNEL_THREAD_FUNCTIONS(NAME) SBT_REAL_NEW_FUNCTIONS(NAME)
                                            SBT_REAL_OUTSIDE_FUNCTIONS(NAME) "dlsym",
                                        "dlvsym",
                                        "syscall",
                                        "prctl",
                                        "clone",
                                        "__clone"};
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
#ifdef SBT_OBSERVED
    if (abi_vfork_begins != NULL)
        abi_vfork_begins();
#endif
    return NEXT(vfork);
}

/* Does the caller's object come before this library? Then the next definition behind the caller's is ours. */
static bool is_before_us(const void *caller) {
    Dl_info info;
    struct link_map *map = NULL, *own = NULL;
    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
        dladdr1((void *)(uintptr_t)sbt_dlvsym_target, &info, (void **)&own, RTLD_DL_LINKMAP) == 0)
        return false;
    while (map != NULL && map != own)
        map = map->l_next;
    return map != NULL;
}

static bool finds_theirs(void *handle, const char *symbol, const void *caller) {
    sbt_dlsym_function *real = sbt_real_dlsym();
    return handle == RTLD_NEXT ? !is_before_us(caller) : real(handle, symbol) != real(RTLD_DEFAULT, symbol);
}

/*
 * Does it matter for switching what is looked up? Beside a sanitizer it does not, as no program of one is switched. And
 * what follows calls string functions, which may be the sanitizer's: they work when it has looked up the C library's.
 */
static bool is_judged(void) {
    return sbt_switch_wanted || (!sbt_init_done() && sbt_init_sanitizer() == NULL);
}

#ifdef SBT_OBSERVED
/* In the place of dlsym. */
static void *own_function(void *handle, const char *symbol) {
    (void)handle;
    sbt_function *own = sbt_elf_own(symbol);
    void *found = NULL;
    memcpy(&found, &own, sizeof found);
    return found;
}

static bool finds_own(void *handle, const char *symbol, const void *caller) {
    return abi_looks_up_observed != NULL && symbol != NULL && handle != RTLD_DEFAULT && handle != RTLD_NEXT &&
           abi_looks_up_observed(handle, symbol, caller);
}
#endif

/*
 * A look-up in the scope of the program finds our functions first. Any other look-up may find the C library's. This may
 * come before the library knows its options.
 */
target *sbt_dlsym_target(void *handle, const char *symbol, const void *unused, const void *caller) {
    (void)unused;
    abi_unseen_load_over();
    if (SBT_UNLIKELY(is_judged()) && symbol != NULL)
        sbt_eligibility_looked_up(symbol, handle != RTLD_DEFAULT && is_served_at_home(symbol) &&
                                              finds_theirs(handle, symbol, caller));
#ifdef SBT_OBSERVED
    if (finds_own(handle, symbol, caller))
        return (target *)(void (*)(void))own_function;
#endif
    return (target *)(void (*)(void))sbt_real_dlsym();
}

/*
 * Our functions have no version, and a look-up of a version passes over them. Is it one of ours that the look-up
 * without a version would find, and the C library's that it finds with this version? Look-ups that fail are not made
 * here: they would leave an error for dlerror.
 */
static bool passes_over_ours(void *handle, const char *symbol, const char *version, const void *caller) {
    const void *own = (const void *)sbt_elf_own(symbol);
    if (own == NULL)
        return false;
    const void *theirs = sbt_real_dlvsym()(handle, symbol, version);
    if (!sbt_elf_is_libcs(symbol, theirs))
        return false;
    return handle == RTLD_NEXT ? is_before_us(caller) : sbt_real_dlsym()(handle, symbol) == own;
}

/*
 * A look-up of a version. Where it would pass over our function, the version is left out. Any other look-up may find
 * the C library's function in place of ours, as one without a version may.
 */
target *sbt_dlvsym_target(void *handle, const char *symbol, const char *version, const void *caller) {
    bool ours = false;
    abi_unseen_load_over();
    if (symbol != NULL && version != NULL)
        ours = passes_over_ours(handle, symbol, version, caller);
    if (SBT_UNLIKELY(is_judged()) && symbol != NULL)
        sbt_eligibility_looked_up(symbol, !ours && handle != RTLD_DEFAULT && is_served_at_home(symbol) &&
                                              finds_theirs(handle, symbol, caller));
    return ours ? (target *)(void (*)(void))sbt_real_dlsym() : (target *)(void (*)(void))sbt_real_dlvsym();
}
