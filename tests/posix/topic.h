/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the topics of the POSIX suite share, over tests/lib. The programs are ordinary consumers of libpthread: they
 * know nothing of Subutai, and plain glibc is the oracle.
 */
#ifndef TESTS_POSIX_TOPIC_H
#define TESTS_POSIX_TOPIC_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "lib/await.h"
#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/cpus.h"
#include "lib/processes.h"
#include "lib/suite.h"
#include "lib/threads.h"

/* What this machine cannot do; each is found by trying, so that emulators need no list. */
bool no_robust_list(void);      /* kernel does not walk robust lists (qemu-user) */
bool no_priority_inherit(void); /* no PI futexes */
bool no_realtime(void);         /* SCHED_FIFO refused */

/* --- time --------------------------------------------------------------------------------------------------------- */
/* Is there another round after `done` of them? Rounds fill two seconds, because one may take several time slices on a
 * busy machine; there are `least` at least, but if those take more than 20 s, and `most` at most. One caller at a time,
 * which begins with done == 0. */
bool another_round(int done, int least, int most);
/* n, or the part of it that TOPIC_PART in the environment says (10: a tenth), of the two seconds too. For rounds that
 * are many because each finds little. */
int rounds(int n);
/* Absolute times that no clock accepts, or that have passed by in every clock. */
extern const struct timespec time_nsec_too_big, time_nsec_negative, time_seconds_negative, time_epoch;
#define SHORT_MS 60     /* a deadline that is waited for */
#define LONG_MS 1000000 /* a deadline that must not be reached: a test is ended before */

/* --- signals ------------------------------------------------------------------------------------------------------ */
extern atomic_int signals_seen;
void signal_counter(int signo, bool restart); /* installs a handler that counts into signals_seen */
/* Sends `signo` to the thread and waits for the handler, `times` times. */
void signal_thread(pthread_t thread, int signo, int times);

#endif
