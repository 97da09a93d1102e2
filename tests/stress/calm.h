/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Included before everything else, this makes torture a program that waiting by switching is for: it imports nothing
 * that belongs to one kernel thread. What needs that (cancellation, signals to threads, vfork) is skipped when it runs.
 */
#ifndef STRESS_CALM_H
#define STRESS_CALM_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static inline int calm_never(void) {
    abort(); /* a torture that should have been skipped */
}
static inline int calm_mask(int how, const sigset_t *set, sigset_t *old) {
    (void)how, (void)set;
    if (old != NULL)
        sigemptyset(old);
    return 0;
}

/* A number for the thread, where only messages and free slots depend on it. */
#define syscall(number) ((long)((uintptr_t)pthread_self() >> 6 & 0x3FFFFFFF) + 1)
#define pthread_sigmask(how, set, old) calm_mask(how, set, old)
#define pthread_kill(thread, number) calm_never()
#define pthread_cancel(thread) calm_never()
#define vfork() calm_never()

#endif
