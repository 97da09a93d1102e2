/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is memory mapped? A system call fails with EFAULT where an access of ours would end the process. The kernel is asked
 * once for each page: the answer is remembered for the last pages asked about. So an answer may be old. A page that
 * was unmapped since is a fault of the program's, as it would be in a function of the C library's that reads it.
 */
#ifndef SBT_OS_MAPPED_H
#define SBT_OS_MAPPED_H

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "os/arch.h"
#include "os/fork.h"

/*
 * Can all these bytes be read, now? A system call for each page. FUTEX_CMP_REQUEUE of no waiters: the kernel reads the
 * word, compares it, and wakes and moves none. No other way to ask has fewer side effects, or is forbidden by fewer
 * filters of system calls to a program that uses futexes.
 */
static inline bool sbt_mapped_now(const void *from, size_t bytes) {
    const uintptr_t page = 4096,
                    end = (uintptr_t)from + bytes; /* the smallest page: a larger one is asked more often */
    uint32_t no_waiters = 0;
    for (uintptr_t p = (uintptr_t)from; p < end; p = (p | (page - 1)) + 1)
        if (sbt_syscall6(SYS_futex, (long)(p & -sizeof no_waiters), FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)&no_waiters,
                         0) == -EFAULT)
            return false;
    return true;
}

#define SBT_MAPPED_PAGE ((uintptr_t)4096)
#define SBT_MAPPED_PAGES 64

/* Pages that can be read; in the low bits the fork generation, because a child may lack pages (MADV_DONTFORK). */
extern uintptr_t sbt_mapped_pages[SBT_MAPPED_PAGES] SBT_HIDDEN;

static inline uintptr_t *sbt_mapped_place(uintptr_t page) {
    return &sbt_mapped_pages[page / SBT_MAPPED_PAGE % SBT_MAPPED_PAGES];
}

static inline uintptr_t sbt_mapped_mark(uintptr_t page) {
    return page | (sbt_fork_generation() + 1) % SBT_MAPPED_PAGE;
}

/* Is that page remembered? Makes no system call. */
static inline bool sbt_mapped_is_known(const void *at) {
    const uintptr_t page = (uintptr_t)at & -SBT_MAPPED_PAGE;
    return __atomic_load_n(sbt_mapped_place(page), __ATOMIC_RELAXED) == sbt_mapped_mark(page);
}

/* Can all these bytes be read? At most two system calls, none for pages that are remembered. */
bool sbt_mapped_readable(const void *from, size_t bytes);

/* Can the word be written? A system call. The word is written, with its own value. */
bool sbt_mapped_writable(uint32_t *word);

#endif
