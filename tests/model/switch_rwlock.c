/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For switch-walk: a read-write lock of the engine `direct`, on the real lot and wait/park.c. */
#include "switch_rwlock.h"
#include "switch_sched.h"

#include "core/object.h"
#include "engine/direct/direct.h"
#include "wait/parking_lot.h"

static pthread_rwlock_t lock;
static uint32_t n_readers, n_writers, n_left;

void walk_rwlock_setup(uint32_t n_sections, bool prefers_writers) {
    sbt_lot_fork_child();
    memset(&lock, 0, sizeof lock);
    sbt_rwlock_of(&lock)->kind = prefers_writers ? PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP : 0;
    n_readers = n_writers = 0;
    n_left = n_sections;
}

void walk_rwlock_read(void) {
    if (direct_rwlock_rdlock(&lock, NULL) != 0)
        sched_wrong("a read-write lock is not to be had to read");
    n_readers++;
    if (n_writers != 0)
        sched_wrong("a reader is inside beside a writer");
}

void walk_rwlock_write(void) {
    if (direct_rwlock_wrlock(&lock, NULL) != 0)
        sched_wrong("a read-write lock is not to be had to write");
    if (n_readers != 0 || n_writers++ != 0)
        sched_wrong("a writer is not alone");
}

void walk_rwlock_unlock(void) {
    if (n_writers != 0)
        n_writers--;
    else
        n_readers--;
    n_left--;
    direct_rwlock_unlock(&lock);
}

void walk_rwlock_unlock_and_destroy(void) {
    bool last = n_left == 1;
    walk_rwlock_unlock();
    if (!last)
        return;
    if (direct_rwlock_destroy(&lock) != 0)
        sched_wrong("a free read-write lock is busy");
    sched_free(&lock, sizeof lock);
}

const char *walk_rwlock_at_end(void) {
    return !sched_is_freed(&lock) && sbt_rwlock_of(&lock)->state != 0 ? "the read-write lock is not as it was" : NULL;
}
