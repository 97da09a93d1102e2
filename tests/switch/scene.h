/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the programs of scenes share. They import nothing that the library steps aside for; the kernel thread it is on a
 * thread learns from /proc/thread-self. Exit status 0: the scene's promises hold. A hang is ended by the test's time
 * limit.
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

#define N 12 /* threads, more than most test machines have cores for this to be of interest */
#define THREADS_MAX 300

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static pthread_barrier_t barrier;
static pthread_t threads[THREADS_MAX]; /* that `run` has created */

static inline long kernel_thread(void) {
    char link[64] = "";
    MUST(readlink("/proc/thread-self", link, sizeof link - 1) > 0);
    const char *last = strrchr(link, '/');
    return atol(last + 1);
}

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void meet(void) {
    int r = pthread_barrier_wait(&barrier);
    MUST(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
}

/* n threads, each with its number, meeting at the barrier; they return that or NULL. */
static inline void run(int n, void *(*routine)(void *)) {
    MUST(pthread_barrier_init(&barrier, NULL, (unsigned)n) == 0);
    for (int i = 0; i < n; i++)
        MUST(pthread_create(&threads[i], NULL, routine, (void *)(long)i) == 0);
    for (int i = 0; i < n; i++) {
        void *result;
        MUST(pthread_join(threads[i], &result) == 0);
        MUST(result == (void *)(long)i || result == NULL);
    }
}

struct scene {
    const char *name;
    void (*play)(void);
};

static inline int play(int argc, char **argv, const struct scene *scenes) {
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
