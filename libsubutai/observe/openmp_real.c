/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which run-time library is behind a call site, by the name of the function that is called. Where one in the program's
 * scope has the name it is the same for all callers. A Python package has one for itself, which is found by the
 * dependencies of the object that the site is in; so has a module of clang's code in a program of gcc's, of which the
 * library does not have the names that clang's code calls. A call that is a jump seems to come from the caller's
 * caller, and that may be an object without any: then it is one that is loaded.
 *
 * All functions of a library are looked up at once, by the thread that meets a region or by one in no region. What was
 * found is known by the addresses of the site's object, and is read without a lock. The library stays loaded. The
 * object may be unloaded and loaded again: it has the same library then.
 *
 * The dynamic linker is asked with no lock held: a thread in a constructor has the linker's, and may come here for one
 * of ours. So two threads may find the same; what the second one found is dropped.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "observe/openmp_inner.h"

#include "abi/outside.h"
#include "observe/errors.h"
#include "observe/record.h"
#include "os/fork.h"
#include "os/signals.h"

enum { N_OBJECTS = 256, N_LIBRARIES = 16 };

static const char *const names[REC_OPENMP_N_NAMES] = {
#define NAME(name) [REC_OPENMP_##name] = #name,
    REC_OPENMP_NAMES(NAME)};

static struct rec_openmp_library libraries[N_LIBRARIES];
static struct object {
    uintptr_t from, to;
    const struct rec_openmp_library *library;
} objects[N_OBJECTS];
static uint32_t n_libraries, n_objects; /* atomic; stored behind the entry */
/* By name, in the program's scope; atomic, stored when the library is complete. */
static const struct rec_openmp_library *of_all[REC_OPENMP_N_NAMES];
/* By name: the one of which the program has got our function by a look-up. It may call that from anywhere. */
static const struct rec_openmp_library *looked_up[REC_OPENMP_N_NAMES];
static uint32_t writing; /* a thread writes: the fork generation of its process, plus 1; atomic */

static bool is_own(sbt_function *f) {
    Dl_info own, its;
    return dladdr((void *)(uintptr_t)f, &its) == 0 || dladdr((const void *)names, &own) == 0 ||
           its.dli_fbase == own.dli_fbase;
}

static sbt_function *look_up(void *scope, enum rec_openmp_name name) {
    sbt_function *found = NULL;
    *(void **)(void *)&found = sbt_real_dlsym()(scope, names[name]);
    return found != NULL && !is_own(found) ? found : NULL;
}

static void *open_loaded(const char *file) {
    sbt_function *open = sbt_elf_libc("dlopen");
    return open != NULL ? ((void *(*)(const char *, int))open)(file, RTLD_NOLOAD | RTLD_LAZY) : NULL;
}

/* The addresses of the object that the site is in; false: of none. */
static bool range_of(const void *site, struct object *o) {
    Dl_info info;
    if (dladdr(site, &info) == 0)
        return false;
    const ElfW(Ehdr) *header = info.dli_fbase;
    const ElfW(Phdr) *part = (const void *)((const char *)info.dli_fbase + header->e_phoff);
    uintptr_t first = UINTPTR_MAX, last = 0;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (part[i].p_type == PT_LOAD) {
            first = part[i].p_vaddr < first ? part[i].p_vaddr : first;
            last = part[i].p_vaddr + part[i].p_memsz > last ? part[i].p_vaddr + part[i].p_memsz : last;
        }
    o->from = (uintptr_t)info.dli_fbase;
    o->to = o->from + (last - (first & -(uintptr_t)4096));
    return last != 0;
}

static bool is_in(const void *site, uintptr_t from, uintptr_t to) {
    return (uintptr_t)site - from < to - from;
}

/* Regions of gcc's code, or clang's. A look-up in a library's scope also finds those of one that it depends on. */
static bool has_regions(const struct rec_openmp_library *l) {
    return is_in((const void *)(uintptr_t)l->functions[REC_OPENMP_GOMP_parallel], l->from, l->to) ||
           is_in((const void *)(uintptr_t)l->functions[REC_OPENMP___kmpc_fork_call], l->from, l->to);
}

/*
 * The run-time library waits by mutexes and conditions within the calls that are recorded. The range takes in all that
 * are known, and what lies between them. Its length grows first: what a thread reads meanwhile has all of the old one.
 */
static void keep_apart(const struct rec_openmp_library *l) {
    const bool is_first = rec.apart_length == 0;
    const uintptr_t from = is_first || l->from < rec.apart_from ? l->from : rec.apart_from;
    const uintptr_t old_to = rec.apart_from + rec.apart_length, to = is_first || l->to > old_to ? l->to : old_to;
    __atomic_store_n(&rec.apart_length, to - from, __ATOMIC_RELAXED);
    __atomic_store_n(&rec.apart_from, from, __ATOMIC_RELEASE);
}

/* ---- the lists; the dynamic linker is not asked here, nor does a handler come in between ---- */

/* In a forked child a thread that was writing is not there. */
static uint64_t begin_writing(void) {
    uint64_t signals = sbt_signals_block();
    uint32_t mine = sbt_fork_generation() + 1;
    for (unsigned i = 0;; i++) {
        uint32_t seen = __atomic_load_n(&writing, __ATOMIC_RELAXED);
        if (seen != mine &&
            __atomic_compare_exchange_n(&writing, &seen, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return signals;
        rec_wait_a_moment(i);
    }
}

static void end_writing(uint64_t signals) {
    __atomic_store_n(&writing, 0, __ATOMIC_RELEASE);
    sbt_signals_restore(signals);
}

/* 0: the address is not known, and the result is NULL. */
static const struct rec_openmp_library *at_address(uintptr_t from) {
    for (uint32_t i = __atomic_load_n(&n_libraries, __ATOMIC_ACQUIRE); i > 0; i--)
        if (from != 0 && libraries[i - 1].from == from)
            return &libraries[i - 1];
    return NULL;
}

/* The list's entry of that library. NULL: there is no room. */
static const struct rec_openmp_library *add_library(const struct rec_openmp_library *found) {
    uint64_t signals = begin_writing();
    const struct rec_openmp_library *library = at_address(found->from);
    if (library == NULL && n_libraries < N_LIBRARIES) {
        library = &libraries[n_libraries];
        libraries[n_libraries] = *found;
        __atomic_store_n(&n_libraries, n_libraries + 1, __ATOMIC_RELEASE);
        if (library->has_regions)
            keep_apart(library);
    }
    end_writing(signals);
    return library;
}

/* False: there is no room. An object that is there already, as by another thread, stays what it is. */
static bool add_object(const struct object *o) {
    uint64_t signals = begin_writing();
    uint32_t i = 0;
    while (i < n_objects && (objects[i].from != o->from || objects[i].to != o->to))
        i++;
    bool is_new = i == n_objects && n_objects < N_OBJECTS;
    if (is_new) {
        objects[n_objects] = *o;
        __atomic_store_n(&n_objects, n_objects + 1, __ATOMIC_RELEASE);
    }
    end_writing(signals);
    return is_new || (i < n_objects && objects[i].library == o->library);
}

/* ---- looking ---- */

/* The library that has this function, which a caller in that scope finds. NULL: there is no room. */
static const struct rec_openmp_library *take(void *scope, sbt_function *has) {
    Dl_info info;
    struct object its = {0};
    (void)range_of((const void *)(uintptr_t)has, &its);
    const struct rec_openmp_library *library = at_address(its.from);
    if (library != NULL || dladdr((void *)(uintptr_t)has, &info) == 0)
        return library;
    void *own = open_loaded(info.dli_fname); /* and not closed: the library stays */
    struct rec_openmp_library found = {.from = its.from, .to = its.to};
    for (int i = 0; i < REC_OPENMP_N_NAMES; i++)
        found.functions[i] = look_up(own != NULL ? own : scope, (enum rec_openmp_name)i);
    found.has_regions = has_regions(&found);
    return add_library(&found);
}

/* In the scope of that object's file, or of the object that the function is in. */
static const struct rec_openmp_library *in_scope_of(const void *address, enum rec_openmp_name name) {
    Dl_info info;
    void *object = dladdr(address, &info) != 0 ? open_loaded(info.dli_fname) : NULL;
    if (object == NULL)
        return NULL;
    sbt_function *has = look_up(object, name);
    const struct rec_openmp_library *library = has != NULL ? take(object, has) : NULL;
    dlclose(object);
    return library;
}

/* In the program's scope, with all names that callers find there in the same library. */
static const struct rec_openmp_library *in_program(enum rec_openmp_name name) {
    sbt_function *has = look_up(RTLD_NEXT, name);
    const struct rec_openmp_library *library = has != NULL ? take(RTLD_NEXT, has) : NULL;
    for (int i = 0; library != NULL && i < REC_OPENMP_N_NAMES; i++)
        if (library->functions[i] != NULL && library->functions[i] == look_up(RTLD_NEXT, (enum rec_openmp_name)i))
            __atomic_store_n(&of_all[i], library, __ATOMIC_RELEASE);
    return library;
}

/* The one that was looked up by that name, or the last one that has it. */
static const struct rec_openmp_library *any(enum rec_openmp_name name) {
    const struct rec_openmp_library *given = __atomic_load_n(&looked_up[name], __ATOMIC_ACQUIRE);
    if (given != NULL)
        return given;
    for (uint32_t i = __atomic_load_n(&n_libraries, __ATOMIC_ACQUIRE); i > 0; i--)
        if (libraries[i - 1].functions[name] != NULL)
            return &libraries[i - 1];
    return NULL;
}

static const struct rec_openmp_library *find(const void *site, enum rec_openmp_name name) {
    sbt_function *loaded = sbt_elf_next(names[name]);
    if (loaded == NULL) /* nothing is asked, so that dlerror says what it would */
        return NULL;
    const struct rec_openmp_library *library = in_program(name);
    if (library == NULL)
        library = in_scope_of(site, name);
    if (library == NULL)
        library = any(name);
    return library != NULL ? library : in_scope_of((const void *)(uintptr_t)loaded, name);
}

bool rec_openmp_is_library(const void *site) {
    for (uint32_t i = __atomic_load_n(&n_libraries, __ATOMIC_ACQUIRE); i > 0; i--)
        if (libraries[i - 1].has_regions && is_in(site, libraries[i - 1].from, libraries[i - 1].to))
            return true;
    return false;
}

/* Of the site's object, or the object itself: a run-time library calls its own functions. */
static const struct rec_openmp_library *known(const void *site, enum rec_openmp_name name) {
    for (uint32_t i = __atomic_load_n(&n_objects, __ATOMIC_ACQUIRE); i > 0; i--)
        if (is_in(site, objects[i - 1].from, objects[i - 1].to) && objects[i - 1].library->functions[name] != NULL)
            return objects[i - 1].library;
    for (uint32_t i = __atomic_load_n(&n_libraries, __ATOMIC_ACQUIRE); i > 0; i--)
        if (is_in(site, libraries[i - 1].from, libraries[i - 1].to) && libraries[i - 1].functions[name] != NULL)
            return &libraries[i - 1];
    return NULL;
}

/* ---- functions that the program looks up by name ---- */

/* Would a call from the caller's object go to that library? If nothing is known of the object, it does from now on. */
static bool is_callers(const void *caller, enum rec_openmp_name name, const struct rec_openmp_library *library) {
    const struct rec_openmp_library *its = __atomic_load_n(&of_all[name], __ATOMIC_ACQUIRE);
    struct object o;
    if (its == NULL)
        its = known(caller, name);
    if (its == NULL)
        its = in_program(name);
    if (its == NULL)
        its = in_scope_of(caller, name);
    if (its != NULL)
        return its == library;
    if (!range_of(caller, &o))
        return false;
    o.library = library;
    return add_object(&o);
}

/* Does our function of that name stand for that library? */
static bool stands_for(enum rec_openmp_name name, const struct rec_openmp_library *library) {
    const struct rec_openmp_library *given = __atomic_load_n(&looked_up[name], __ATOMIC_ACQUIRE);
    return given == NULL || given == library;
}

/* From now on, if for no other. */
static bool make_stand_for(enum rec_openmp_name name, const struct rec_openmp_library *library) {
    const struct rec_openmp_library *none = NULL;
    return __atomic_compare_exchange_n(&looked_up[name], &none, library, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
           none == library;
}

/*
 * A look-up in a library's own scope passes over the functions of this folder. The program gets them all the same if
 * its calls will find that library, also those that it makes from code of no library, as libffi does for Python. So
 * of each name our function stands for one library. Where the program has several, it calls those of the others
 * directly, and they are not seen.
 */
static bool looks_up(void *handle, const char *symbol, const void *caller) {
    unsigned name = 0;
    while (name < REC_OPENMP_N_NAMES && strcmp(names[name], symbol) != 0)
        name++;
    sbt_function *found = NULL;
    if (name < REC_OPENMP_N_NAMES && sbt_elf_own(symbol) != NULL)
        *(void **)(void *)&found = sbt_real_dlsym()(handle, symbol);
    if (found == NULL || is_own(found))
        return false;
    rec_errors_keep();
    const struct rec_openmp_library *library = take(handle, found);
    bool finds = library != NULL && library->has_regions && library->functions[name] == found &&
                 stands_for((enum rec_openmp_name)name, library) &&
                 is_callers(caller, (enum rec_openmp_name)name, library) &&
                 make_stand_for((enum rec_openmp_name)name, library);
    rec_errors_drop();
    return finds;
}

__attribute__((constructor)) static void observe_look_ups(void) {
    abi_looks_up_observed = looks_up;
}

const struct rec_openmp_library *rec_openmp_library_of(enum rec_openmp_name name, const void *site,
                                                       const struct rec_openmp_library *else_this) {
    const struct rec_openmp_library *library = __atomic_load_n(&of_all[name], __ATOMIC_ACQUIRE);
    struct object o;
    if (library != NULL || (library = known(site, name)) != NULL)
        return library;
    if (else_this != NULL && else_this->functions[name] != NULL)
        return else_this;
    rec_errors_keep();
    library = find(site, name);
    rec_errors_drop();
    if (library != NULL && library->functions[name] == NULL)
        library = NULL;
    if (library != NULL && __atomic_load_n(&of_all[name], __ATOMIC_ACQUIRE) == NULL && !rec_openmp_is_jump(site) &&
        known(site, name) == NULL && range_of(site, &o)) {
        o.library = library;
        (void)add_object(&o);
    }
    return library;
}
