/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program's time, if it is not the kernel's.
 *
 * A preloaded library may show the program another time (libfaketime). It then defines clock_gettime, and some
 * functions that take a deadline; these turn the deadline back into the kernel's time and pass it on. If that library
 * comes before this one in LD_PRELOAD, its functions do so for this library too. If it comes after this one, its
 * functions never see the deadlines of what this library serves, and this library turns them back itself. Functions
 * that no such library defines take deadlines in the kernel's time, as they do in the C library.
 */
#ifndef SBT_OS_PROGRAM_TIME_H
#define SBT_OS_PROGRAM_TIME_H

#include <stdbool.h>

#include "os/clock.h"

/* The functions that take deadlines in the program's time. Written once, by the start. */
extern struct sbt_program_time { bool cond_timedwait, sem_timedwait; } sbt_program_time;

/* Once, by start/, when sbt_real is known. Calls none of the functions. */
void sbt_program_time_start(void);

/*
 * Turn a deadline in the program's time into the kernel's. Calls the program's clock_gettime. A bad deadline stays as
 * it is.
 */
struct sbt_deadline sbt_program_time_deadline(clockid_t clock, const struct timespec *at);

#endif
