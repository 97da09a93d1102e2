/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory from the kernel, and not by mmap, which another preloaded library may define. */
#ifndef SBT_OS_MEMORY_H
#define SBT_OS_MEMORY_H

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "os/arch.h"

/* Zeroed, private memory without reserved swap space; NULL: there is none. A system call; leaves errno alone. */
static inline void *sbt_memory_map(size_t bytes) {
    long address = sbt_syscall6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address < 0 && address > -4096 ? NULL : (void *)address;
}

static inline void sbt_memory_unmap(void *memory, size_t bytes) {
    sbt_syscall3(SYS_munmap, (long)memory, (long)bytes, 0);
}

/* Such memory, from its beginning, is zeroed again, by giving its pages back. A filter of system calls may refuse that.
 */
static inline void sbt_memory_clear(void *memory, size_t bytes) {
    if (sbt_syscall3(SYS_madvise, (long)memory, (long)bytes, MADV_DONTNEED) != 0)
        memset(memory, 0, bytes);
}

#endif
