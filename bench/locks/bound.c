/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bounds, which are no locks: the first thread runs all sections, and the others end at once.
 *
 * bare: the sections alone, on a core that has their data. Sections of one lock run one after the other, so whatever a
 * lock does comes on top.
 * calls: the same between two calls that do nothing. A lock that a program calls makes these at least, even if no
 * thread ever waits for it: it is the bound of pthread_mutex_lock and pthread_mutex_unlock, of any form.
 */
#include "locks/locks.h"

static void bound_init(void *lock) {
    (void)lock;
}

static void bound_node_init(void *lock, void *node) {
    (void)lock, (void)node;
}

static void bare_execute(void *lock, void *node, lock_section *section, void *context) {
    (void)lock, (void)node;
    section(context);
}

/* Opaque, so that the compiler leaves neither call out. */
__attribute__((noinline)) static int nothing(void *lock) {
    __asm__ volatile("" : : "r"(lock) : "memory");
    return 0;
}

static void calls_execute(void *lock, void *node, lock_section *section, void *context) {
    (void)node;
    if (nothing(lock) == 0)
        section(context);
    nothing(lock);
}

#define BOUND(title, what, run)                                                                                        \
    {                                                                                                                  \
        .name = title, .after = what, .bytes = 1, .node_bytes = 0, .alone = true, .init = bound_init,                  \
        .node_init = bound_node_init, .execute = run                                                                   \
    }

const struct lock_kind lock_bare = BOUND("bare", "no lock: one thread runs all sections", bare_execute);
const struct lock_kind lock_calls = BOUND("calls", "no lock: one thread, two calls that do nothing", calls_execute);
