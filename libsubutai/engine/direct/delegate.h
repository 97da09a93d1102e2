/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Delegated mutexes: contended critical sections go to the core on which the mutex's data is, in place of the data
 * going to the section's thread. The idea is that of Remote Core Locking (Lozi), and of combining (flat combining,
 * Hendler et al.). Here no function is passed: a section goes as a fiber, with its thread's stack, registers and
 * thread-local variables, so it may be any code of an unmodified program.
 *
 * Which mutexes: the option `delegate` names them (delegate_list.c), or has them found (delegate_auto.c). The word
 * `delegated` of a mutex keeps which name it has.
 * It is asked for where a thread waits, and where waiters are queued. A free mutex is taken, and one without waiters is
 * unlocked, as if there were no delegation.
 *
 * How a section travels:
 *  1. A fiber finds the mutex locked. It queues in the parking lot at once and leaves its carrier.
 *  2. The owner unlocks. The first waiter waits by switching: so the owner leaves LOCKED set, takes the waiter out of
 *     the queue, and grants it the mutex (sbt_lot_grant_here). No thread comes in between, so the order is the order of
 *     arrival.
 *  3. The owner's carrier switches straight to that fiber. Its section finds the data in this core's cache. The owner
 *     is queued behind the other runnable fibers. An idle carrier takes it from there.
 *  4. The section ends with step 2. After BATCH_MOST sections in a row (switch/tuning.h) the carrier runs the other
 *     runnable fibers first. When no waiter is queued the mutex is free, and the last owner goes on.
 *
 * A waiter that is not parked is not granted the mutex, because it may be in a signal handler:
 *  - A thread that sleeps in the kernel is handed the mutex as in hand-over mode (mutex.c), in its turn, which is taken
 *    back if it did not sleep. If the owner is on no carrier either, the modes are those of a mutex that is not
 *    delegated.
 *  - A fiber that is about to park, or is on its home thread: the mutex is freed, and the fiber notified to try.
 *
 * In both cases a running thread may come before the waiters once. So the order is strict among fibers that wait by
 * switching, and nearly strict otherwise.
 *
 * That is the form `combine`. In the form `server` (the option `servers`) step 3 is another:
 *  3. The fiber is queued at the mutex's server, a carrier that runs nothing but sections (switch/serve.c), and the
 *     owner goes on where it is. SERVED in the mutex's word sends the unlock of that section to the slow path, also if
 *     no waiter is queued. Then the fiber leaves the server. If the owner was on that server, the server goes on with
 *     the granted fiber.
 * A free mutex is taken where the thread runs, as ever. So the section that the others queue behind may run anywhere.
 */
#ifndef SBT_ENGINE_DIRECT_DELEGATE_H
#define SBT_ENGINE_DIRECT_DELEGATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/object.h"
#include "engine/direct/delegate_auto.h"
#include "os/arch.h"

/* Values of `delegated`; others are 1 + the number of the entry that names the mutex. */
#define DIRECT_DELEGATED_UNKNOWN 0u
#define DIRECT_DELEGATED_NOT UINT32_MAX

/* The option names mutexes. Set once at start-up. */
extern bool direct_delegates SBT_HIDDEN;
extern uint32_t direct_n_delegates;

/* Find out, and remember in the mutex. May read a call stack. */
uint32_t direct_delegate_find(struct sbt_mutex *mx);

/* The server that is to run the mutex's sections. There are servers, and the mutex is delegated. */
uint32_t direct_delegate_server(struct sbt_mutex *mx);

/*
 * A section of that entry has been handed over: by an owner that runs there, as the first of a batch or not; and behind
 * sections of other mutexes of its server (false serialization).
 */
void direct_delegate_count(uint32_t delegated, bool begins_batch, bool waits);

/* A number that no entry has was in the memory before: a program may give a mutex only the words that it knows of. */
static inline uint32_t direct_delegated(struct sbt_mutex *mx) {
    uint32_t delegated = __atomic_load_n(&mx->delegated, __ATOMIC_RELAXED);
    bool known = delegated == DIRECT_DELEGATED_NOT || delegated - 1 < direct_n_delegates;
    return SBT_LIKELY(known) ? delegated : direct_delegate_find(mx);
}

static inline bool direct_is_delegated(struct sbt_mutex *mx) {
    if (SBT_LIKELY(!direct_delegates))
        return false;
    return direct_auto ? direct_auto_delegates(mx) : direct_delegated(mx) != DIRECT_DELEGATED_NOT;
}

/* The caller holds it, and waiters are queued: hand it over. The mutex may be gone afterwards. */
void direct_delegate_unlock(struct sbt_mutex *mx);

/* Clear SERVED, by the owner. The result is what the word is then. */
uint32_t direct_delegate_not_served(struct sbt_mutex *mx);

/* The caller has unlocked a mutex of which a server ran the section: go back to where the other fibers run. */
void direct_delegate_leave_server(void);

#endif
