/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that are started and joined, or the check fails. All in this header: a file that gives the functions of POSIX
 * other names (stress/api.h) has those called here, too.
 */
#ifndef TESTS_LIB_THREADS_H
#define TESTS_LIB_THREADS_H

#include "checks.h"

#include <pthread.h>
#include <stddef.h>

/* A thread that waits for one that does not exist waits for ever: no test goes on without it. Never in the caller's
 * frame, which may be one that vfork or a clean-up handler returns to. */
static __attribute__((noinline, unused)) pthread_t thread_start_with(const pthread_attr_t *attr,
                                                                     void *(*routine)(void *), void *argument) {
    pthread_t thread;
    int error = pthread_create(&thread, attr, routine, argument);
    if (error != 0)
        FAIL("pthread_create returned %s", check_errno_name(error));
    return thread;
}

static inline pthread_t thread_start(void *(*routine)(void *), void *argument) {
    return thread_start_with(NULL, routine, argument);
}

/* With a stack of so many bytes: a test may have thousands of them at once. */
static inline pthread_t thread_start_small(size_t stack, void *(*routine)(void *), void *argument) {
    pthread_attr_t attr;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstacksize(&attr, stack));
    pthread_t thread = thread_start_with(&attr, routine, argument);
    OK(pthread_attr_destroy(&attr));
    return thread;
}

/* Returns the thread's value. */
static inline void *thread_join(pthread_t thread) {
    void *value = NULL;
    OK(pthread_join(thread, &value));
    return value;
}

static inline void thread_join_cancelled(pthread_t thread) {
    CHECK(thread_join(thread) == PTHREAD_CANCELED);
}

#endif
