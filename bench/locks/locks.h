/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The locks that delegation is compared with, each after its paper.
 *
 * One call does for all of them: execute() runs a section under the lock. A lock that is acquired and released runs
 * it on the calling thread; flat combining may run it on another. Each thread has a node of its own for each lock, of
 * node_bytes zeroed bytes, aligned to LOCK_LINE, which node_init() makes. The lock and its nodes stay where they are
 * for as long as the lock is used. Sections must not use the same lock again: none of these is recursive.
 *
 * The code uses the compiler's atomics alone, and waits by the functions of wait.h, so the model checker can put each
 * step under its own scheduler (tests/model/code_sched.h).
 */
#ifndef LOCKS_H
#define LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two cache lines: adjacent-line prefetch makes 64 bytes too few to keep two threads' data apart. */
#ifndef LOCK_LINE
#define LOCK_LINE 128
#endif

typedef void lock_section(void *context);

struct lock_kind {
    const char *name;
    const char *after; /* the paper */
    size_t bytes, node_bytes;
    bool fifo;  /* the paper promises sections in the order of arrival */
    bool alone; /* sections exclude no other: one thread is to run them all */
    void (*init)(void *lock);
    void (*node_init)(void *lock, void *node);
    void (*execute)(void *lock, void *node, lock_section *section, void *context); /* blocks */
};

extern const struct lock_kind lock_tas, lock_ticket, lock_mcs, lock_clh, lock_mcs_tp, lock_flat, lock_posix, lock_rcl,
    lock_bare, lock_calls;

/* All of them, ended by NULL. */
extern const struct lock_kind *const lock_kinds[];
/* NULL: there is none of that name. */
const struct lock_kind *lock_find(const char *name);

/*
 * MCS-TP alone: false if the lock could not be had within that time. The thread may then still stand in the queue; its
 * next attempt takes that place again, if no release has passed it over meanwhile.
 */
bool lock_mcs_tp_acquire(void *lock, void *node, uint64_t patience_ns);
void lock_mcs_tp_release(void *lock, void *node);

#endif
