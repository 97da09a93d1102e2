/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host's primitives. A mutex is t->mutex, any other object t->object. */
#ifndef SIM_HOST_SYNC_H
#define SIM_HOST_SYNC_H

#include "host_wait.h"

static inline bool sim_on_host(const struct sim *sim) {
    return __builtin_expect(sim->host != NULL, 0);
}

static inline bool sim_host_is_glibc(const struct sim *sim) {
    return sim->config.sync == SIM_GLIBC;
}

void sim_host_lock(struct sim *sim, struct sim_thread *t);   /* then t->locked */
void sim_host_unlock(struct sim *sim, struct sim_thread *t); /* then t->unlocked */
/*
 * A thread that sleeps at a condition with a mutex that is held sleeps in the mutex's queue from now on; then `then`.
 * False: the mutex is free.
 */
bool sim_host_requeue(struct sim *sim, struct sim_thread *t, sim_then *then);
/* The thread has the mutex as soon as a trylock succeeds; it makes one each t->host.poll_ns. Then `then`. */
void sim_host_poll_lock(struct sim *sim, struct sim_thread *t, struct sim_object *m, sim_then *then);
void sim_host_barrier(struct sim *sim, struct sim_thread *t);
/* Read-write locks, semaphores and spin locks, by t->event.op. */
void sim_host_other(struct sim *sim, struct sim_thread *t);
/* As many threads that wait at the semaphore as can have it: each looks by itself. */
void sim_host_sem_wake(struct sim *sim, struct sim_object *o);
/*
 * The thread waits at an rwlock, semaphore, spin lock or barrier, or polls a mutex. Its wait ends: the owners lose the
 * lock, the semaphore is posted, the barrier opens. False: it does not wait there.
 */
bool sim_host_pass(struct sim *sim, struct sim_thread *t);
/* A call that does no more than that. */
void sim_host_pay(struct sim *sim, struct sim_thread *t, uint64_t ns, sim_then *then);
/* Wake the first thread that sleeps at the object, if there is one; then t->unlocked. */
void sim_host_wake_a_sleeper(struct sim *sim, struct sim_thread *t, struct sim_object *o);

#endif
