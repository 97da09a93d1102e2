/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Deadlines of fibers that wait away from their home threads (due.c). */
#ifndef SBT_SWITCH_DUE_H
#define SBT_SWITCH_DUE_H

#include "switch/fiber.h"

/* The fiber is about to wait with a deadline, which counts until sbt_due_clear. False: the deadline has passed. */
bool sbt_due_set(struct sbt_fiber *f, const struct sbt_deadline *deadline);
void sbt_due_clear(struct sbt_fiber *f);

/*
 * In the parked home thread: sleep until the fiber is sent home or its wait times out. Then the caller owns the fiber,
 * and runs it.
 */
void sbt_due_sleep(struct sbt_fiber *f);

#endif
