/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tas: all threads try to set one variable by compare-and-swap, without a look before: the spinlock of the slides of
 * J.-P. Lozi's thesis defence, where its cost under contention is the starting point.
 *
 * ticket: J. M. Mellor-Crummey, M. L. Scott, Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors,
 * ACM TOCS 9(1), 1991, section 2.2. Sections run in the order in which tickets were drawn.
 */
#include "locks/locks.h"
#include "locks/wait.h"

struct tas {
    uint32_t held;
};

static void tas_init(void *lock) {
    ((struct tas *)lock)->held = 0;
}

static void no_node(void *lock, void *node) {
    (void)lock, (void)node;
}

static void tas_execute(void *lock, void *node, lock_section *section, void *context) {
    struct tas *l = lock;
    (void)node;
    /* Acquire pairs with the release below: the section sees the one before it. */
    for (uint32_t free = 0; !__atomic_compare_exchange_n(&l->held, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
         free = 0)
        lock_relax();
    section(context);
    __atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

const struct lock_kind lock_tas = {
    .name = "tas",
    .after = "a variable that all threads compare and swap",
    .bytes = sizeof(struct tas),
    .node_bytes = 0,
    .init = tas_init,
    .node_init = no_node,
    .execute = tas_execute,
};

struct ticket {
    uint32_t next; /* to be drawn */
    _Alignas(LOCK_LINE) uint32_t serving;
};

static void ticket_init(void *lock) {
    struct ticket *l = lock;
    l->next = l->serving = 0;
}

static void ticket_execute(void *lock, void *node, lock_section *section, void *context) {
    struct ticket *l = lock;
    (void)node;
    /* Relaxed: it orders only the threads among each other; `serving` carries the data. */
    uint32_t mine = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&l->serving, __ATOMIC_ACQUIRE) != mine)
        lock_relax();
    section(context);
    __atomic_store_n(&l->serving, mine + 1, __ATOMIC_RELEASE);
}

const struct lock_kind lock_ticket = {
    .name = "ticket",
    .after = "Mellor-Crummey and Scott, ACM TOCS 1991",
    .bytes = sizeof(struct ticket),
    .node_bytes = 0,
    .fifo = true,
    .init = ticket_init,
    .node_init = no_node,
    .execute = ticket_execute,
};
