/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of the exported functions. In the preload library they are the C library's own names, declared by its headers.
 * Built with SBT_PREFIX or SBT_OBSERVED every one is called sbt_ and its name, and declared here.
 */
#ifndef SBT_ABI_PREFIXED_H
#define SBT_ABI_PREFIXED_H

#include "core/real.h"

#if defined SBT_PREFIX || defined SBT_OBSERVED
#define ABI(name) sbt_##name
#define SBT_DECLARE(result, name, parameters) extern result sbt_##name parameters;
#define SBT_DECLARE_LIKE(name) extern __typeof(name) sbt_##name;
SBT_REAL_FUNCTIONS(SBT_DECLARE)
SBT_REAL_COND_FUNCTIONS(SBT_DECLARE)
SBT_REAL_COND_CLOCK_FUNCTIONS(SBT_DECLARE)
SBT_DECLARE_LIKE(mtx_destroy)
SBT_DECLARE_LIKE(mtx_lock)
SBT_DECLARE_LIKE(mtx_trylock)
SBT_DECLARE_LIKE(mtx_timedlock)
SBT_DECLARE_LIKE(mtx_unlock)
SBT_DECLARE_LIKE(cnd_init)
SBT_DECLARE_LIKE(cnd_destroy)
SBT_DECLARE_LIKE(cnd_wait)
SBT_DECLARE_LIKE(cnd_timedwait)
SBT_DECLARE_LIKE(cnd_signal)
SBT_DECLARE_LIKE(cnd_broadcast)
SBT_DECLARE_LIKE(call_once)
SBT_DECLARE_LIKE(sched_yield)
SBT_DECLARE_LIKE(thrd_yield)
#else
#define ABI(name) name
#endif

#endif
