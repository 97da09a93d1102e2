/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symbols of the exported functions.
 *
 * Every entry point is written under its own name, and in the preload library that name is its symbol. Two other builds
 * give it the symbol sbt_NAME, by a label on the declaration, so the code stays the same:
 *  - SBT_PREFIX: the functions are linked into a program with a sanitizer, which takes the C library's names for
 *    itself.
 *  - SBT_OBSERVED: the recorder's functions have the C library's names, and call these.
 */
#ifndef SBT_ABI_NAMES_H
#define SBT_ABI_NAMES_H

#include <threads.h>

#include "os/real.h"

#if defined SBT_PREFIX || defined SBT_OBSERVED
#define SBT_RENAMED 1
#else
#define SBT_RENAMED 0
#endif

/* F(name): the functions that are no pointer of sbt_real. */
#define SBT_C11_NAMES(F)                                                                                               \
    F(mtx_destroy)                                                                                                     \
    F(mtx_lock)                                                                                                        \
    F(mtx_trylock)                                                                                                     \
    F(mtx_timedlock)                                                                                                   \
    F(mtx_unlock)                                                                                                      \
    F(cnd_init)                                                                                                        \
    F(cnd_destroy)                                                                                                     \
    F(cnd_wait)                                                                                                        \
    F(cnd_timedwait)                                                                                                   \
    F(cnd_signal)                                                                                                      \
    F(cnd_broadcast)                                                                                                   \
    F(call_once)                                                                                                       \
    F(sched_yield)                                                                                                     \
    F(thrd_yield)

#endif
