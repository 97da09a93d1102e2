/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For switch-walk: a mutex and a condition of the engine `direct`, on the real lot and wait/park.c. */
#include "switch_mutex.h"
#include "switch_barrier.h"

#include "core/object.h"
#include "engine/direct/delegate.h"
#include "engine/direct/direct.h"
#include "wait/parking_lot.h"

static pthread_mutex_t mutex, tried[2];
static pthread_cond_t cond;
static uint32_t n_inside, n_turns;
static bool by_broadcast; /* the waiters are notified by broadcasts only */

struct sbt_engine sbt_engine;

static void enter(void) {
    if (n_inside++ != 0)
        sched_wrong("two threads have the mutex");
}

/* In place of engine/direct/delegate_list.c. */
bool direct_delegates;
uint32_t direct_n_delegates = 1;

uint32_t direct_delegate_find(struct sbt_mutex *mx) {
    return mx->delegated = mx == sbt_mutex_of(&mutex) ? 1 : DIRECT_DELEGATED_NOT;
}

void direct_delegate_count(uint32_t delegated, bool begins_batch) {
    (void)begins_batch;
    if (delegated != 1 || n_inside != 0)
        sched_wrong("a section was handed over that is not over, or is not delegated");
}

void walk_mutex_setup(bool delegated) {
    direct_delegates = delegated;
    sbt_lot_fork_child();
    memset(&mutex, 0, sizeof mutex);
    memset(tried, 0, sizeof tried);
    memset(&cond, 0, sizeof cond);
    n_inside = n_turns = 0;
    by_broadcast = false;
}

void walk_mutex_lock(void) {
    direct_mutex_lock(&mutex);
    enter();
}

void walk_mutex_unlock(void) {
    n_inside--;
    direct_mutex_unlock(&mutex);
}

void walk_trylock(bool outer) {
    if (direct_mutex_trylock(&tried[outer]) != 0)
        sched_wrong("a mutex that is free is not to be had");
}

void walk_trylock_undo(bool outer) {
    uint32_t n_offers = walk_n_offers;
    direct_mutex_unlock(&tried[outer]);
    if (walk_n_offers != n_offers)
        sched_wrong("an unlock asks the kernel for others to run, and no thread has tried in vain");
}

void walk_cond_wait(void) {
    for (bool again = false; n_turns == 0; again = true) {
        uint32_t n_in_vain = *walk_n_in_vain() + (again && !by_broadcast);
        n_inside--;
        direct_cond_wait(&cond, &mutex, SBT_RELEASE_OURS, NULL);
        enter();
        if (*walk_n_in_vain() != n_in_vain)
            sched_wrong("a thread that a signal woke in vain did not say so, or another thread did");
    }
    n_turns--;
}

void walk_turn(void) {
    n_turns++;
}

void walk_cond_signal(void) {
    direct_cond_signal(&cond);
}

void walk_cond_broadcast(uint32_t turns) {
    n_turns += turns;
    by_broadcast = true;
    direct_cond_broadcast(&cond);
}

void walk_cond_destroy(void) {
    direct_cond_destroy(&cond);
    sched_free(&cond, sizeof cond);
}

const char *walk_mutex_at_end(void) {
    if (!sched_is_freed(&cond) && sbt_cond_of(&cond)->state != 0)
        return "the condition believes that a thread waits";
    uint32_t state = sbt_mutex_of(&mutex)->state;
    return (state & (DIRECT_LOCKED | DIRECT_QUEUED | DIRECT_WOKEN)) != 0 ? "the mutex is not as it was" : NULL;
}
