/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waiting for the answer to a request that has been handed in (mailbox.h). */
#ifndef SBT_ENGINE_NI_AWAIT_H
#define SBT_ENGINE_NI_AWAIT_H

#include "engine/ni/thread.h"
#include "os/clock.h"

/*
 * Wait for an answer. 0: the answer is in *message. `memory` is what is known of waits of this kind; NULL: the answer
 * comes soon. ETIMEDOUT or, if `cancelable`, a cancellation leaves the answer outstanding.
 */
int ni_await(struct ni_thread *t, int which, const struct sbt_deadline *deadline, struct sbt_adapt *memory,
             bool cancelable, struct hw_message *message);

/* The same at a barrier. All its waiters sleep on its epoch. */
void ni_await_barrier(struct ni_thread *t, uint32_t id, struct hw_message *message);

/* Make a request that is answered soon, and wait for its answer. */
struct hw_message ni_ask(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object);

/*
 * Take back the request that waits with `id`. True: the request was withdrawn. False: its answer was on its way, and is
 * in *message.
 */
bool ni_withdraw(struct ni_thread *t, uint32_t id, struct hw_message *message);

static inline bool ni_refused(const struct hw_message *m, enum hw_reason reason) {
    return m->op == HW_OP_NACK && hw_nack_reason(m->argument) == reason;
}

#endif
