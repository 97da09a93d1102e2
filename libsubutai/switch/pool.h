/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pool of fibers: an array of address space. Only the used part becomes memory. That memory is never given back, so
 * a fiber's address and number stay good for ever. Nothing here blocks for longer than the pool's lock is held.
 */
#ifndef SBT_SWITCH_POOL_H
#define SBT_SWITCH_POOL_H

#include "switch/fiber.h"

#define SBT_POOL_MAX 65536 /* fibers */
#define SBT_POOL_BYTES (SBT_POOL_MAX * sizeof(struct sbt_fiber))

/*
 * Home stacks are mapped a few at a time. What a parked home thread uses of its stack is less than half of it; the code
 * of a sanitizer needs more. A page holds several, so that a thread that has been switched takes little memory.
 */
#define SBT_HOME_STACKS 64 /* mapped together */
#ifdef SBT_SANITIZED       /* by the build */
#define SBT_HOME_STACK_BYTES ((size_t)8192)
#elif defined __OPTIMIZE__
#define SBT_HOME_STACK_BYTES ((size_t)512) /* 216 is the most that was seen in use */
#else
#define SBT_HOME_STACK_BYTES ((size_t)2048)
#endif

/* Once, before the first fiber. False: there is no address space for the pool. */
bool sbt_pool_start(void);

/* A fiber for a new thread; NULL: all are in use, or there is no memory for its home stack. */
struct sbt_fiber *sbt_pool_get(void);
void sbt_pool_put(struct sbt_fiber *f);

/*
 * In a forked child, of the fiber that the forking thread had. A handler that has forked may return into one of the
 * fiber's waits. So no thread gets this fiber here: a wait knows by that that it is in the child. And a sleep that the
 * kernel would make again, on its token, ends.
 */
void sbt_pool_fork_child(struct sbt_fiber *f);

/* The fiber with number i, below pool_used; and the number of a fiber. */
extern struct sbt_fiber *sbt_pool SBT_HIDDEN; /* the array; written by sbt_pool_start alone */

static inline struct sbt_fiber *sbt_pool_nth(uint32_t i) {
    return &sbt_pool[i];
}

static inline uint32_t sbt_pool_index(const struct sbt_fiber *f) {
    return (uint32_t)(f - sbt_pool);
}

/* The fiber of that thread (0: any) or of that kernel thread (0: any); NULL: none. Its thread may end at any time. */
struct sbt_fiber *sbt_pool_find(pthread_t thread, uint32_t tid);

#endif
