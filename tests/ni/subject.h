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

#include "lib/await.h"
#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/processes.h"
#include "lib/threads.h"

static inline unsigned argument(int argc, char **argv, int which, unsigned otherwise) {
    return argc > which ? (unsigned)strtoul(argv[which], NULL, 10) : otherwise;
}

/* Small stacks: some subjects have a thousand of them at once. */
static inline pthread_t start(void *(*routine)(void *), void *value) {
    return thread_start_small(64 * 1024, routine, value);
}

static inline void run_threads(unsigned n, void *(*routine)(void *)) {
    pthread_t threads[2048];
    CHECK(n <= 2048);
    for (unsigned i = 0; i < n; i++)
        threads[i] = start(routine, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < n; i++)
        thread_join(threads[i]);
}

/* Only one thread may be between the two at a time. */
struct inside {
    atomic_uint n;
    uint64_t entered; /* plain: lost updates show */
};

static inline void go_in(struct inside *inside) {
    CHECK(atomic_fetch_add_explicit(&inside->n, 1, memory_order_relaxed) == 0);
    inside->entered++;
    let_others_in((int)inside->entered);
}

static inline void go_out(struct inside *inside) {
    CHECK(atomic_fetch_sub_explicit(&inside->n, 1, memory_order_relaxed) == 1);
}

#endif
