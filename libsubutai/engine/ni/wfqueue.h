/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * liburcu's wait-free queue, inline: the requests that have come to an NI over the mesh, from any server to a single
 * one. Its atomics are assembly and volatile accesses. ThreadSanitizer does not see the first and takes the second for
 * races. So for that build alone they are the compiler's atomics, with the orders that the queue needs: from version
 * 0.15 by an option of liburcu's own, before that by these macros.
 */
#ifndef SBT_ENGINE_NI_WFQUEUE_H
#define SBT_ENGINE_NI_WFQUEUE_H

#if defined(__SANITIZE_THREAD__)
#define NI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NI_TSAN 1
#endif
#endif

#define _LGPL_SOURCE /* inline */
#ifdef NI_TSAN
#define CONFIG_RCU_USE_ATOMIC_BUILTINS 1
#include <urcu/system.h>
#include <urcu/uatomic.h>
#undef CMM_LOAD_SHARED
#undef CMM_STORE_SHARED
#undef uatomic_xchg
#undef uatomic_cmpxchg
#define CMM_LOAD_SHARED(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define CMM_STORE_SHARED(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)
#define uatomic_xchg(address, v) __atomic_exchange_n((address), (v), __ATOMIC_SEQ_CST)
#define uatomic_cmpxchg(address, old, new)                                                                             \
    __extension__({                                                                                                    \
        __typeof__(*(address)) seen_ = (old);                                                                          \
        __atomic_compare_exchange_n((address), &seen_, (new), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                  \
        seen_;                                                                                                         \
    })
#endif
#include <urcu/wfcqueue.h>

#endif
