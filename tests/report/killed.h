/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of disease.c: programs that are killed, each in another state. */
#ifndef TESTS_KILLED_H
#define TESTS_KILLED_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "disease.h"

static pthread_mutex_t waited_with = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

/* Killed while all of its threads sleep: one for a condition, and the other makes no call that a profile has. */
static void *sleeping_thread(void *argument) {
    pause_us(200000);
    raise(SIGKILL);
    return argument;
}

static inline void killed_asleep(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, sleeping_thread, NULL);
    pthread_mutex_lock(&waited_with);
    for (;;)
        pthread_cond_wait(&never, &waited_with);
}

/* Killed by another thread, after its time without a call, and when it waits for that thread. */
static void *killing_thread(void *argument) {
    pause_us(30000);
    raise(SIGKILL);
    return argument;
}

static void *dozing_thread(void *argument) {
    pause_us(10000000);
    return argument;
}

/* One thread sleeps, and the first one too, or it computes: both without a call that a profile has. */
static void killed_after(bool computes) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, dozing_thread, NULL) != 0)
        abort();
    if (computes)
        compute(200000);
    else
        pause_us(200000);
    run(1, killing_thread);
}

static inline void killed_dozing(void) {
    killed_after(false);
}

static void *ending_before(void *argument) {
    compute(100000);
    return argument;
}

static void *ending_thread(void *argument) {
    compute(100000);
    raise(SIGKILL);
    return argument;
}

/* Threads that have ended before have computed, too; and the one that is killed since its beginning. */
static inline void killed_computing(void) {
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        run(1, computing_thread);
    if (pthread_create(&thread, NULL, dozing_thread, NULL) != 0)
        abort();
    compute(100000);
    run(1, ending_thread);
}

/* Threads of a program that was this one before have computed. */
static inline void killed_after_exec(void) {
    run(3, ending_before);
    execl("/proc/self/exe", "disease", "killed-dozing", (char *)NULL);
}

#endif
