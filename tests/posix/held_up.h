/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that are held up in a signal handler while they wait, as a collector that stops the world holds them up. */
#ifndef TESTS_POSIX_HELD_UP_H
#define TESTS_POSIX_HELD_UP_H

#include "topic.h"

#include <sched.h>
#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiting, in_handler, leave_handler, passed;

static void linger(int signo) {
    (void)signo;
    int e = errno;
    atomic_store(&in_handler, 1);
    while (atomic_load(&leave_handler) == 0)
        sleep_ms(1);
    errno = e;
}
/* No thread waits, has passed or is held up. */
static void begin_round(void) {
    struct sigaction action = {.sa_handler = linger};
    SYS(sigaction(SIGUSR2, &action, NULL));
    atomic_store(&waiting, 0);
    atomic_store(&passed, 0);
    atomic_store(&in_handler, 0);
    atomic_store(&leave_handler, 0);
}
/* At once, not when await looks next. */
static void hold_up(pthread_t thread) {
    OK(pthread_kill(thread, SIGUSR2));
    while (atomic_load(&in_handler) == 0)
        sched_yield();
}
static void let_go(pthread_t thread) {
    atomic_store(&leave_handler, 1);
    thread_join(thread);
}
/* Others on this CPU get as far as they can. Asleep: beside many processes a yield lasts for milliseconds. */
static void let_others_run(void) {
    sleep_us(50);
}

static void *lock_mutex(void *unused) {
    (void)unused;
    atomic_fetch_add(&waiting, 1);
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&passed, 1);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

#endif
