/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Points that a sanitizer cannot follow are left out. In a forked child the thread sanitizer does not know new threads;
 * the address sanitizer's allocator stays locked there if another thread, as when it starts, was in it at the fork.
 */
#ifndef RCL_SANITIZED_H
#define RCL_SANITIZED_H

#if defined __SANITIZE_THREAD__
enum { UNDER_TSAN = 1 };
#else
enum { UNDER_TSAN = 0 };
#endif
#if defined __SANITIZE_ADDRESS__
enum { UNDER_ASAN = 1 };
#else
enum { UNDER_ASAN = 0 };
#endif

#endif
