/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the subjects share: ordinary pthread programs that check themselves, end with 0 or with 1 and a line, and take
 * their sizes as arguments. They know nothing of the library.
 */
#ifndef NI_SUBJECT_H
#define NI_SUBJECT_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MUST(expression)                                                                                               \
    do {                                                                                                               \
        int must_ = (expression);                                                                                      \
        if (must_ != 0) {                                                                                              \
            fprintf(stderr, "%s:%d: %s is %d: %s\n", __FILE__, __LINE__, #expression, must_, strerror(must_));         \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                  \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static inline unsigned argument(int argc, char **argv, int which, unsigned otherwise) {
    return argc > which ? (unsigned)strtoul(argv[which], NULL, 10) : otherwise;
}

/* Small stacks: some subjects have a thousand of them at once. */
static inline pthread_t start(void *(*routine)(void *), void *value) {
    pthread_t thread;
    pthread_attr_t attr;
    MUST(pthread_attr_init(&attr));
    MUST(pthread_attr_setstacksize(&attr, 64 * 1024));
    MUST(pthread_create(&thread, &attr, routine, value));
    MUST(pthread_attr_destroy(&attr));
    return thread;
}

static inline void run_threads(unsigned n, void *(*routine)(void *)) {
    pthread_t threads[1024];
    EXPECT(n <= 1024);
    for (unsigned i = 0; i < n; i++)
        threads[i] = start(routine, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < n; i++)
        MUST(pthread_join(threads[i], NULL));
}

static inline struct timespec in_us(long us) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += us % 1000000 * 1000;
    at.tv_sec += us / 1000000 + at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static inline void sleep_us(long us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

/* Only one thread may be between the two at a time. */
struct inside {
    atomic_uint n;
    uint64_t entered; /* plain: lost updates show */
};

static inline void go_in(struct inside *inside) {
    EXPECT(atomic_fetch_add_explicit(&inside->n, 1, memory_order_relaxed) == 0);
    inside->entered++;
}

static inline void go_out(struct inside *inside) {
    EXPECT(atomic_fetch_sub_explicit(&inside->n, 1, memory_order_relaxed) == 1);
}

#endif
