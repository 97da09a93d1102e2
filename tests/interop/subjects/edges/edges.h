/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Common part of the edge-case subjects. A test that needs a thread to be blocked must not guess a time: the thread
 * stores its id as the last thing before the blocking call, and until_asleep() then waits for the kernel to say that
 * it sleeps. Nothing between the two puts a thread to sleep, so it sleeps in the call.
 */
#ifndef INTEROP_EDGES_H
#define INTEROP_EDGES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(ok)                                                                                                     \
    do {                                                                                                               \
        if (!(ok)) {                                                                                                   \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #ok);                                           \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static inline struct timespec in_seconds(int n) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += n;
    return at;
}

static inline void until_asleep(pid_t *tid) {
    char name[64], line[512], state = '?';
    pid_t id;
    do {
        usleep(1000);
        id = __atomic_load_n(tid, __ATOMIC_SEQ_CST);
        if (id == 0)
            continue;
        snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int)id);
        FILE *f = fopen(name, "r");
        EXPECT(f != NULL && fgets(line, sizeof line, f) != NULL);
        fclose(f);
        const char *end = strrchr(line, ')');
        EXPECT(end != NULL);
        state = end[2];
    } while (id == 0 || state != 'S');
}

#define ASLEEP_FROM_HERE(tid) __atomic_store_n((tid), gettid(), __ATOMIC_SEQ_CST)

#endif
