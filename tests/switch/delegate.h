/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the scenes of delegated mutexes share: mutexes that are delegated by name or all together, and their sections.
 */
#ifndef SWITCH_DELEGATE_H
#define SWITCH_DELEGATE_H

#include "scene.h"

#define ROUNDS 2000

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int inside, count, other_count;

static inline void leave_home(void) {
    for (int i = 0; i < 20; i++)
        meet();
}

static inline void enter(pthread_mutex_t *m) {
    OK(pthread_mutex_lock(m));
    CHECK(inside++ == 0);
}

static inline void leave(pthread_mutex_t *m) {
    inside--;
    OK(pthread_mutex_unlock(m));
}

/* Work between sections: without any, a thread has the mutex again before another one comes. */
static inline void think(void) {
    for (volatile int i = 0; i < 300; i++)
        ;
}

/* Sections of `hot` that others queue behind. */
static inline void count_sections(int n) {
    for (int i = 0; i < n; i++) {
        enter(&hot);
        count++;
        if (i % 64 == 0)
            sched_yield();
        leave(&hot);
        think();
    }
}

#endif
