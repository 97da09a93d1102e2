/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * clh: T. S. Craig, Building FIFO and Priority-Queueing Spin Locks from Atomic Swap, TR 93-02-02, University of
 * Washington, 1993; P. Magnusson, A. Landin, E. Hagersten, Queue Locks on Cache Coherent Multiprocessors, IPPS 1994.
 * The list is implicit: a thread waits on the node of the thread before it, and takes that node over for its next
 * section.
 */
#include "locks/locks.h"
#include "locks/wait.h"

struct clh_node {
    _Alignas(LOCK_LINE) uint32_t pending; /* the thread that queued with it has or wants the lock */
};

struct clh {
    struct clh_node *tail;
    struct clh_node first; /* of no thread: the lock is free */
};

struct clh_thread {
    struct clh_node *mine; /* what it queues with next; after a section its predecessor's */
    struct clh_node own;
};

static void clh_init(void *lock) {
    struct clh *l = lock;
    l->first.pending = 0;
    l->tail = &l->first;
}

static void clh_node_init(void *lock, void *node) {
    struct clh_thread *me = node;
    (void)lock;
    me->own.pending = 0;
    me->mine = &me->own;
}

static void clh_execute(void *lock, void *node, lock_section *section, void *context) {
    struct clh *l = lock;
    struct clh_thread *me = node;
    struct clh_node *mine = me->mine;
    __atomic_store_n(&mine->pending, 1, __ATOMIC_RELAXED); /* the exchange's release shows it */
    struct clh_node *before = __atomic_exchange_n(&l->tail, mine, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&before->pending, __ATOMIC_ACQUIRE) != 0)
        lock_relax();
    section(context);
    me->mine = before; /* its thread has gone on with the node of its own predecessor */
    __atomic_store_n(&mine->pending, 0, __ATOMIC_RELEASE);
}

const struct lock_kind lock_clh = {
    .name = "clh",
    .after = "Craig, TR 93-02-02, 1993; Magnusson, Landin and Hagersten, IPPS 1994",
    .bytes = sizeof(struct clh),
    .node_bytes = sizeof(struct clh_thread),
    .fifo = true,
    .init = clh_init,
    .node_init = clh_node_init,
    .execute = clh_execute,
};
