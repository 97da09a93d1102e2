/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mcs-tp: B. He, W. N. Scherer III, M. L. Scott, Preemption Adaptivity in Time-Published Queue-Based Spin Locks, HiPC
 * 2005, the MCS-TP lock.
 *
 * A queue lock hands itself to a thread that may not be running. Here each waiter publishes the time in its node while
 * it runs. A release passes over waiters with a stale time, and marks their nodes as passed over; such a waiter
 * queues again when it runs. A waiter that runs out of patience leaves its node behind, and if it comes back before a
 * release has passed the node over, it takes its old place. Waiters give way if the owner has the lock for so long that
 * it is probably preempted.
 *
 * The state of a node, and which thread may change it:
 *   WAITING   its thread waits          -> GRANTED, PASSED by the releasing thread; -> LEFT by its own
 *   GRANTED   its thread has the lock   -> PASSED by its own thread's release
 *   LEFT      its patience has ended    -> WAITING by its own; -> PASSED by the releasing thread
 *   PASSED    in no queue               -> WAITING by its own
 * A releasing thread reads a node's successor before it marks the node: from then on the node is its thread's.
 */
#include "locks/locks.h"
#include "locks/tuning.h"
#include "locks/wait.h"

enum tp_state { PASSED, WAITING, GRANTED, LEFT };

struct tp_node {
    struct tp_node *next;
    uint32_t state;
    uint64_t published_ns;
};

struct tp {
    struct tp_node *tail; /* NULL: free */
    _Alignas(LOCK_LINE) uint64_t section_since_ns;
};

static void tp_init(void *lock) {
    struct tp *l = lock;
    l->tail = NULL;
    l->section_since_ns = 0;
}

static void tp_node_init(void *lock, void *node) {
    (void)lock;
    *(struct tp_node *)node = (struct tp_node){NULL, PASSED, 0};
}

static bool change(struct tp_node *n, uint32_t from, enum tp_state to) {
    /* Acquire and release: GRANTED carries the sections before; LEFT and WAITING are seen with the node as it is. */
    return __atomic_compare_exchange_n(&n->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Relaxed: the time is a hint, and no data is read on its account. */
static void begin_section(struct tp *l) {
    __atomic_store_n(&l->section_since_ns, lock_now_ns(), __ATOMIC_RELAXED);
}

static void give_way_to_owner(struct tp *l) {
    lock_give_way_after(__atomic_load_n(&l->section_since_ns, __ATOMIC_RELAXED), LOCK_TP_SECTION_NS);
}

/* True: the lock was free and is now this thread's. */
static bool enqueue(struct tp *l, struct tp_node *me) {
    __atomic_store_n(&me->next, NULL, __ATOMIC_RELAXED); /* the exchange shows them */
    __atomic_store_n(&me->published_ns, lock_now_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&me->state, WAITING, __ATOMIC_RELAXED);
    struct tp_node *before = __atomic_exchange_n(&l->tail, me, __ATOMIC_ACQ_REL);
    if (before == NULL)
        return true;
    __atomic_store_n(&before->next, me, __ATOMIC_RELEASE);
    return false;
}

bool lock_mcs_tp_acquire(void *lock, void *node, uint64_t patience_ns) {
    struct tp *l = lock;
    struct tp_node *me = node;
    uint64_t begin = lock_now_ns();
    if (!change(me, LEFT, WAITING) && enqueue(l, me)) {
        begin_section(l);
        return true;
    }
    for (;;) {
        uint32_t state = __atomic_load_n(&me->state, __ATOMIC_ACQUIRE);
        if (state == GRANTED) {
            begin_section(l);
            return true;
        }
        if (state == PASSED) {
            give_way_to_owner(l);
            return false;
        }
        __atomic_store_n(&me->published_ns, lock_now_ns(), __ATOMIC_RELAXED);
        if (patience_ns != UINT64_MAX && lock_has_passed(begin, patience_ns) && change(me, WAITING, LEFT)) {
            give_way_to_owner(l);
            return false;
        }
        give_way_to_owner(l);
        lock_relax();
    }
}

/* True: that waiter runs, and has the lock. */
static bool grant(struct tp_node *n) {
    if (__atomic_load_n(&n->state, __ATOMIC_ACQUIRE) != WAITING)
        return false;
    if (lock_has_passed(__atomic_load_n(&n->published_ns, __ATOMIC_RELAXED), LOCK_TP_STALE_NS))
        return false;
    return change(n, WAITING, GRANTED);
}

/* The node is its thread's again. */
static void pass(struct tp_node *n) {
    __atomic_store_n(&n->state, PASSED, __ATOMIC_RELEASE);
}

/*
 * The nodes from `first` to before `end`, which are still linked. Of a node that is passed nothing is read afterwards.
 */
static void pass_all(struct tp_node *first, const struct tp_node *end) {
    while (first != NULL && first != end) {
        struct tp_node *next = __atomic_load_n(&first->next, __ATOMIC_RELAXED); /* read by this thread before */
        pass(first);
        first = next;
    }
}

static struct tp_node *next_of(struct tp *l, struct tp_node *n) {
    struct tp_node *next = __atomic_load_n(&n->next, __ATOMIC_ACQUIRE), *tail = n;
    if (next != NULL || __atomic_compare_exchange_n(&l->tail, &tail, NULL, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        return next;
    while ((next = __atomic_load_n(&n->next, __ATOMIC_ACQUIRE)) == NULL) /* one has put itself behind it */
        lock_relax();
    return next;
}

/*
 * Passed nodes may queue again at the end while the walk goes on, so a walk over stale waiters might never end. After
 * LOCK_TP_SCAN_MOST of them the others are marked only when it has ended.
 */
void lock_mcs_tp_release(void *lock, void *node) {
    struct tp *l = lock;
    struct tp_node *n = node, *held_back = NULL;
    for (uint32_t scanned = 1;; scanned++) {
        struct tp_node *next = next_of(l, n);
        if (held_back == NULL && scanned < LOCK_TP_SCAN_MOST)
            pass(n);
        else if (held_back == NULL)
            held_back = n;
        if (next == NULL || grant(next)) {
            pass_all(held_back, next);
            return;
        }
        n = next;
    }
}

static void tp_execute(void *lock, void *node, lock_section *section, void *context) {
    while (!lock_mcs_tp_acquire(lock, node, UINT64_MAX))
        ;
    section(context);
    lock_mcs_tp_release(lock, node);
}

const struct lock_kind lock_mcs_tp = {
    .name = "mcs-tp",
    .after = "He, Scherer and Scott, HiPC 2005",
    .bytes = sizeof(struct tp),
    .node_bytes = sizeof(struct tp_node),
    .init = tp_init,
    .node_init = tp_node_init,
    .execute = tp_execute,
};
