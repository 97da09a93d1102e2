/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is memory this process's alone, or may another process have it too (MAP_SHARED, System V)? futex(2) without
 * FUTEX_PRIVATE_FLAG means the one or the other.
 *
 * Mappings come and go. Three never become shared memory, unless the program maps that over them on purpose: its
 * variables, the heap that brk(2) extends, and the main thread's stack. For all other memory the kernel is asked each
 * time.
 */
#ifndef SBT_OS_PRIVATE_H
#define SBT_OS_PRIVATE_H

#include <stdbool.h>

/* The word lies in one of those three. The first call reads /proc/self/maps; later ones make no system call, or one. */
bool sbt_private_for_good(const void *word);

/* The word lies in memory of this process alone, and will until that is unmapped. At most four system calls. */
bool sbt_private_now(const void *word);

#endif
