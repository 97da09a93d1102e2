/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waiting for other threads without what is tested. What bounds these waits is the time limit of the test. */
#ifndef TESTS_LIB_AWAIT_H
#define TESTS_LIB_AWAIT_H

#include <stdatomic.h>

/* Until *counter is `value` or more. */
void await(const atomic_int *counter, int value);
/*
 * Gives other threads time to reach the state they should block in. Only ever used so that "it has not happened" means
 * something: a test must be right however long the others take. asleep.h waits until they have reached it.
 */
void let_threads_block(void);

/*
 * Threads, or processes, that exclude each other show nothing if the rounds of one are over before the next one exists:
 * each calls begin_together once, and goes on when all have. *absent is how many there are to be.
 */
void begin_together(atomic_int *absent);
/*
 * Inside what excludes others: in some rounds they run, and come in if they are not kept out, on one CPU, too. No
 * cancellation point: a cancelled thread would still be inside.
 */
void let_others_in(int round);

#endif
