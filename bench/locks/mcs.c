/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mcs: J. M. Mellor-Crummey, M. L. Scott, ACM TOCS 9(1), 1991, algorithm 5 (and ASPLOS 1991). Threads queue in a list;
 * each waits on a variable in its own node, so a release invalidates the cache line of one waiter only.
 */
#include "locks/locks.h"
#include "locks/wait.h"

struct mcs_node {
    struct mcs_node *next;
    uint32_t waits;
};

struct mcs {
    struct mcs_node *tail; /* NULL: free */
};

static void mcs_init(void *lock) {
    ((struct mcs *)lock)->tail = NULL;
}

static void mcs_node_init(void *lock, void *node) {
    (void)lock;
    *(struct mcs_node *)node = (struct mcs_node){NULL, 0};
}

static void mcs_acquire(struct mcs *l, struct mcs_node *me) {
    /* Relaxed: no other thread has the node until the exchange, which shows them by its release. */
    __atomic_store_n(&me->next, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&me->waits, 1, __ATOMIC_RELAXED);
    /* Acquire pairs with the compare-and-swap of an owner that found no thread behind it. */
    struct mcs_node *before = __atomic_exchange_n(&l->tail, me, __ATOMIC_ACQ_REL);
    if (before == NULL)
        return;
    __atomic_store_n(&before->next, me, __ATOMIC_RELEASE);
    while (__atomic_load_n(&me->waits, __ATOMIC_ACQUIRE) != 0) /* pairs with the store in mcs_release */
        lock_relax();
}

static void mcs_release(struct mcs *l, struct mcs_node *me) {
    struct mcs_node *next = __atomic_load_n(&me->next, __ATOMIC_ACQUIRE), *tail = me;
    if (next == NULL) {
        if (__atomic_compare_exchange_n(&l->tail, &tail, NULL, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
        /* A thread has put itself behind this one and will say so. */
        while ((next = __atomic_load_n(&me->next, __ATOMIC_ACQUIRE)) == NULL)
            lock_relax();
    }
    __atomic_store_n(&next->waits, 0, __ATOMIC_RELEASE);
}

static void mcs_execute(void *lock, void *node, lock_section *section, void *context) {
    mcs_acquire(lock, node);
    section(context);
    mcs_release(lock, node);
}

const struct lock_kind lock_mcs = {
    .name = "mcs",
    .after = "Mellor-Crummey and Scott, ASPLOS 1991",
    .bytes = sizeof(struct mcs),
    .node_bytes = sizeof(struct mcs_node),
    .fifo = true,
    .init = mcs_init,
    .node_init = mcs_node_init,
    .execute = mcs_execute,
};
