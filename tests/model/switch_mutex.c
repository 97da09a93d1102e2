/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For switch-walk: a mutex and a condition of the engine `direct`, on the real lot and wait/park.c. */
#include "switch_mutex.h"
#include "switch_barrier.h"

#include "core/object.h"
#include "engine/direct/delegate.h"
#include "engine/direct/delegate_auto.h"
#include "engine/direct/delegate_place.h"
#include "engine/direct/direct.h"
#include "switch/switch.h"
#include "wait/parking_lot.h"

static pthread_mutex_t pool[8], *mutex, other, tried[2];
static pthread_cond_t cond;
static uint32_t n_inside, n_inside_other, n_turns;
static bool by_broadcast; /* the waiters are notified by broadcasts only */
static bool has_other;    /* threads take both mutexes */

bool walk_has_been_behind;

struct sbt_engine sbt_engine;

static void enter_one(uint32_t *inside) {
    if ((*inside)++ != 0)
        sched_wrong("two threads have the mutex");
}

static void enter(void) {
    enter_one(&n_inside);
}

/* In place of engine/direct/delegate_list.c. */
bool direct_delegates;
uint32_t direct_n_delegates = 2;

uint32_t direct_delegate_find(struct sbt_mutex *mx) {
    mx->delegated = mx == sbt_mutex_of(mutex) ? 1 : mx == sbt_mutex_of(&other) ? 2 : DIRECT_DELEGATED_NOT;
    return mx->delegated;
}

uint32_t direct_delegate_server(struct sbt_mutex *mx) {
    if (direct_auto)
        return direct_auto_server(mx);
    return mx == sbt_mutex_of(&other) ? sbt_switch_servers - 1 : 0;
}

void direct_delegate_count(uint32_t delegated, bool begins_batch, bool waits) {
    (void)begins_batch;
    if (waits && !has_other)
        sched_wrong("a section counts as behind another mutex's, and there is no other mutex");
    walk_has_been_behind |= waits;
    if ((delegated != 1 || n_inside != 0) && (delegated != 2 || n_inside_other != 0))
        sched_wrong("a section was handed over that is not over, or is not delegated");
}

/* A mutex that the first server serves at first by its address, wherever this program is loaded. */
static pthread_mutex_t *of_first_server(uint32_t n_servers) {
    pthread_mutex_t *m = pool;
    while (n_servers != 0 && direct_place_by_address(m, sizeof(struct sbt_mutex), n_servers) != 0)
        m++;
    return m;
}

void walk_mutex_setup(bool delegated, bool found, uint32_t n_servers) {
    static bool was_found; /* the schedule before may have left samples: else the table is empty */
    direct_delegates = delegated;
    direct_auto = true;
    if (found || was_found)
        direct_auto_fork_child();
    was_found = found;
    direct_auto_start(DIRECT_SHARE_BY_TURNS);
    direct_auto = direct_auto_samples = found;
    sbt_switch_servers = n_servers;
    mutex = of_first_server(n_servers);
    sbt_lot_fork_child();
    memset(mutex, 0, sizeof *mutex);
    memset(&other, 0, sizeof other);
    memset(tried, 0, sizeof tried);
    memset(&cond, 0, sizeof cond);
    n_inside = n_inside_other = n_turns = 0;
    by_broadcast = has_other = false;
}

void walk_mutex_change(void) {
    const struct sbt_switch_look look = {.now_ns = sbt_now_ns(), .n_threads = 3, .steady = true};
    direct_auto_look(&look);
}

/* Each wait is timed: all of them could be. */
static void time_next(void) {
    direct_self.n_contended = DIRECT_SHARE_EVERY - 1;
}

void walk_mutex_lock(void) {
    time_next();
    direct_mutex_lock(mutex);
    enter();
}

void walk_mutex_unlock(void) {
    n_inside--;
    direct_mutex_unlock(mutex);
}

void walk_other_lock(void) {
    time_next();
    has_other = true;
    direct_mutex_lock(&other);
    enter_one(&n_inside_other);
}

void walk_other_unlock(void) {
    n_inside_other--;
    direct_mutex_unlock(&other);
}

const void *walk_mutex_object(bool is_other) {
    return is_other ? &other : mutex;
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
        direct_cond_wait(&cond, mutex, SBT_RELEASE_OURS, NULL);
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

/* After the last thread, no bit is left that stands for a waiter, an owner, or a server that runs the section. */
static bool is_left_over(pthread_mutex_t *m) {
    return (sbt_mutex_of(m)->state & (DIRECT_LOCKED | DIRECT_QUEUED | DIRECT_WOKEN | DIRECT_SERVED | DIRECT_TIMED)) !=
           0;
}

const char *walk_mutex_at_end(void) {
    if (!sched_is_freed(&cond) && sbt_cond_of(&cond)->state != 0)
        return "the condition believes that a thread waits";
    return is_left_over(mutex) || is_left_over(&other) ? "the mutex is not as it was" : NULL;
}
