/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks of a profile that were not free, and releases that threads wait for: these are events.
 *
 * A release that is an event counts itself in its node (`signals`) while the object is held. A thread that has waited
 * reads the count when it holds the object: that is the release that ended its wait, if the count has changed since the
 * wait began.
 */
#include <errno.h>
#include <semaphore.h>

#include "engine/direct/self.h"
#include "observe/profile.h"

int rec_profile_wait(const struct rec_key *key, int (*wait)(void *, const struct rec_limit *),
                     const struct rec_limit *limit) {
    void *object = (void *)key->object;
    struct rec_call c;
    uint64_t before = 0, after = 0;
    direct_self.trylock_last = NULL; /* the recorder's trylock does not make a program one that waits by trylock */
    rec_enter(&c, key->op, key->type, object, (const void *)key->site);
    if (c.node != NULL)
        before = __atomic_load_n(&c.node->signals, __ATOMIC_RELAXED);
    rec_profile_begin_wait(object, c.thread != NULL ? c.begin_ns : 0);
    int r = wait(object, limit);
    rec_profile_end_wait(object);
    if (r == 0 || r == EOWNERDEAD) {
        if (c.node != NULL)
            after = __atomic_load_n(&c.node->signals, __ATOMIC_RELAXED);
        c.event.order = after != before ? after : 0;
        rec_profile_hold(key);
    } else if (r == ETIMEDOUT) {
        c.event.other = rec_profile_holder(key->object);
    }
    rec_leave(&c, r);
    return r;
}

int rec_profile_release(const struct rec_key *key, int (*release)(void *)) {
    void *object = (void *)key->object;
    struct rec_call c;
    rec_enter(&c, key->op, key->type, object, (const void *)key->site);
    if (c.node != NULL)
        c.event.order = REC_COUNT(c.node->signals);
    if (c.thread != NULL)
        rec_ends_wait(&c, object);
    int r = release(object);
    rec_leave(&c, r);
    return r;
}

/*
 * Semaphores that the thread uses as locks. A semaphore by which threads give each other work is taken by one thread
 * and given by another: its waits begin no holds. So a thread's take begins one if the thread itself has given back
 * what it took there last.
 */
static struct rec_permit *permit_of(struct rec_profile *p, const void *sem) {
    for (uint32_t i = 0; i < PROFILE_N_PERMITS; i++)
        if (p->permits[i].sem == (uintptr_t)sem)
            return &p->permits[i];
    return NULL;
}

/*
 * Locks stay, for the sake of which there are permits: first a semaphore is forgotten that the thread has not given
 * back, be it that others post it, and then a lock that is not held. Among equals the address decides: in a turn of
 * more locks than there are places some keep theirs.
 */
static struct rec_permit *new_permit(struct rec_profile *p, const void *sem) {
    struct rec_permit *least = NULL;
    for (uint32_t i = 0; i < PROFILE_N_PERMITS; i++) {
        struct rec_permit *permit = &p->permits[((uintptr_t)sem / sizeof(sem_t) + i) % PROFILE_N_PERMITS];
        if (least == NULL || 2 * permit->gives_back + permit->taken < 2 * least->gives_back + least->taken)
            least = permit;
    }
    *least = (struct rec_permit){.sem = (uintptr_t)sem};
    return least;
}

bool rec_permit_taken(const void *sem) {
    struct rec_profile *p = rec_profile_mine();
    if (p == NULL)
        return false;
    struct rec_permit *permit = permit_of(p, sem);
    if (permit == NULL)
        permit = new_permit(p, sem);
    permit->gives_back &= !permit->taken;
    permit->taken = true;
    return permit->gives_back;
}

void rec_permit_given(const void *sem) {
    struct rec_profile *p = rec_profile_mine();
    if (p == NULL)
        return;
    struct rec_permit *permit = permit_of(p, sem);
    if (permit == NULL) /* it has not been taken, so it says nothing */
        return;
    if (permit->taken && permit->gives_back)
        rec_profile_releasing(sem);
    permit->gives_back = permit->taken;
    permit->taken = false;
}

static int nothing(void *object) {
    (void)object;
    return 0;
}

void rec_profile_give_up(const void *mutex, const void *site) {
    struct rec_key key = {(uintptr_t)mutex, (uintptr_t)site, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, false, 0};
    uint64_t since_ns = rec_profile_releasing(mutex);
    if (rec_is_waited_for(mutex) && rec_hint_keeps(mutex, since_ns))
        rec_profile_release(&key, nothing);
}

uint64_t rec_profile_regained(struct rec_node *node, const void *mutex, const void *site) {
    struct rec_key key = {(uintptr_t)mutex, (uintptr_t)site, SBT_TRACE_COND_WAIT, SBT_TRACE_MUTEX, false, 0};
    rec_profile_count(&key);
    rec_profile_hold(&key);
    return node != NULL ? __atomic_load_n(&node->signals, __ATOMIC_RELAXED) : 0;
}
