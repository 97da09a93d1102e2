/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The owner of a lock, and what depends on it: critical sections, the scheduler's priority, the recorded order. A
 * read-write lock has an owner or readers.
 */
#ifndef SIM_OWNER_H
#define SIM_OWNER_H

#include "core.h"

/* Set the owner of a mutex, an rwlock for writing or a spin lock. NULL: it has none. */
static inline void sim_owner_set(struct sim_object *o, struct sim_thread *t) {
    if (o->owner != NULL) {
        o->owner->n_owned--;
        o->owner->host.n_served -= o->served;
    }
    o->served = false;
    if (t != NULL)
        t->n_owned++;
    o->owner = t;
}

/* The thread has got a mutex: its critical section begins. */
void sim_owner_acquired(struct sim *sim, struct sim_thread *t, struct sim_object *mutex);
/* Its owner releases a mutex: the critical section ends. */
void sim_owner_released(struct sim *sim, struct sim_object *mutex);

/*
 * Are there acquisitions of the mutex that must come before acquisition t->order?
 *
 * Under glibc that is so for a mutex with which threads wait at conditions. What they wait for is what others have done
 * with the mutex before they gave a signal; a thread that the trace has not let wait found it done. So an acquisition
 * comes at most as many signals early as the mutex's threads have acquisitions in one wait each, which are two: one
 * before it and one behind it. Then each thread can have overtaken each other. A trace has places and not signals;
 * there are as many acquisitions to a signal as there were so far. Where threads wait by trylocks places say nothing:
 * each time that a thread looks is one. And a thread that has another mutex asks at once: those that come before it may
 * need that one first, and would wait for it for ever.
 *
 * The mutex's threads are those that have had it, and the one that asks. They are counted by their numbers modulo 64:
 * a bit stands for as many threads as share it in the mean.
 */
static inline uint64_t sim_owner_users(const struct sim_thread *t, const struct sim_object *mutex) {
    uint64_t bits = mutex->users | UINT64_C(1) << t->number % 64;
    uint64_t n = (uint64_t)__builtin_popcountll(bits);
    if (t->app->n_threads > 64)
        n = (n * t->app->n_threads + 63) / 64;
    return n < t->app->n_alive ? n : t->app->n_alive;
}

static inline uint64_t sim_owner_slack(const struct sim_thread *t, const struct sim_object *mutex) {
    uint64_t acquired = mutex->n_acquired - mutex->guards_from + 1;
    return 2 * sim_owner_users(t, mutex) * acquired / (mutex->n_signals + 1);
}

static inline bool sim_owner_is_early(const struct sim *sim, const struct sim_thread *t,
                                      const struct sim_object *mutex) {
    if (mutex->forgotten || t->order <= mutex->n_acquired + 1)
        return false;
    if (sim->config.recorded_order)
        return true;
    return mutex->guards && !mutex->polled && t->n_held == 0 &&
           t->order > mutex->n_acquired + sim_owner_slack(t, mutex);
}

/* Does the thread want the read-write lock of its call for reading? */
bool sim_owner_reads(const struct sim_thread *t);
/* The thread gets the read-write lock, for reading or as its owner. False: others keep it out. */
bool sim_owner_enter(struct sim_thread *t, struct sim_object *rwlock);
/* The owner, or else a reader, releases it. A release that was recorded without a lock has no effect. */
void sim_owner_leave(struct sim_object *rwlock);

/* Acquisition `order` may come now, whatever has not come before it. */
void sim_owner_pass_order(struct sim *sim, struct sim_object *mutex, uint64_t order);

/* On the host under glibc: a thread waits at the condition with the mutex. */
void sim_owner_guards(struct sim_object *mutex, struct sim_object *condition);

/* On the host: the acquisition of the wait under way does not come, or came for another thread's signal. */
void sim_owner_left_out(struct sim *sim, struct sim_object *mutex);
void sim_owner_uncount(const struct sim *sim, struct sim_object *mutex);

/* The thread goes on with `then` as soon as acquisition t->order may come: at once, or after a wait. */
void sim_owner_wait_order(struct sim *sim, struct sim_thread *t, struct sim_object *mutex, sim_then *then);

#endif
