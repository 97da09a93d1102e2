/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pthread_barrier_*. Process-shared barriers are glibc's. */
#include <errno.h>
#include <string.h>

#include "abi/abi.h"
#include "core/probes.h"

static inline bool theirs(const pthread_barrier_t *b) {
    return sbt_marked(b, &sbt_layout.barrier);
}

/* glibc checks the count and the attribute. If glibc has made a private barrier, ours takes its place. */
SBT_EXPORT int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr, unsigned count) {
    int r = THEIRS(pthread_barrier_init(b, attr, count));
    return r != 0 || theirs(b) ? r : sbt_engine.barrier_init(b, count);
}

SBT_EXPORT int pthread_barrier_destroy(pthread_barrier_t *b) {
    return theirs(b) ? THEIRS(pthread_barrier_destroy(b)) : sbt_engine.barrier_destroy(b);
}

static SBT_NOINLINE int wait_theirs(pthread_barrier_t *b) {
    return THEIRS_WAITS(pthread_barrier_wait(b));
}

SBT_EXPORT int pthread_barrier_wait(pthread_barrier_t *b) {
    sbt_progress_surely();
    if (SBT_UNLIKELY(theirs(b)))
        return wait_theirs(b);
    SBT_PROBE1(barrier_entry, b);
    int r = sbt_engine.barrier_wait(b);
    SBT_PROBE1(barrier_exit, b);
    return r;
}
