/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which thread takes a signal that is sent to the process (receive.c). */
#ifndef SBT_SWITCH_RECEIVE_H
#define SBT_SWITCH_RECEIVE_H

#include "switch/fiber.h"

/* The signals that an idle carrier blocks. */
uint64_t sbt_receive_idle_mask(void);

/*
 * From now on it matters which thread takes a signal: the program installs a handler, or changes a mask. The first call
 * may wait for the carriers.
 */
void sbt_receive_begin(void);

/* Once there are carriers: make the idle ones block what they should. Blocks until they do. */
void sbt_receive_check_idle(void);

/* The main thread blocks these signals from now on. */
void sbt_receive_main_mask(uint64_t mask);

/* The caller's fiber is about to wait. True: it is on duty, perhaps from now on, and waits on its home thread. */
bool sbt_receive_decide(struct sbt_fiber *f);

/* The calling thread ends. */
void sbt_receive_thread_end(void);

#endif
