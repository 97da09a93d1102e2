/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The read-write lock's word, and which of its waiters are let in next: for rwlock.c, rwlock_queue.c and let_in.c. */
#ifndef SBT_ENGINE_DIRECT_RWLOCK_H
#define SBT_ENGINE_DIRECT_RWLOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * | bits    | meaning                                  | set and cleared                                             |
 * |---------|------------------------------------------|-------------------------------------------------------------|
 * | WRITER  | held by a writer                         | its CAS, or granted under the bucket lock; its unlock       |
 * | QUEUED  | the lot has waiters with this key        | under the bucket lock                                       |
 * | WRITERS | writers are among them                   | under the bucket lock                                       |
 * | ACTIVE  | a thread that is awake will look once    | a waiter that looks again and again, while QUEUED; a thread |
 * |         | more: one unlock need not decide         | that takes or queues, and the unlock that relies on it      |
 * | WOKEN   | a writer that was notified will look     | under the bucket lock                                       |
 * |         | once more: no unlock need decide either  |                                                             |
 * | HANDED  | with WRITER: no thread's, kept for a     | under the bucket lock                                       |
 * |         | queued writer that was notified          |                                                             |
 * | READERS | how many hold it to read, times READER   | their CAS, or granted under the bucket lock; their unlock   |
 *
 * Illegal: WRITER with readers; WRITERS, WOKEN or HANDED without QUEUED, but in a forked child: its queue is empty.
 */
enum { RW_WRITER = 1, RW_QUEUED = 2, RW_WRITERS = 4, RW_ACTIVE = 8, RW_WOKEN = 16, RW_HANDED = 32, RW_READER = 64 };
#define RW_READERS (~(uint32_t)(RW_READER - 1))
#define RW_READERS_MAX 0xF0000000u     /* the rest is room for readers that count themselves out again */
#define RW_READERS_BELOW_0 0xF8000000u /* from here on for threads that unlock what they do not have */

struct sbt_waiter;

struct direct_rw_waiters {
    uint32_t total, writers;
    uint32_t readers_waiting;  /* readers that are not inflight */
    struct sbt_waiter *writer; /* the first writer that is not */
    bool one_comes;            /* a notified writer is relied on, and not overdue */
    bool hands_over;           /* `writer` has starved */
};

/* What the word is to become; so many readers let in; or `writer` is notified. */
struct direct_rw_change {
    uint32_t want, granted;
    bool writers_turn;
};

/*
 * Pure. `hold` (RW_WRITER, or 0) is given up: which waiters go in, and what do the flags say about the others? A
 * hand-over is taken back if no waiter is relied on to take it.
 */
struct direct_rw_change direct_policy_let_in(uint32_t seen, uint32_t hold, const struct direct_rw_waiters *n,
                                             bool prefers_writers);

#endif
