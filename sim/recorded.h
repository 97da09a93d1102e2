/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many cores worked at once when a trace was recorded.
 *
 * Work that waits for memory was slowed by the cores that worked at the same time. So the mean is that over the work,
 * and not over the time: of a program in which one thread works for 40 ms and then two threads for 100 ms each, the
 * work was done with (40 x 1 + 200 x 2) / 240 cores, and not with 240 / 140.
 *
 * The time of the trace is divided into SIM_RECORDED_SLOTS equal slots. The work before an event is taken to end at the
 * event: where the thread lost its core meanwhile, its first part is a little too late.
 */
#ifndef SIM_RECORDED_H
#define SIM_RECORDED_H

#include "trace.h"

enum { SIM_RECORDED_SLOTS = 1024 };

/* Zeroed at first; or for another trace, of which the sums are to be added. */
struct sim_recorded {
    double work_ns;     /* all work, */
    double by_cores_ns; /* each part of it times the cores that worked then */
};

/* One trace more. False: it is damaged, or there is no memory. Generated traces ran on no machine: on one core. */
bool sim_recorded_add(struct sim_recorded *recorded, const struct sbt_trace *trace);

/* In thousandths of cores, at least 1000 and at most `most`. */
uint32_t sim_recorded_cores(const struct sim_recorded *recorded, uint32_t most);

#endif
