/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flat: D. Hendler, I. Incze, N. Shavit, M. Tzafrir, Flat Combining and the Synchronization-Parallelism Tradeoff, SPAA
 * 2010.
 *
 * Each thread has a record in a list and writes its section into it. The thread that gets the lock is the combiner: it
 * walks the list a bounded number of times and runs what it finds. A combiner now and then takes records out that have
 * not been used for long; their thread puts them in again when it needs them.
 *
 * A thread waits for three things: its section is done, the lock is free, its record is in the list. It must look for
 * all three in turn: a combiner may take the record out between the thread's look and its request.
 */
#include "locks/locks.h"
#include "locks/tuning.h"
#include "locks/wait.h"

struct flat_record {
    lock_section *section; /* what is to be run; NULL: nothing, or it is done */
    void *context;
    uint32_t listed; /* its thread sets it, the combiner clears it */
    uint32_t age;    /* the combiner that last ran it; the lock protects it */
    struct flat_record *next;
};

struct flat {
    uint32_t held;
    uint32_t n_combiners; /* so far; the lock protects it */
    _Alignas(LOCK_LINE) struct flat_record *head;
};

static void flat_init(void *lock) {
    struct flat *l = lock;
    l->held = l->n_combiners = 0;
    l->head = NULL;
}

static void flat_record_init(void *lock, void *node) {
    (void)lock;
    *(struct flat_record *)node = (struct flat_record){0};
}

/* `listed` first: its own thread alone reads it before the combiner can have the record. */
static void enlist(struct flat *l, struct flat_record *me) {
    __atomic_store_n(&me->listed, 1, __ATOMIC_RELAXED);
    struct flat_record *head = __atomic_load_n(&l->head, __ATOMIC_RELAXED);
    do
        __atomic_store_n(&me->next, head, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&l->head, &head, me, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* True: something was run. Acquire at the head pairs with enlist: the records are seen as they were put in. */
static bool combine_once(struct flat *l) {
    bool any = false;
    for (struct flat_record *r = __atomic_load_n(&l->head, __ATOMIC_ACQUIRE); r != NULL;
         r = __atomic_load_n(&r->next, __ATOMIC_RELAXED)) {
        lock_section *section = __atomic_load_n(&r->section, __ATOMIC_ACQUIRE);
        if (section == NULL)
            continue;
        r->age = l->n_combiners;
        section(r->context);
        __atomic_store_n(&r->section, NULL, __ATOMIC_RELEASE);
        any = true;
    }
    return any;
}

/*
 * The head stays: other threads may be about to put a record in front of it. A record's link is read before the record
 * is given back; then its thread may put it elsewhere. A request that it holds stays with its thread, which enlists it.
 */
static void take_out_idle(struct flat *l) {
    struct flat_record *before = __atomic_load_n(&l->head, __ATOMIC_ACQUIRE), *r, *next;
    for (r = before != NULL ? __atomic_load_n(&before->next, __ATOMIC_RELAXED) : NULL; r != NULL; r = next) {
        next = __atomic_load_n(&r->next, __ATOMIC_RELAXED);
        if (l->n_combiners - r->age < LOCK_FLAT_IDLE) {
            before = r;
            continue;
        }
        __atomic_store_n(&before->next, next, __ATOMIC_RELAXED);
        /* Release pairs with is_listed: the thread that finds it out may change the link. */
        __atomic_store_n(&r->listed, 0, __ATOMIC_RELEASE);
    }
}

static bool is_listed(const struct flat_record *me) {
    return __atomic_load_n(&me->listed, __ATOMIC_ACQUIRE) != 0;
}

static void combine(struct flat *l) {
    l->n_combiners++;
    for (int i = 0; i < LOCK_FLAT_PASSES && combine_once(l); i++)
        ;
    if (l->n_combiners % LOCK_FLAT_CLEAN_EVERY == 0)
        take_out_idle(l);
}

static bool try_lock(struct flat *l) {
    uint32_t free = 0;
    return __atomic_load_n(&l->held, __ATOMIC_RELAXED) == 0 &&
           __atomic_compare_exchange_n(&l->held, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void flat_execute(void *lock, void *node, lock_section *section, void *context) {
    struct flat *l = lock;
    struct flat_record *me = node;
    me->context = context; /* shown by the release of `section` */
    __atomic_store_n(&me->section, section, __ATOMIC_RELEASE);
    /* Acquire pairs with the combiner's release: the section's effects are seen. */
    while (__atomic_load_n(&me->section, __ATOMIC_ACQUIRE) != NULL) {
        if (!is_listed(me))
            enlist(l, me);
        if (try_lock(l)) {
            combine(l);
            __atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
        } else {
            lock_relax();
        }
    }
}

const struct lock_kind lock_flat = {
    .name = "flat",
    .after = "flat combining: Hendler, Incze, Shavit and Tzafrir, SPAA 2010",
    .bytes = sizeof(struct flat),
    .node_bytes = sizeof(struct flat_record),
    .init = flat_init,
    .node_init = flat_record_init,
    .execute = flat_execute,
};
