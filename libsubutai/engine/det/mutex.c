/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes, and spinlocks. `state` of a mutex is 0, or the number of the thread that holds it, plus 1; in a forked child
 * it may be the parent's number.
 */
#include <errno.h>

#include "core/object.h"
#include "engine/det/kept.h"

static inline uint32_t held_by_caller(void) {
    return det_self.number + 1;
}

static inline void take(enum det_op op, struct sbt_mutex *mx) {
    det_take_object(op, &mx->hw_id);
}

int det_mutex_destroy(pthread_mutex_t *m) {
    return sbt_mutex_of(m)->state != 0 ? EBUSY : 0;
}

/* Apart from acquire, so that this saves the registers that it needs. */
static SBT_NOINLINE int wait_and_acquire(pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    while (mx->state != 0) {
        int r = sbt_deadline_check(deadline);
        if (r != 0)
            return r;
        if (det_block(m, &(struct det_wait){.deadline = deadline, .op = DET_MUTEX_LOCK}) == TURN_TIMED_OUT &&
            mx->state != 0)
            return ETIMEDOUT;
    }
    mx->state = held_by_caller();
    return 0;
}

static inline int acquire(pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    if (SBT_UNLIKELY(mx->state != 0))
        return wait_and_acquire(m, deadline);
    mx->state = held_by_caller();
    return 0;
}

void det_mutex_acquire(pthread_mutex_t *m) {
    acquire(m, NULL);
}

void det_mutex_release(pthread_mutex_t *m) {
    sbt_mutex_of(m)->state = 0;
    det_wake(m, 1);
}

/* ---- within the unwinder ---- */

enum { PATIENCE = 1000 /* pauses: some 20 us */ };

static struct sbt_lock unwind_lock;

/*
 * libgcc's unwinder has one mutex, up to version 12, once the program has called __register_frame. Taken for this
 * library it is a plain lock: an operation would be looked at, and unwound, in its turn. The program takes it in the
 * order. The owner may be the caller itself, while its unlock is looked at, or need the caller's turn to unlock. So the
 * caller waits for as long as the owner's look or change takes, and no longer. The unwinder may allocate memory with
 * its mutex, and so take the allocator's.
 */
static SBT_NOINLINE int lock_within(pthread_mutex_t *m) {
    const struct sbt_mutex *mx = sbt_mutex_of(m);
    if (det_self.n_within++ == 0)
        sbt_lock_take(&unwind_lock);
    for (unsigned i = 0; i < PATIENCE && __atomic_load_n(&mx->state, __ATOMIC_RELAXED) != 0; i++)
        sbt_cpu_relax();
    return 0;
}

static SBT_NOINLINE int unlock_within(void) {
    if (det_self.n_within != 0 && --det_self.n_within == 0)
        sbt_lock_drop(&unwind_lock);
    return 0;
}

void det_mutex_forked(void) {
    unwind_lock = (struct sbt_lock){0};
    det_self.n_within = 0;
}

/* ---- the interface ---- */

static SBT_NOINLINE int lock_slow(pthread_mutex_t *m) {
    if (SBT_UNLIKELY(det_self.unwinds))
        return lock_within(m);
    take(DET_MUTEX_LOCK, sbt_mutex_of(m));
    acquire(m, NULL);
    det_pass();
    return 0;
}

/* Within the unwinder the thread is in an operation, or operations are watched. */
int det_mutex_lock(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t held;
    if (SBT_UNLIKELY(!det_begin_kept(&mx->hw_id, &held)))
        return lock_slow(m);
    if (SBT_UNLIKELY(mx->state != 0)) {
        det_leave_kept(held);
        return lock_slow(m);
    }
    mx->state = held_by_caller();
    det_end_kept(DET_MUTEX_LOCK, mx->hw_id, held);
    return 0;
}

int det_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    if (SBT_UNLIKELY(det_self.unwinds))
        return lock_within(m);
    take(DET_MUTEX_LOCK, sbt_mutex_of(m));
    int r = acquire(m, deadline);
    det_pass();
    return r;
}

int det_mutex_trylock(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    if (SBT_UNLIKELY(det_self.unwinds))
        return lock_within(m);
    take(DET_MUTEX_TRYLOCK, mx);
    int r = mx->state != 0 ? EBUSY : 0;
    if (r == 0)
        mx->state = held_by_caller();
    det_pass();
    return r;
}

static SBT_NOINLINE int unlock_slow(pthread_mutex_t *m) {
    if (SBT_UNLIKELY(det_self.unwinds))
        return unlock_within();
    take(DET_MUTEX_UNLOCK, sbt_mutex_of(m));
    det_mutex_release(m);
    det_pass();
    return 0;
}

int det_mutex_unlock(pthread_mutex_t *m) {
    struct sbt_mutex *mx = sbt_mutex_of(m);
    uint32_t held;
    if (SBT_UNLIKELY(!det_begin_kept(&mx->hw_id, &held)))
        return unlock_slow(m);
    if (SBT_UNLIKELY(!det_nobody_waits(m))) {
        det_leave_kept(held);
        return unlock_slow(m);
    }
    mx->state = 0;
    det_end_kept(DET_MUTEX_UNLOCK, mx->hw_id, held);
    return 0;
}

/*
 * Nothing tells a shared spinlock from a private one, and another process does not wake a thread. So a thread that
 * waits for one is not blocked: it looks again each time that it has the turn.
 */
static int spin_take(pthread_spinlock_t *s) {
    int seen = sbt_layout.spin_unlocked;
    det_take(DET_SPIN_LOCK);
    bool taken =
        __atomic_compare_exchange_n(s, &seen, !sbt_layout.spin_unlocked, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    det_pass();
    return taken ? 0 : EBUSY;
}

int det_spin_lock(pthread_spinlock_t *s) {
    while (spin_take(s) != 0)
        sbt_cpu_relax();
    return 0;
}

int det_spin_trylock(pthread_spinlock_t *s) {
    return spin_take(s);
}

int det_spin_unlock(pthread_spinlock_t *s) {
    det_take(DET_SPIN_UNLOCK);
    __atomic_store_n(s, sbt_layout.spin_unlocked, __ATOMIC_RELEASE);
    det_pass();
    return 0;
}
