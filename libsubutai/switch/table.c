/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The futex table of fibers: which fibers wait on which word, in buckets by the word's address. A node is on the
 * waiter's stack, and linked only while the fiber waits. A bucket's lock protects its list. A waker puts the fibers
 * that it finds into a wake list, and makes them runnable in one go when it has released the lock.
 */
#include "switch/table.h"

#include <errno.h>
#include <pthread.h>

#include "os/cleanup.h"
#include "switch/state.h"

struct sbt_table_node {
    struct sbt_table_node *next, *prev;
    const uint32_t *word;
    struct sbt_fiber *fiber;
    bool linked;
};

static struct sbt_table_bucket *bucket_of(const uint32_t *word) {
    uint64_t h = (uint64_t)(uintptr_t)word * 0x9E3779B97F4A7C15u;
    return &SBT_SWITCH->bucket[h >> (64 - __builtin_ctz(SBT_TABLE_BUCKETS))];
}

static void unlink_node(struct sbt_table_bucket *b, struct sbt_table_node *node) {
    if (node->prev != NULL)
        node->prev->next = node->next;
    else
        b->head = node->next;
    if (node->next != NULL)
        node->next->prev = node->prev;
    else
        b->tail = node->prev;
    __atomic_store_n(&node->linked, false, __ATOMIC_RELEASE);
}

struct waiting {
    struct sbt_table_bucket *bucket;
    struct sbt_table_node node;
    uint32_t generation;
};

/* The wait ends, perhaps by pthread_exit in a signal handler, or by a jump out of it. True: no waker had taken the node
 * out. */
static bool withdraw(struct waiting *w) {
    if (!__atomic_load_n(&w->node.linked, __ATOMIC_ACQUIRE))
        return false; /* pairs with unlink_node, where the waker touches the node for the last time */
    if (w->generation != sbt_fork_generation())
        return true; /* a handler has forked during the wait; this is the child, and its table was wiped */
    sbt_switch_enter();
    sbt_switch_lock(&w->bucket->lock);
    bool linked = w->node.linked;
    if (linked)
        unlink_node(w->bucket, &w->node);
    sbt_switch_unlock(&w->bucket->lock);
    sbt_switch_leave();
    return linked;
}

static void cancelled(void *argument) {
    struct waiting *w = argument;
    if (!withdraw(w))
        sbt_switch_wake((uint32_t *)(uintptr_t)w->node.word, 1); /* pass the wake-up on */
}

int sbt_switch_wait(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    struct waiting w = {.bucket = bucket_of(word),
                        .node = {.word = word, .fiber = sbt_self.fiber, .linked = true},
                        .generation = sbt_fork_generation()};
    struct _pthread_cleanup_buffer left;
    int r;
    if (SBT_UNLIKELY(sbt_self.in_switch != 0)) {
        sbt_pause_ns(SBT_HANDLER_POLL_NS);
        return 0;
    }
    sbt_switch_enter();
    sbt_switch_lock(&w.bucket->lock);
    /*
     * The waker takes the lock after it has changed the word. Either this sees the change under the lock, or the waker
     * sees the node.
     */
    bool differs = __atomic_load_n(word, __ATOMIC_RELAXED) != expected;
    if (!differs) {
        w.node.prev = w.bucket->tail;
        if (w.bucket->tail != NULL)
            w.bucket->tail->next = &w.node;
        else
            w.bucket->head = &w.node;
        w.bucket->tail = &w.node;
    }
    sbt_switch_unlock(&w.bucket->lock);
    sbt_switch_leave();
    if (differs)
        return 0;
    _pthread_cleanup_push(&left, cancelled, &w);
    r = sbt_fiber_park(deadline);
    _pthread_cleanup_pop(&left, 0);
    return withdraw(&w) ? r : 0;
}

long sbt_switch_wake(uint32_t *word, int n) {
    struct sbt_wake_list list;
    long woken = 0;
    bool asleep;
    if (SBT_UNLIKELY(sbt_self.in_switch != 0)) { /* this is a handler that interrupted its thread inside switch/ */
        __atomic_store_n(&SBT_SWITCH->deferred, 1, __ATOMIC_RELEASE);
        return 0;
    }
    sbt_wake_list_begin(&list);
    struct sbt_table_bucket *b = bucket_of(word);
    sbt_switch_lock(&b->lock);
    for (struct sbt_table_node *node = b->head, *next; node != NULL && woken < n; node = next) {
        next = node->next;
        if (node->word != word)
            continue;
        struct sbt_fiber *f = node->fiber;
        unlink_node(b, node); /* from here on the node may be gone */
        woken++;
        if (sbt_token_give(f, &asleep))
            sbt_wake_list_append(&list, f);
    }
    sbt_switch_unlock(&b->lock);
    sbt_wake_list_end(&list);
    return woken;
}
