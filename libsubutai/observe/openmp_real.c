/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which run-time library is behind a call site. Where one is in the program's scope it is the same for all callers. A
 * Python package has one for itself, which is found by the dependencies of the object that the site is in. A call that
 * is a jump seems to come from the caller's caller, and that may be an object without any: then it is one that is
 * loaded.
 *
 * All functions of a library are looked up at once, by the thread that meets a region or by one in no region. What was
 * found is known by the addresses of the site's object, and is read without a lock. The library stays loaded. The
 * object may be unloaded and loaded again: it has the same library then.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "observe/openmp.h"

#include "observe/record.h"
#include "os/fork.h"

enum { N_OBJECTS = 256, N_LIBRARIES = 16 };

static const char *const names[REC_OPENMP_N_NAMES] = {
#define NAME(name) [REC_OPENMP_##name] = #name,
    REC_OPENMP_NAMES(NAME)};

static struct rec_openmp_library libraries[N_LIBRARIES];
static struct object {
    uintptr_t from, to;
    const struct rec_openmp_library *library;
} objects[N_OBJECTS];
static uint32_t n_libraries;                    /* under `writing` */
static uint32_t n_objects;                      /* atomic; stored behind the entry */
static const struct rec_openmp_library *of_all; /* of the program's scope; atomic, stored when it is complete */
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

/* The library in that scope, which has this function. NULL: there is no room. */
static const struct rec_openmp_library *take(void *scope, sbt_function *has) {
    Dl_info info;
    for (uint32_t i = 0; i < n_libraries; i++)
        if (libraries[i].functions[REC_OPENMP_omp_get_num_threads] == has)
            return &libraries[i];
    if (n_libraries == N_LIBRARIES || dladdr((void *)(uintptr_t)has, &info) == 0)
        return NULL;
    open_loaded(info.dli_fname); /* and not closed: the library stays */
    struct rec_openmp_library *library = &libraries[n_libraries++];
    struct object its = {0};
    if (range_of((const void *)(uintptr_t)has, &its)) {
        library->from = its.from;
        library->to = its.to;
    }
    for (int i = 0; i < REC_OPENMP_N_NAMES; i++)
        library->functions[i] = look_up(scope, (enum rec_openmp_name)i);
    return library;
}

/* In the scope of that object's file, or of the object that the function is in. */
static const struct rec_openmp_library *in_scope_of(const void *address) {
    Dl_info info;
    void *object = dladdr(address, &info) != 0 ? open_loaded(info.dli_fname) : NULL;
    if (object == NULL)
        return NULL;
    sbt_function *has = look_up(object, REC_OPENMP_omp_get_num_threads);
    const struct rec_openmp_library *library = has != NULL ? take(object, has) : NULL;
    dlclose(object);
    return library;
}

static const struct rec_openmp_library *find(const void *site) {
    sbt_function *loaded = sbt_elf_next(names[REC_OPENMP_omp_get_num_threads]);
    if (loaded == NULL) /* nothing is asked, so that dlerror says what it would */
        return NULL;
    sbt_function *has = look_up(RTLD_NEXT, REC_OPENMP_omp_get_num_threads);
    if (has != NULL) {
        const struct rec_openmp_library *library = take(RTLD_NEXT, has);
        __atomic_store_n(&of_all, library, __ATOMIC_RELEASE);
        return library;
    }
    const struct rec_openmp_library *library = in_scope_of(site);
    if (library == NULL && n_libraries > 0)
        library = &libraries[n_libraries - 1];
    return library != NULL ? library : in_scope_of((const void *)(uintptr_t)loaded);
}

static const struct rec_openmp_library *known(const void *site) {
    for (uint32_t i = __atomic_load_n(&n_objects, __ATOMIC_ACQUIRE); i > 0; i--)
        if ((uintptr_t)site - objects[i - 1].from < objects[i - 1].to - objects[i - 1].from)
            return objects[i - 1].library;
    return NULL;
}

/* In a forked child a thread that was writing is not there. */
static void begin_writing(void) {
    uint32_t mine = sbt_fork_generation() + 1;
    for (unsigned i = 0;; i++) {
        uint32_t seen = __atomic_load_n(&writing, __ATOMIC_RELAXED);
        if (seen != mine &&
            __atomic_compare_exchange_n(&writing, &seen, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        rec_wait_a_moment(i);
    }
}

const struct rec_openmp_library *rec_openmp_library_of(const void *site, const struct rec_openmp_library *else_this) {
    const struct rec_openmp_library *library = __atomic_load_n(&of_all, __ATOMIC_ACQUIRE);
    struct object o;
    if (library != NULL || (library = known(site)) != NULL)
        return library;
    if (else_this != NULL)
        return else_this;
    begin_writing();
    if ((library = known(site)) == NULL)
        library = find(site);
    if (library != NULL && of_all == NULL && n_objects < N_OBJECTS && range_of(site, &o)) {
        o.library = library;
        objects[n_objects] = o;
        __atomic_store_n(&n_objects, n_objects + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&writing, 0, __ATOMIC_RELEASE);
    return library;
}
