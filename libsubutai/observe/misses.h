/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cache misses in the timed holds of a profile, by the processor's own counter (perf_event_open(2)), read without a
 * system call (RDPMC). Only user code counts. Many machines have no counter for programs: most virtual ones, aarch64
 * with Linux's defaults, and all under a system-call filter, which may end the process at a call that its author did
 * not expect. Source: the cache misses of critical sections in the profiler of remote core locking (Lozi et al., USENIX
 * ATC 2012, section 4).
 */
#ifndef SBT_OBSERVE_MISSES_H
#define SBT_OBSERVE_MISSES_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* The counter of one kernel thread. All zero: none yet. */
struct rec_misses {
    const struct perf_event_mmap_page *page; /* NULL: it could not be had */
    uint32_t generation;                     /* of the process that has the page; a forked child does not */
    int32_t tid;                             /* the kernel thread; a thread that is switched to has another */
};

/* Once, before any other call: does this machine count cache misses for this process? */
bool rec_misses_start(void);
/*
 * The count of the calling kernel thread, from anywhere on; false: there is none. Makes the counter first if this
 * kernel thread has none. Does not block, and takes nothing that handlers may not take; keeps no descriptor open.
 */
bool rec_misses_read(struct rec_misses *m, uint64_t *count);
/* Gives the counter back; by any thread. */
void rec_misses_end(struct rec_misses *m);

/*
 * The count that the kernel's page and the processor's counter say together; false: the counter is not on the
 * processor. `read_counter`: RDPMC. perf_event.h says how: the page is a sequence lock of the same processor.
 */
static inline bool rec_misses_of(const struct perf_event_mmap_page *page, uint64_t (*read_counter)(uint32_t),
                                 uint64_t *count) {
    uint32_t lock;
    bool counts;
    do {
        lock = __atomic_load_n(&page->lock, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        uint32_t index = page->index;
        unsigned spare = 64u - page->pmc_width;
        *count = (uint64_t)page->offset;
        counts = page->cap_user_rdpmc && index != 0 && spare < 64;
        if (counts) /* it has pmc_width bits, the first of them the sign */
            *count += (uint64_t)((int64_t)(read_counter(index - 1) << spare) >> spare);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } while (lock != __atomic_load_n(&page->lock, __ATOMIC_RELAXED));
    return counts;
}

#endif
