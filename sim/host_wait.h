/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a thread waits on the host, and how it is woken.
 *
 * A wait belongs to an object. `look` runs each time the thread may find that the wait is over: it ends the wait, or
 * says sim_host_wait_on. What that does depends on what serves the calls:
 *   glibc    the thread sleeps in the kernel. Before it does, it looks once more.
 *   direct   it spins, yields and sleeps, as libsubutai/wait/adapt.c has it
 *   switch   it spins if its core has no other fiber, and then another fiber runs
 */
#ifndef SIM_HOST_WAIT_H
#define SIM_HOST_WAIT_H

#include "host_sched.h"

/* What an operation on the object costs in user mode: its own time, and the way of the cache line. */
void sim_host_touch(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint64_t ns, sim_then *then);

/* Begin to wait for the object. `forced`: a mutex, for which a wait spins although threads outnumber cores. */
void sim_host_wait_begin(struct sim *sim, struct sim_thread *t, struct sim_object *o, enum sim_why why, bool forced,
                         sim_then *look);
/* The wait is not over: wait on. */
void sim_host_wait_on(struct sim *sim, struct sim_thread *t);
/* The thread, which was woken, goes to sleep again, before all others. */
void sim_host_wait_again(struct sim *sim, struct sim_thread *t);
/* The wait is over: the object remembers how it went. */
void sim_host_wait_end(struct sim *sim, struct sim_thread *t);
/*
 * Spin until the object is free: without an end, as glibc does; or for `first_ns`, and `again_ns` after each yield. A
 * mutex remembers that.
 */
void sim_host_wait_spin(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint64_t first_ns,
                        uint64_t again_ns, sim_then *look);
/* The thread offers its core to others, unless yields do not pay; then t->host.offered. */
void sim_host_offer(struct sim *sim, struct sim_thread *t, sim_then *then);
/* A thread waits for the mutex by trylocks: the next unlocks give the core away. */
void sim_host_spun(struct sim_object *mutex, bool by_any);

/* Let a thread that spins for the object look, or all of them. False: none spins on a core. */
bool sim_host_notice(struct sim *sim, struct sim_object *o, bool all);
/* The thread wakes all of t->targets, one after another; then t->unlocked. */
void sim_host_wake_targets(struct sim *sim, struct sim_thread *t);

#endif
