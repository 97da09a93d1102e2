/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/mapped.h"

uintptr_t sbt_mapped_pages[SBT_MAPPED_PAGES];

static uint32_t no_futex; /* a word that no thread waits on */

static bool page_readable(uintptr_t page) {
    if (SBT_LIKELY(sbt_mapped_is_known((const void *)page)))
        return true;
    if (!sbt_mapped_now((const void *)page, 1))
        return false;
    __atomic_store_n(sbt_mapped_place(page), sbt_mapped_mark(page), __ATOMIC_RELAXED);
    return true;
}

bool sbt_mapped_readable(const void *from, size_t bytes) {
    uintptr_t first = (uintptr_t)from & -SBT_MAPPED_PAGE, last = ((uintptr_t)from + bytes - 1) & -SBT_MAPPED_PAGE;
    return page_readable(first) && (last == first || page_readable(last));
}

/*
 * FUTEX_WAKE_OP with `or 0` writes the word back, and then fails with ENOSYS: there is no comparison of that number.
 * The kernel's order is write, then judge the comparison.
 */
bool sbt_mapped_writable(uint32_t *word) {
    const uint32_t no_comparison = 15;
    return sbt_syscall6(SYS_futex, (long)&no_futex, FUTEX_WAKE_OP_PRIVATE, 0, 0, (long)word,
                        (long)FUTEX_OP(FUTEX_OP_OR, 0, no_comparison, 0)) != -EFAULT;
}
