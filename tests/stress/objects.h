/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the tortures: every kind of mutex, every way to take a lock or to wait, and a guard, the plain
 * (non-atomic) data that a lock protects and that shows when it did not.
 */
#ifndef STRESS_OBJECTS_H
#define STRESS_OBJECTS_H

#include "torture.h"

enum mutex_kind {
    MUTEX_NORMAL,
    MUTEX_RECURSIVE,
    MUTEX_ERRORCHECK,
    MUTEX_ADAPTIVE,
    MUTEX_STATIC, /* from here: copies of the static initialisers */
    MUTEX_STATIC_RECURSIVE,
    MUTEX_STATIC_ERRORCHECK,
    MUTEX_STATIC_ADAPTIVE,
    N_OUR_MUTEX_KINDS,
    MUTEX_PSHARED = N_OUR_MUTEX_KINDS, /* from here: kinds that stay with glibc */
    MUTEX_ROBUST,
    MUTEX_INHERIT,
    N_ALL_MUTEX_KINDS,
    N_MUTEX_KINDS = GLIBC_KINDS ? N_ALL_MUTEX_KINDS : N_OUR_MUTEX_KINDS
};

bool mutex_is_recursive(enum mutex_kind kind);
bool mutex_is_errorcheck(enum mutex_kind kind);
bool mutex_is_adaptive(enum mutex_kind kind);
void mutex_make(pthread_mutex_t *mutex, enum mutex_kind kind);
enum mutex_kind mutex_any(struct rng *rng);

/* One attempt by a random function: 0, EBUSY (trylock) or ETIMEDOUT (only after its deadline), all else is a failure.
 */
int mutex_try_any(struct worker *w, pthread_mutex_t *mutex, enum mutex_kind kind);
/* Attempts until one succeeds. */
void mutex_take(struct worker *w, pthread_mutex_t *mutex, enum mutex_kind kind);

/* One wait by a random function. Returns 0 or ETIMEDOUT; ETIMEDOUT of a far deadline or before time is a failure.

 * FOREVER is pthread_cond_wait or a far deadline, so that a lost wake-up is a hang and not a delay; ANY adds short and
 * past deadlines, BRIEF is those only. The condition variable has clock `clock` (its attribute). */
enum patience { FOREVER, ANY, BRIEF };
int cond_wait_any(struct worker *w, pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                  enum patience patience);
void cond_make(pthread_cond_t *cond, clockid_t clock);
clockid_t clock_any(struct rng *rng);

int sem_take_any(struct worker *w, sem_t *sem, bool timed); /* 0, EAGAIN, ETIMEDOUT, EINTR */
void sem_take(struct worker *w, sem_t *sem);                /* until it has one; far deadlines only */

int rwlock_read_any(struct worker *w, pthread_rwlock_t *lock);  /* 0, EBUSY, ETIMEDOUT */
int rwlock_write_any(struct worker *w, pthread_rwlock_t *lock); /* 0, EBUSY, ETIMEDOUT */

/* The data under a lock: `before` and `after` differ only inside a section, `owner` is 0 outside. */
struct guard {
    uint64_t before, owner, after;
};
void guard_enter(struct guard *guard, const struct worker *w);
void guard_leave(struct guard *guard, const struct worker *w);
void guard_section(struct guard *guard, struct worker *w); /* enter, some work, leave */

/* A page of its own for objects that are unmapped while others may still be leaving them. */
void *page_map(void);
void page_unmap(void *page,
                struct rng *rng); /* munmap, or PROT_NONE until pages_flush so that no thread maps it again */
void pages_flush(void);

#endif
