/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that are stopped in a signal handler, wherever it finds them, as a collector stops the world. */
#ifndef TESTS_POSIX_STOPPED_H
#define TESTS_POSIX_STOPPED_H

#include "topic.h"

#include <sched.h>
#include <signal.h>

#define STOPPABLE 6
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int begun, ended;
static atomic_int n_stopped, go_on, passed;
static void stop(int signo) {
    int e = errno;
    (void)signo;
    atomic_fetch_add(&n_stopped, 1);
    while (atomic_load(&go_on) == 0)
        sched_yield();
    atomic_fetch_sub(&n_stopped, 1);
    errno = e;
}
static pthread_t stoppable[STOPPABLE];

static void start_stoppable(void *(*routine)(void *)) {
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &action, NULL));
    for (int i = 0; i < STOPPABLE; i++)
        stoppable[i] = thread_start(routine, NULL);
    await(&begun, STOPPABLE);
}
static void stop_all(void) {
    atomic_store(&go_on, 0);
    for (int i = 0; i < STOPPABLE; i++)
        OK(pthread_kill(stoppable[i], SIGUSR1));
    while (atomic_load(&n_stopped) < STOPPABLE)
        sched_yield();
}
/* They run for a while, from wherever they were. */
static void let_go_on(int round) {
    atomic_store(&go_on, 1);
    while (atomic_load(&n_stopped) > 0)
        sched_yield();
    for (int k = 0; k < round % 32; k++)
        sched_yield();
}
static void join_stoppable(void) {
    for (int i = 0; i < STOPPABLE; i++)
        thread_join(stoppable[i]);
}

#endif
