/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Software only: what a thread does in the library and in the kernel. A mutex is t->mutex, any other object t->object.
 */
#ifndef SIM_SOFTWARE_H
#define SIM_SOFTWARE_H

#include "core.h"

void sim_software_lock(struct sim *sim, struct sim_thread *t);   /* then t->locked */
void sim_software_unlock(struct sim *sim, struct sim_thread *t); /* then t->unlocked */
/* An attempt without effect. */
void sim_software_try(struct sim *sim, struct sim_thread *t, sim_then *then);
void sim_software_barrier(struct sim *sim, struct sim_thread *t);
void sim_software_rwlock(struct sim *sim, struct sim_thread *t);
void sim_software_rwunlock(struct sim *sim, struct sim_thread *t);
void sim_software_sem_wait(struct sim *sim, struct sim_thread *t);
void sim_software_sem_post(struct sim *sim, struct sim_thread *t);
void sim_software_spin_lock(struct sim *sim, struct sim_thread *t);
void sim_software_spin_unlock(struct sim *sim, struct sim_thread *t);
/*
 * The thread waits in software at an rwlock, semaphore, spin lock or barrier. Its wait ends: the owners lose the lock,
 * the semaphore is posted, the barrier opens. False: it does not wait there.
 */
bool sim_software_pass(struct sim *sim, struct sim_thread *t);

/* ---- parts of these and of conditions ---- */

/* An atomic attempt at the object, which moves its cache line here. */
void sim_software_attempt(struct sim *sim, struct sim_thread *t, struct sim_object *o, sim_then *then);
/* The way into the kernel to sleep, without a second attempt. */
void sim_software_futex_sleep(struct sim *sim, struct sim_thread *t, struct sim_object *o, sim_then *then);
/* The thread wakes all of t->targets, one after another; then t->unlocked. */
void sim_software_wake_targets(struct sim *sim, struct sim_thread *t);

#endif
