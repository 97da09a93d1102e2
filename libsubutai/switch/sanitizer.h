/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What ThreadSanitizer must know, where a test links the engines into a sanitized program. Nothing elsewhere.
 *
 * A sanitizer's notion of the current thread is thread-local, so it goes with the fiber. It sees a thread that goes on,
 * on its own stack, and needs to know nothing of fibers (__tsan_switch_to_fiber and __sanitizer_start_switch_fiber are
 * for stacks that share one TLS). It cannot see two things:
 *  - Fibers on one carrier run one after the other: what a fiber leaves in the carrier, the next fiber may read.
 *  - A fiber leaves its home thread and comes back. That is in pin.c, which is not instrumented: the parked home thread
 *    has the TLS of a fiber that runs elsewhere, and the code that the sanitizer adds would use it.
 */
#ifndef SBT_SWITCH_SANITIZER_H
#define SBT_SWITCH_SANITIZER_H

#if defined __has_feature
#if __has_feature(thread_sanitizer)
#define SBT_TSAN
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define SBT_TSAN
#endif

#ifdef SBT_TSAN /* or by the build, for pin.c */
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define SBT_TSAN_ACQUIRE(address) __tsan_acquire(address)
#define SBT_TSAN_RELEASE(address) __tsan_release(address)
#define SBT_HOME_MAY_PUSH false /* runq.c is instrumented */
#else
#define SBT_TSAN_ACQUIRE(address) ((void)0)
#define SBT_TSAN_RELEASE(address) ((void)0)
#define SBT_HOME_MAY_PUSH true
#endif

#endif
