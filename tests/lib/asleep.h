/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is a thread asleep in the kernel? A test that needs a thread to be blocked must not guess a time: the thread calls
 * asleep_from_here as the last thing before the call that blocks, and await_asleep then waits for the kernel to say
 * that it sleeps. Nothing between the two puts a thread to sleep, so it sleeps in the call.
 */
#ifndef TESTS_LIB_ASLEEP_H
#define TESTS_LIB_ASLEEP_H

#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Inline: a program that asks for its kernel thread is served otherwise than other programs. */
static inline void asleep_from_here(pid_t *tid) {
    __atomic_store_n(tid, gettid(), __ATOMIC_SEQ_CST);
}

/* *tid is 0 until the thread is there. */
void await_asleep(const pid_t *tid);
/* A thread of the calling process; false: it has ended. */
bool is_asleep(pid_t tid);

#ifdef __cplusplus
}
#endif

#endif
