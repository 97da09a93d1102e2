/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which libraries are served; see sites.h. */
#include "core/sites.h"

#include <stddef.h>
#include <string.h>

#include "core/eligibility_table.h"
#include "core/log.h"
#include "core/thread.h"
#include "os/dynamic.h"
#include "os/lock.h"
#include "os/objects.h"
#include "os/site_stub.h"

/* A process has one libgomp, or one for each of a few Python packages. Further ones are not served. */
enum { LIBRARIES_MAX = 16 };

static struct {
    struct sbt_lock lock; /* of all writers */
    const struct sbt_sites_by *by;
    uint64_t n_loads;      /* of the process, when its libraries were looked at last; atomic, a hint */
    uint64_t n_unloads;    /* now */
    uint32_t n;            /* places that have been used; atomic */
    bool is_still;         /* libraries do not spin */
    uint32_t n_threads;    /* that served libraries have created; atomic */
    bool is_beside;        /* other programs want the CPUs; atomic */
    bool is_set_for_crowd; /* the libraries' variables are; atomic */
    /*
     * Read without the lock: a reader that has met a change reads again (Linux's seqcount). What it reads meanwhile is
     * wrong, and does no harm: addresses are read from only after the kernel was asked whether they may be.
     */
    struct library {
        uint32_t changes; /* odd: it is being changed; atomic */
        bool is_served, is_new, is_loaded;
        uintptr_t base;     /* 0: the place is free; atomic */
        uint64_t n_unloads; /* of the process, when this was written */
        const void *stubs;  /* NULL: it needs none */
        const char *why;    /* it is not served: the end of a sentence "LIBRARY ..."; NULL: it is; atomic */
        struct sbt_sites sites;
    } library[LIBRARIES_MAX];
} state;

static void begin_change(struct library *l) {
    __atomic_store_n(&l->changes, l->changes + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* before what is changed; pairs with the fence of is_unchanged */
}

static void end_change(struct library *l) {
    __atomic_store_n(&l->changes, l->changes + 1, __ATOMIC_RELEASE); /* pairs with the load of begin_reading */
}

static uint32_t begin_reading(const struct library *l) {
    return __atomic_load_n(&l->changes, __ATOMIC_ACQUIRE);
}

static bool is_unchanged(const struct library *l, uint32_t before) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return before % 2 == 0 && __atomic_load_n(&l->changes, __ATOMIC_RELAXED) == before;
}

static const char *serve(struct library *l, const struct dl_phdr_info *info) {
    l->stubs = NULL;
    const char *why = sbt_sites_find(&l->sites, info);
    if (why != NULL || l->sites.n == 0)
        return why;
    const void *entry = l->sites.is_wide ? state.by->wide : state.by->narrow;
    if (entry == NULL)
        return "waits by system calls of its own, and they cannot be replaced: it uses vector registers that this "
               "processor cannot save in one go";
    return sbt_stubs_put(&l->sites, entry, &l->stubs);
}

static bool still_served(const struct library *l) {
    return l->is_served && (l->stubs == NULL || sbt_stubs_are_there(&l->sites, l->stubs));
}

/* A library of which it is so; NULL: none. */
static const struct library *find(bool (*is)(const struct library *l, uintptr_t argument), uintptr_t argument) {
    for (uint32_t i = __atomic_load_n(&state.n, __ATOMIC_ACQUIRE); i > 0; i--) { /* pairs with the store in place */
        const struct library *l = &state.library[i - 1];
        uint32_t before;
        bool found;
        do {
            before = begin_reading(l);
            found = __atomic_load_n(&l->base, __ATOMIC_RELAXED) != 0 && is(l, argument);
        } while (!is_unchanged(l, before) && before % 2 == 0);
        if (found && before % 2 == 0)
            return l;
    }
    return NULL;
}

static bool is_served_at(const struct library *l, uintptr_t base) {
    return l->base == base && still_served(l);
}

bool sbt_sites_are_served(const struct dl_phdr_info *library) {
    return find(is_served_at, library->dlpi_addr) != NULL;
}

static bool is_at(const struct library *l, uintptr_t base) {
    return l->base == base;
}

const char *sbt_sites_why_not(const struct dl_phdr_info *library) {
    const struct library *l = find(is_at, library->dlpi_addr);
    return l != NULL ? __atomic_load_n(&l->why, __ATOMIC_RELAXED) : NULL; /* the text is constant */
}

static bool has(const struct library *l, uintptr_t code) {
    return l->is_served && code - l->sites.code < l->sites.code_end - l->sites.code;
}

bool sbt_sites_have(const void *code) {
    return find(has, (uintptr_t)code) != NULL;
}

/* The library is not loaded any more, or has been changed back. */
static void forget(struct library *l) {
    if (l->stubs != NULL)
        sbt_stubs_remove(l->stubs);
    if (l->is_served)
        state.by->forget(l->sites.code, l->sites.code_end);
    begin_change(l);
    __atomic_store_n(&l->base, 0, __ATOMIC_RELAXED);
    l->is_served = l->is_new = false;
    l->stubs = NULL;
    end_change(l);
}

/* A place for that library; NULL: there is none. It has the library's own, or a free one. */
static struct library *place(uintptr_t base) {
    struct library *found = NULL;
    for (uint32_t i = 0; i < state.n; i++) {
        struct library *l = &state.library[i];
        if (l->base == base)
            return l;
        if (l->base == 0)
            found = l;
    }
    if (found == NULL && state.n < LIBRARIES_MAX) {
        found = &state.library[state.n];
        __atomic_store_n(&state.n, state.n + 1, __ATOMIC_RELEASE);
    }
    return found;
}

/*
 * Is what is loaded there the library that is known from before? It is if the jumps are there. Code that cannot be read
 * counts as known, because a library that was loaded just now can be read.
 */
static bool is_known(const struct library *l) {
    if (!l->is_served || l->stubs == NULL)
        return l->n_unloads == state.n_unloads;
    return sbt_stubs_look(&l->sites, l->stubs) != SBT_STUBS_GONE;
}

/* Mark the libraries that are still loaded. */
static int note_loaded(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    for (uint32_t i = 0; i < state.n; i++)
        if (state.library[i].base != 0 && state.library[i].base == info->dlpi_addr)
            state.library[i].is_loaded = is_known(&state.library[i]);
    return 0;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    if (info->dlpi_name == NULL || !sbt_eligibility_is_gomp(sbt_dynamic_name(info)))
        return 0;
    struct library *l = place(info->dlpi_addr);
    if (l == NULL)
        return 1;
    if (l->base != 0)
        return 0;
    begin_change(l);
    const char *why = serve(l, info);
    __atomic_store_n(&l->base, info->dlpi_addr, __ATOMIC_RELAXED);
    l->n_unloads = state.n_unloads;
    l->is_served = l->is_new = why == NULL;
    __atomic_store_n(&l->why, why, __ATOMIC_RELAXED);
    end_change(l);
    if (why != NULL)
        sbt_log(2, "the futex calls of ", info->dlpi_name, " are not served: it ", why, NULL);
    else
        sbt_log(2, "the futex calls of ", info->dlpi_name, " are served", NULL);
    return 0;
}

struct counts {
    uint64_t loads, unloads;
};

static int count(struct dl_phdr_info *info, size_t size, void *argument) {
    struct counts *c = argument;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
        c->loads = info->dlpi_adds;
        c->unloads = info->dlpi_subs;
    }
    return 1; /* the first library knows the numbers */
}

/* The thread that creates the others waits too. */
static bool is_crowded(void) {
    return __atomic_load_n(&state.n_threads, __ATOMIC_SEQ_CST) + 1 > sbt_usable_cpus() ||
           __atomic_load_n(&state.is_beside, __ATOMIC_SEQ_CST);
}

/* libgomp reads the variables before each wait, without order. */
static void set_spins(void) {
    const bool crowded = is_crowded();
    for (uint32_t i = 0; i < state.n; i++) {
        const struct library *l = &state.library[i];
        if (l->base == 0 || l->sites.spins == NULL || !still_served(l))
            continue;
        __atomic_store_n(l->sites.spins,
                         state.is_still ? 0
                         : crowded      ? SBT_SITE_CROWDED_SPINS
                                        : SBT_SITE_SPINS,
                         __ATOMIC_RELAXED);
        __atomic_store_n(l->sites.crowded_spins, state.is_still ? 0 : SBT_SITE_CROWDED_SPINS, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&state.is_set_for_crowd, crowded, __ATOMIC_SEQ_CST);
}

/*
 * Set the variables if they have to be, or let the owner of the lock do so: that may be the function that a handler has
 * interrupted, so this does not wait for the lock.
 *  1. This changes the number of threads. Then it looks whether the variables are set for what is true now, and tries
 *     the lock.
 *  2. The owner sets the variables for the number that it reads, and drops the lock. Then it looks as well (drop).
 * Sequentially consistent: either this sees what the owner has set, or the owner sees what has changed.
 */
static void set_spins_soon(void) {
    while (__atomic_load_n(&state.is_set_for_crowd, __ATOMIC_SEQ_CST) != is_crowded() && sbt_lock_try(&state.lock)) {
        set_spins();
        sbt_lock_drop(&state.lock);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
}

static void drop(void) {
    sbt_lock_drop(&state.lock);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    set_spins_soon();
}

void sbt_sites_spin(bool yes) {
    sbt_lock_take(&state.lock);
    state.is_still = !yes;
    set_spins();
    drop();
}

void sbt_sites_crowd(int n_more) {
    __atomic_fetch_add(&state.n_threads, (uint32_t)n_more, __ATOMIC_SEQ_CST);
    set_spins_soon();
}

uint32_t sbt_sites_n_threads(void) {
    const uint32_t n = __atomic_load_n(&state.n_threads, __ATOMIC_RELAXED);
    return n != 0 ? n + 1 : 0;
}

void sbt_sites_beside(bool others) {
    __atomic_store_n(&state.is_beside, others, __ATOMIC_SEQ_CST);
    set_spins_soon();
}

void sbt_sites_serve(const struct sbt_sites_by *by) {
    struct counts now = {0, 0};
    sbt_objects_iterate(count, &now);
    if (SBT_LIKELY(__atomic_load_n(&state.n_loads, __ATOMIC_ACQUIRE) == now.loads)) /* pairs with the store below */
        return;
    sbt_lock_take(&state.lock);
    state.by = by;
    state.n_unloads = now.unloads;
    for (uint32_t i = 0; i < state.n; i++)
        state.library[i].is_loaded = false;
    sbt_objects_iterate(note_loaded, NULL);
    for (uint32_t i = 0; i < state.n; i++)
        if (state.library[i].base != 0 && !state.library[i].is_loaded)
            forget(&state.library[i]);
    sbt_objects_iterate(look_at, NULL);
    set_spins();
    /* Not in look_at: this may wait for a thread that waits for the lock of the list. */
    for (uint32_t i = 0; i < state.n; i++)
        if (state.library[i].is_new) {
            state.library[i].is_new = false;
            by->adopt(state.library[i].sites.code, state.library[i].sites.code_end);
        }
    __atomic_store_n(&state.n_loads, now.loads, __ATOMIC_RELEASE);
    drop();
}

void sbt_sites_serve_new(void) {
    if (state.by != NULL)
        sbt_sites_serve(state.by);
}

/* A thread that does not exist here may have held the lock. What it had not finished is done again. */
void sbt_sites_fork_child(void) {
    memset(&state.lock, 0, sizeof state.lock);
    state.n_threads = 0;
    state.is_beside = false;
    sbt_self.of_site = false;
}
