/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which libraries are served, as they are loaded and unloaded; and how long they spin. The libraries are made up: the
 * dynamic linker's list, what is found in a library, and its stubs are this file's.
 */
#include <link.h>
#include <string.h>

#include "core/eligibility_table.h"
#include "core/log.h"
#include "core/sites.h"
#include "core/thread.h"
#include "lib/suite.h"
#include "os/fence.h"
#include "os/lock.h"
#include "os/objects.h"
#include "os/site_stub.h"

_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));
uint32_t sbt_n_cpus = 2;

/* ---- libraries ---- */
enum { LIBRARIES = 20, CODE_BYTES = 0x1000 };
struct made {
    uintptr_t base; /* 0: not loaded */
    const char *name, *why;
    uint64_t spins, crowded_spins;
    bool chosen; /* the user has chosen how it waits */
    enum sbt_stubs_state stubs;
    int n_stubs; /* pages of stubs that exist for it */
};
static struct made made[LIBRARIES];
static uint64_t n_loads, n_unloads;

static struct made *at(uintptr_t base) {
    for (int i = 0; i < LIBRARIES; i++)
        if (made[i].base == base)
            return &made[i];
    return NULL;
}

static void load_at(int i, uintptr_t base, const char *name) {
    made[i] = (struct made){.base = base, .name = name, .stubs = SBT_STUBS_GONE, .n_stubs = made[i].n_stubs};
    made[i].spins = SBT_SITE_SPINS;
    made[i].crowded_spins = SBT_SITE_CROWDED_SPINS;
    n_loads++;
}

static void load(int i) {
    load_at(i, (uintptr_t)(i + 1) << 20, "/lib/libgomp.so.1");
}

static void unload(int i) {
    made[i].base = 0;
    n_unloads++;
}

int sbt_objects_iterate(int (*callback)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    int r = 0;
    for (int i = 0; i < LIBRARIES && r == 0; i++) {
        if (made[i].base == 0)
            continue;
        struct dl_phdr_info info = {.dlpi_addr = made[i].base, .dlpi_name = made[i].name};
        info.dlpi_adds = n_loads;
        info.dlpi_subs = n_unloads;
        r = callback(&info, sizeof info, data);
    }
    return r;
}

bool sbt_eligibility_is_gomp(const char *file) {
    return strstr(file, "libgomp") != NULL;
}

const char *sbt_sites_find(struct sbt_sites *sites, const struct dl_phdr_info *library) {
    struct made *m = at(library->dlpi_addr);
    *sites = (struct sbt_sites){.n = 1, .code = m->base, .code_end = m->base + CODE_BYTES};
    if (!m->chosen) {
        sites->spins = &m->spins;
        sites->crowded_spins = &m->crowded_spins;
    }
    return m->why;
}

/* The stubs of a library are its own record, whatever is loaded there later. */
const char *sbt_stubs_put(const struct sbt_sites *sites, const void *entry, const void **stubs) {
    struct made *m = at(sites->code);
    CHECK(entry != NULL);
    m->n_stubs++;
    m->stubs = SBT_STUBS_THERE;
    *stubs = m;
    return NULL;
}

enum sbt_stubs_state sbt_stubs_look(const struct sbt_sites *sites, const void *stubs) {
    const struct made *m = at(sites->code);
    (void)stubs;
    return m != NULL ? m->stubs : SBT_STUBS_UNKNOWN;
}

void sbt_stubs_remove(const void *stubs) {
    ((struct made *)(uintptr_t)stubs)->n_stubs--;
}

/* ---- what the library does otherwise ---- */
static int n_logs;
void sbt_log(unsigned verbosity, const char *first, ...) {
    (void)verbosity, (void)first;
    n_logs++;
}

bool sbt_fence_asymmetric;

/* There is one thread. */
void sbt_lock_take_slow(struct sbt_lock *lock) {
    (void)lock;
    FAIL("waits for a lock that it holds");
}

void sbt_lock_wake(struct sbt_lock *lock) {
    (void)lock;
    FAIL("wakes a thread that does not exist");
}

static uintptr_t adopted[LIBRARIES];
static int n_adopted, crowd_at_adoption;

static void adopt(uintptr_t from, uintptr_t to) {
    CHECK_INT(to - from, CODE_BYTES);
    adopted[n_adopted++] = from;
    sbt_sites_crowd(crowd_at_adoption);
}

static void forget(uintptr_t from, uintptr_t to) {
    CHECK_INT(to - from, CODE_BYTES);
    for (int i = 0; i < n_adopted; i++)
        if (adopted[i] == from) {
            adopted[i] = adopted[--n_adopted];
            return;
        }
    FAIL("forgets what was not adopted");
}

static void serve(void) {
    static const struct sbt_sites_by by = {"narrow", NULL, adopt, forget};
    sbt_sites_serve(&by);
}

static bool is_served(int i) {
    const struct dl_phdr_info info = {.dlpi_addr = made[i].base, .dlpi_name = made[i].name};
    return sbt_sites_are_served(&info);
}

static const char *why_not(int i) {
    const struct dl_phdr_info info = {.dlpi_addr = made[i].base, .dlpi_name = made[i].name};
    return sbt_sites_why_not(&info);
}

/* ---- loads and unloads ---- */
TEST(serve__once_for_each_library) {
    load(0);
    load(1);
    load_at(2, 0x7000000, "/lib/libm.so.6");
    CHECK(!is_served(0));
    serve();
    serve();
    load_at(3, 0x8000000, "/lib/libz.so.1");
    serve();
    CHECK(is_served(0) && is_served(1) && !is_served(2) && !is_served(3));
    CHECK_INT(n_adopted, 2);
    CHECK_INT(made[0].n_stubs, 1);
    CHECK_INT(n_logs, 2);
    CHECK(sbt_sites_have((void *)made[1].base));
    CHECK(sbt_sites_have((void *)(made[1].base + CODE_BYTES - 1)));
    CHECK(!sbt_sites_have((void *)(made[1].base + CODE_BYTES)));
    CHECK(!sbt_sites_have((void *)(made[0].base - 1)));
}

TEST(unload__forgets_library_and_stubs) {
    load(0);
    load(1);
    serve();
    const uintptr_t base = made[0].base;
    unload(0);
    load_at(2, 0x7000000, "/lib/libm.so.6");
    serve();
    CHECK_INT(n_adopted, 1);
    CHECK_INT(adopted[0], made[1].base);
    CHECK_INT(made[0].n_stubs, 0);
    CHECK_INT(made[1].n_stubs, 1);
    CHECK(is_served(1));
    CHECK(!sbt_sites_have((void *)base));
}

TEST(unload__other_library_in_its_place_is_judged_anew,
     "before any look, and after one; one that can be served or not") {
    load(0);
    serve();
    unload(0);
    load(0);
    CHECK(!is_served(0));
    serve();
    CHECK(is_served(0));
    CHECK_INT(n_adopted, 1);
    CHECK_INT(made[0].n_stubs, 1);
    unload(0);
    load(0);
    made[0].why = "is of an unknown build";
    serve();
    CHECK(!is_served(0));
    CHECK(why_not(0) == made[0].why);
    CHECK(!sbt_sites_have((void *)made[0].base));
    CHECK_INT(n_adopted, 0);
    CHECK_INT(made[0].n_stubs, 0);
    load_at(1, 0x7000000, "/lib/libm.so.6"); /* and is not looked at again while nothing is unloaded */
    const int before = n_logs;
    serve();
    CHECK_INT(n_logs, before);
    unload(0);
    load(0);
    serve();
    CHECK(is_served(0));
    CHECK(why_not(0) == NULL);
}

TEST(unload__library_of_another_kind_in_its_place) {
    load(0);
    serve();
    unload(0);
    load_at(0, (uintptr_t)1 << 20, "/lib/libm.so.6");
    CHECK(!is_served(0));
    serve();
    CHECK_INT(n_adopted, 0);
    CHECK_INT(made[0].n_stubs, 0);
    CHECK(!is_served(0));
}

TEST(unload__not_taken_for_it_if_code_cannot_be_read, "the jumps may be there: their stubs must be") {
    load(0);
    load(1);
    serve();
    made[0].stubs = SBT_STUBS_UNKNOWN;
    unload(1);
    load(1);
    serve();
    CHECK_INT(made[0].n_stubs, 1);
    CHECK_INT(n_adopted, 2);
    CHECK(!is_served(0));
    made[0].stubs = SBT_STUBS_THERE;
    CHECK(is_served(0));
}

TEST(places__are_used_again) {
    load(1);
    serve();
    for (int i = 0; i < 200; i++) {
        load_at(0, (uintptr_t)(i % 70 + 10) << 20, "libgomp-a34b3233.so.1");
        serve();
        CHECK(is_served(0) && is_served(1));
        CHECK_INT(n_adopted, 2);
        CHECK_INT(made[0].n_stubs, 1);
        unload(0);
    }
}

TEST(places__16_at_once) {
    for (int i = 0; i < 17; i++)
        load(i);
    serve();
    for (int i = 0; i < 16; i++)
        CHECK(is_served(i));
    CHECK(!is_served(16));
    unload(3);
    load(17);
    serve();
    CHECK_INT(is_served(16) + is_served(17), 1);
    CHECK_INT(n_adopted, 16);
}

/* ---- spins ---- */
#define CHECK_SPINS(i, n)                                                                                              \
    do {                                                                                                               \
        CHECK_INT(made[i].spins, n);                                                                                   \
        CHECK_INT(made[i].crowded_spins, (n) == 0 ? 0 : SBT_SITE_CROWDED_SPINS);                                       \
    } while (0)

TEST(spins__short_with_more_threads_than_cpus, "of all served libraries together; as made again afterwards") {
    load(0);
    load(1);
    made[1].chosen = true;
    serve();
    CHECK_SPINS(0, SBT_SITE_SPINS);
    sbt_sites_crowd(1); /* two threads, with the one that has created it */
    CHECK_SPINS(0, SBT_SITE_SPINS);
    sbt_sites_crowd(1);
    CHECK_SPINS(0, SBT_SITE_CROWDED_SPINS);
    load(2);
    serve();
    CHECK_SPINS(2, SBT_SITE_CROWDED_SPINS);
    sbt_sites_crowd(5);
    sbt_sites_crowd(-5);
    CHECK_SPINS(0, SBT_SITE_CROWDED_SPINS);
    sbt_sites_crowd(-1);
    CHECK_SPINS(0, SBT_SITE_SPINS);
    CHECK_SPINS(2, SBT_SITE_SPINS);
    CHECK_SPINS(1, SBT_SITE_SPINS);
}

TEST(spins__follow_usable_cpus) {
    load(0);
    serve();
    sbt_sites_crowd(1);
    sbt_n_cpus = 1;
    CHECK_SPINS(0, SBT_SITE_SPINS);
    sbt_sites_crowd(0);
    CHECK_SPINS(0, SBT_SITE_CROWDED_SPINS);
    sbt_n_cpus = 2;
    sbt_sites_crowd(0);
    CHECK_SPINS(0, SBT_SITE_SPINS);
}

TEST(spins__none_while_threads_are_switched) {
    load(0);
    serve();
    sbt_sites_spin(false);
    CHECK_SPINS(0, 0);
    sbt_sites_crowd(2);
    CHECK_SPINS(0, 0);
    load(1);
    serve();
    CHECK_SPINS(1, 0);
    sbt_sites_spin(true);
    CHECK_SPINS(0, SBT_SITE_CROWDED_SPINS);
    CHECK_SPINS(1, SBT_SITE_CROWDED_SPINS);
}

TEST(spins__threads_change_while_libraries_are_looked_at, "as in a signal handler: no wait for the lock, and no loss") {
    load(0);
    crowd_at_adoption = 2;
    serve();
    CHECK_SPINS(0, SBT_SITE_CROWDED_SPINS);
    load(1);
    crowd_at_adoption = -2;
    serve();
    CHECK_SPINS(0, SBT_SITE_SPINS);
    CHECK_SPINS(1, SBT_SITE_SPINS);
}

TEST(spins__other_programs_want_the_cpus) {
    load(0);
    serve();
    CHECK_INT(sbt_sites_n_threads(), 0);
    sbt_sites_crowd(1);
    CHECK_INT(sbt_sites_n_threads(), 2);
    CHECK_SPINS(0, SBT_SITE_SPINS);
    sbt_sites_beside(true);
    CHECK_SPINS(0, SBT_SITE_CROWDED_SPINS);
    load(1);
    serve();
    CHECK_SPINS(1, SBT_SITE_CROWDED_SPINS);
    sbt_sites_spin(false);
    CHECK_SPINS(0, 0);
    sbt_sites_beside(false);
    CHECK_SPINS(0, 0);
    sbt_sites_spin(true);
    CHECK_SPINS(0, SBT_SITE_SPINS);
    CHECK_SPINS(1, SBT_SITE_SPINS);
}

TEST(spins__forked_child_has_no_such_threads) {
    load(0);
    serve();
    sbt_sites_crowd(4);
    sbt_sites_beside(true);
    sbt_self.of_site = true;
    sbt_sites_fork_child();
    CHECK(!sbt_self.of_site);
    sbt_sites_crowd(0);
    CHECK_SPINS(0, SBT_SITE_SPINS);
}
