/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waits that a program makes by calling, or looking, again and again. A trace has each call, and how long each look
 * took; but how many there are depends on the machine. Two such waits can be recognised, by what stands behind them in
 * the thread's own trace:
 *
 *   a poll  trylocks of a mutex that fail, with no other call and little work between them, and then one that succeeds.
 *           The thread waits until the mutex is free.
 *   a look  work between an unlock of a mutex and a trylock of the same mutex, if the next call but failed trylocks is
 * a wait at a condition with that mutex. The thread looks, without the mutex, for what the condition says, and in the
 * trace it gave up. It would have gone on with the signal that ended the wait.
 */
#ifndef SIM_POLLING_H
#define SIM_POLLING_H

#include <stdbool.h>

#include "trace.h"

enum { SIM_POLLING_GAP_NS = 1000 }; /* a program that does more between two trylocks has other work */

struct sim_polling {
    uint32_t n_failed;  /* trylocks of the poll that failed; 0: it is none */
    uint64_t gaps_ns;   /* the work between its trylocks, the last one included */
    uint32_t condition; /* of a look; SBT_TRACE_NONE: it is none */
    uint64_t signal;    /* that would have ended the look */
};

/* Does the event continue a poll that has not been recognised? Then the events to come need no second look. */
bool sim_polling_goes_on(const struct sbt_trace_event *before, const struct sbt_trace_event *event);

/*
 * `event` is a thread's next event, a trylock of a mutex, and the cursor stands behind it; `before` is the event
 * before. If that is a poll, event and cursor become those of the trylock that succeeds, with the work of the first.
 */
struct sim_polling sim_polling_ahead(struct sbt_trace_cursor *cursor, const struct sbt_trace_event *before,
                                     struct sbt_trace_event *event);

#endif
