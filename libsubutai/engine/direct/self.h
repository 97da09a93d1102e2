/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the software engine remembers of the calling thread. Initial-exec and valid when all-zero, as struct sbt_thread.
 */
#ifndef SBT_ENGINE_DIRECT_SELF_H
#define SBT_ENGINE_DIRECT_SELF_H

#include <stdint.h>

#include "wait/adapt.h"

struct direct_self {
    const void *trylock_last; /* mutex of the last trylock that failed; NULL: one has succeeded since */
    const void *signalled_by; /* condition that ended a wait by a signal; the thread has made none since */
    const void *spun_outer;   /* mutex that the thread has got by trylock, where others spin, and not unlocked since */
    const void *timed;        /* mutex of the last timed section (delegate_auto.c); NULL: it has ended */
    uint64_t timed_ns;        /* when that began */
    uint32_t n_contended;     /* locks of mutexes that were locked, with --delegate auto */
    uint32_t passed_over;     /* unlocks of mutexes that left sleepers asleep, because a waiter is on its way */
    uint32_t trylock_fails;   /* of `trylock_last`, in a row */
    struct sbt_spared spared; /* trylocks that fail without a yield */
    uint32_t spun_inner;      /* unlocks of others while it holds `spun_outer` */
    uint16_t signalled_after; /* so many switches, by `signalled_by` */
    uint16_t unlock_looks;    /* unlocks that look first (mutex.c) */
    uint16_t rw_looks;        /* the same of read-write locks, and their locks for reading (rwlock.c) */
};

extern _Thread_local struct direct_self direct_self __attribute__((tls_model("initial-exec")));

#endif
