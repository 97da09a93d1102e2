/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which libraries are served; see sites.h. */
#include "core/sites.h"

#include <stddef.h>
#include <string.h>

#include "core/eligibility_table.h"
#include "core/log.h"
#include "core/thread.h"
#include "os/lock.h"
#include "os/site_stub.h"

/* A process has one libgomp, or one for each of a few Python packages. Further ones are not served. */
enum { LIBRARIES_MAX = 16 };

static struct {
    struct sbt_lock lock; /* of all writers */
    const struct sbt_sites_by *by;
    uint64_t n_loads;   /* of the process, when its libraries were looked at last; atomic, a hint */
    uint64_t n_unloads; /* now */
    uint32_t n;         /* atomic */
    bool is_still;      /* libraries do not spin */
    uint32_t n_threads; /* that served libraries have created; atomic */
    bool is_set_for_crowd; /* the libraries' variables are; atomic */
    /* Only added to, so it is read without the lock. A library may stand here again, after it was unloaded. */
    struct library {
        uintptr_t base;
        uint64_t n_unloads; /* of the process, when this was written */
        bool is_served;
        const void *stubs; /* NULL: it needs none */
        struct sbt_sites sites;
    } library[LIBRARIES_MAX];
} state;

static const char *serve(struct library *l, const struct dl_phdr_info *info) {
    const char *why = sbt_sites_find(&l->sites, info);
    if (why != NULL || l->sites.n == 0)
        return why;
    const void *entry = l->sites.is_wide ? state.by->wide : state.by->narrow;
    if (entry == NULL)
        return "uses vector registers that this processor cannot save in one go";
    return sbt_stubs_put(&l->sites, entry, &l->stubs);
}

/* The newest entry; NULL: there is none. */
static const struct library *find(const struct dl_phdr_info *info) {
    for (uint32_t i = __atomic_load_n(&state.n, __ATOMIC_ACQUIRE); i > 0; i--) /* pairs with the store in look_at */
        if (state.library[i - 1].base == info->dlpi_addr)
            return &state.library[i - 1];
    return NULL;
}

static bool still_served(const struct library *l) {
    return l->is_served && (l->stubs == NULL || sbt_stubs_are_there(&l->sites, l->stubs));
}

bool sbt_sites_are_served(const struct dl_phdr_info *library) {
    const struct library *l = find(library);
    return l != NULL && still_served(l);
}

static int look_at(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    if (info->dlpi_name == NULL || !sbt_eligibility_is_gomp(info->dlpi_name))
        return 0;
    const struct library *old = find(info);
    if (old != NULL && (still_served(old) || (!old->is_served && old->n_unloads == state.n_unloads)))
        return 0;
    if (state.n == LIBRARIES_MAX)
        return 1;
    struct library *new = &state.library[state.n];
    const char *why = serve(new, info);
    new->base = info->dlpi_addr;
    new->n_unloads = state.n_unloads;
    new->is_served = why == NULL;
    __atomic_store_n(&state.n, state.n + 1, __ATOMIC_RELEASE);
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
    return __atomic_load_n(&state.n_threads, __ATOMIC_SEQ_CST) + 1 > sbt_usable_cpus();
}

/* libgomp reads the variables before each wait, without order. */
static void set_spins(void) {
    const bool crowded = is_crowded();
    for (uint32_t i = 0; i < state.n; i++) {
        const struct library *l = &state.library[i];
        if (l->sites.spins == NULL || !still_served(l))
            continue;
        __atomic_store_n(l->sites.spins, state.is_still ? 0 : crowded ? SBT_SITE_CROWDED_SPINS : SBT_SITE_SPINS,
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

bool sbt_sites_have(const void *code) {
    for (uint32_t i = __atomic_load_n(&state.n, __ATOMIC_ACQUIRE); i > 0; i--) { /* pairs with the store in look_at */
        const struct library *l = &state.library[i - 1];
        if (l->is_served && (uintptr_t)code - l->sites.code < l->sites.code_end - l->sites.code)
            return true;
    }
    return false;
}

void sbt_sites_serve(const struct sbt_sites_by *by) {
    struct counts now = {0, 0};
    dl_iterate_phdr(count, &now);
    if (SBT_LIKELY(__atomic_load_n(&state.n_loads, __ATOMIC_ACQUIRE) == now.loads)) /* pairs with the store below */
        return;
    sbt_lock_take(&state.lock);
    const uint32_t n_before = state.n;
    state.by = by;
    state.n_unloads = now.unloads;
    dl_iterate_phdr(look_at, NULL);
    set_spins();
    for (uint32_t i = n_before; i < state.n;
         i++) /* not above: it may wait for a thread that waits for the list's lock */
        if (state.library[i].is_served)
            by->adopt(state.library[i].sites.code, state.library[i].sites.code_end);
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
    sbt_self.of_site = false;
}
