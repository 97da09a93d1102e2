/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The inner functions of recalls (recall.c). What asks for a recall is in switch.h. */
#ifndef SBT_SWITCH_RECALL_H
#define SBT_SWITCH_RECALL_H

#include "switch/fiber.h"

/* At start-up: which signals does the process begin with ignored? The library may take those for itself all the same.
 */
void sbt_recall_begin(void);

/* Install the handlers, before the first recall. False: no signals are left for them. */
bool sbt_recall_start(void);

/* Recall the fiber. Look `looks` times at most whether it has left its carrier, with pauses in between. */
void sbt_recall(struct sbt_fiber *f, enum sbt_recall_how how, int looks);

/* The signals of recalls, a bit each; no thread blocks them. 0 before sbt_recall_start. */
extern uint64_t sbt_recall_signals SBT_HIDDEN;

#endif
