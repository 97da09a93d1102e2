/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the programs of scenes share, over tests/lib. They import nothing that the library steps aside for; which kernel
 * thread it is on a thread learns from /proc (lib/proc.h). Exit status 0: the scene's promises hold. A hang is ended by
 * the test's time limit.
 */
#ifndef SWITCH_SCENE_H
#define SWITCH_SCENE_H

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/proc.h"
#include "lib/processes.h"
#include "lib/threads.h"

#define N 12 /* threads, more than most test machines have cores for this to be of interest */
#define THREADS_MAX 300

static pthread_barrier_t barrier;
static pthread_t threads[THREADS_MAX]; /* that `run` has created */

static inline void meet(void) {
    int r = pthread_barrier_wait(&barrier);
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
}

/* n threads, each with its number, meeting at the barrier; they return that or NULL. */
static inline void run(int n, void *(*routine)(void *)) {
    OK(pthread_barrier_init(&barrier, NULL, (unsigned)n));
    for (int i = 0; i < n; i++)
        OK(pthread_create(&threads[i], NULL, routine, (void *)(long)i));
    for (int i = 0; i < n; i++) {
        void *result = thread_join(threads[i]);
        CHECK(result == (void *)(long)i || result == NULL);
    }
}

/* Of threads that keep the carriers at work, and take others away from home, until `over`. */
static inline void keep_carriers_busy(pthread_mutex_t *mutex, atomic_bool *over) {
    for (int i = 0; i < 20; i++)
        meet();
    while (!*over) {
        OK(pthread_mutex_lock(mutex));
        OK(pthread_mutex_unlock(mutex));
        sched_yield();
    }
}

struct scene {
    const char *name;
    void (*play)(void);
};

/* What a scene prints is there as well when a check has ended it. */
static inline int play(int argc, char **argv, const struct scene *scenes) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (const struct scene *s = scenes; argc == 2 && s->name != NULL; s++)
        if (strcmp(argv[1], s->name) == 0) {
            s->play();
            return 0;
        }
    for (const struct scene *s = scenes; s->name != NULL; s++)
        puts(s->name);
    return 2;
}

#endif
