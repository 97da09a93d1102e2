/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Futexes for contexts: who waits on which word, in buckets by address. A node is on the waiter's stack and linked only
 * while it waits; the lists are the bucket guard's. The waker makes all it has found ready in one go.
 */
#include "switch/inner.h"

#include <errno.h>
#include <pthread.h>

struct sbt_table_node {
    struct sbt_table_node *next, *prev;
    const uint32_t *word;
    struct sbt_context *context;
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

/* However the wait ends, pthread_exit in a signal handler included. True: nobody had taken it for a wake-up. */
static bool withdraw(struct waiting *w) {
    if (!__atomic_load_n(&w->node.linked, __ATOMIC_ACQUIRE))
        return false; /* the waker's last touch of the node */
    if (w->generation != sbt_thread_process_generation())
        return true; /* forked during the wait: the table was wiped */
    sbt_switch_enter();
    sbt_switch_take(&w->bucket->guard);
    bool linked = w->node.linked;
    if (linked)
        unlink_node(w->bucket, &w->node);
    sbt_switch_drop(&w->bucket->guard);
    sbt_switch_leave();
    return linked;
}

static void cancelled(void *argument) {
    struct waiting *w = argument;
    if (!withdraw(w))
        sbt_switch_wake((uint32_t *)(uintptr_t)w->node.word, 1); /* the wake-up was for somebody */
}

int sbt_switch_wait(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    struct waiting w = {.bucket = bucket_of(word),
                        .node = {.word = word, .context = sbt_self.context, .linked = true},
                        .generation = sbt_thread_process_generation()};
    int r;
    if (SBT_UNLIKELY(sbt_self.in_switch != 0)) {
        sbt_pause_ns(200000);
        return 0;
    }
    sbt_switch_enter();
    sbt_switch_take(&w.bucket->guard);
    /* Under the guard, which the waker takes after it has changed the word: either this sees it, or that sees this. */
    bool differs = __atomic_load_n(word, __ATOMIC_RELAXED) != expected;
    if (!differs) {
        w.node.prev = w.bucket->tail;
        if (w.bucket->tail != NULL)
            w.bucket->tail->next = &w.node;
        else
            w.bucket->head = &w.node;
        w.bucket->tail = &w.node;
    }
    sbt_switch_drop(&w.bucket->guard);
    sbt_switch_leave();
    if (differs)
        return 0;
    pthread_cleanup_push(cancelled, &w);
    r = sbt_context_park(deadline);
    pthread_cleanup_pop(0);
    return withdraw(&w) ? r : 0;
}

long sbt_switch_wake(uint32_t *word, int n) {
    struct sbt_chain chain;
    long woken = 0;
    bool asleep;
    if (SBT_UNLIKELY(sbt_self.in_switch != 0)) { /* in a handler that interrupted this thread in here */
        __atomic_store_n(&SBT_SWITCH->overdue, 1, __ATOMIC_RELEASE);
        return 0;
    }
    sbt_chain_begin(&chain);
    struct sbt_table_bucket *b = bucket_of(word);
    sbt_switch_take(&b->guard);
    for (struct sbt_table_node *node = b->head, *next; node != NULL && woken < n; node = next) {
        next = node->next;
        if (node->word != word)
            continue;
        struct sbt_context *c = node->context;
        unlink_node(b, node); /* from here on it may be gone */
        woken++;
        if (sbt_token_give(c, &asleep))
            sbt_chain_append(&chain, c);
    }
    sbt_switch_drop(&b->guard);
    sbt_chain_end(&chain);
    return woken;
}
