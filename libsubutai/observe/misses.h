/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cache misses in the timed holds of a profile, by the processor's own counter (perf_event_open(2)), read without a
 * system call (RDPMC). Only user code counts. Many machines have no counter for programs: most virtual ones, aarch64
 * with Linux's defaults, and all under a system-call filter, which may end the process at a call that its author did
 * not expect. Source: the cache misses of critical sections in the profiler of remote core locking (Lozi et al., USENIX
 * ATC 2012, section 4).
 *
 * A thread's counter is made once, when its record begins to be used: not in a section, where that would keep others
 * waiting. It counts for that kernel thread alone. So holds are not counted in a child of vfork, which has another
 * kernel thread and the same memory, nor while threads wait by switching.
 */
#ifndef SBT_OBSERVE_MISSES_H
#define SBT_OBSERVE_MISSES_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* A counter. All zero: none. */
struct rec_misses {
    const struct perf_event_mmap_page *page; /* NULL: it could not be had */
    uint32_t generation;                     /* of the process that has the page; a forked child does not */
    int32_t tid;                             /* the kernel thread for which it counts */
};

/* What it has counted; and for how long it was not on the processor, in ns: then misses are missing. */
struct rec_missed {
    uint64_t n, away_ns;
};

/* Once, before any other call: does this machine count cache misses for this process? The caller's counter is kept, for
 * the kernel makes the first counter of a machine slowly. */
bool rec_misses_start(void);
/* Makes the calling kernel thread's counter; *m has none. A few system calls, and no descriptor stays open. */
void rec_misses_begin(struct rec_misses *m);
/* False: it does not count here and now. Does not block. Handlers of the program are deferred meanwhile. */
bool rec_misses_read(const struct rec_misses *m, struct rec_missed *missed);
/* Gives the counter back; by any thread, when its own no longer reads it. */
void rec_misses_end(struct rec_misses *m);

/*
 * What the kernel's page and the processor's counter say together; false: the counter is not on the processor.
 * `read_counter`: RDPMC. perf_event.h says how: the page is a sequence lock of the same processor.
 */
static inline bool rec_misses_of(const struct perf_event_mmap_page *page, uint64_t (*read_counter)(uint32_t),
                                 struct rec_missed *missed) {
    uint32_t lock;
    bool counts;
    do {
        lock = __atomic_load_n(&page->lock, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        uint32_t index = __atomic_load_n(&page->index, __ATOMIC_RELAXED);
        unsigned spare = 64u - page->pmc_width;
        missed->n = (uint64_t)page->offset;
        missed->away_ns = page->time_enabled - page->time_running;
        counts = page->cap_user_rdpmc && index != 0 && spare < 64;
        if (counts) /* it has pmc_width bits, the first of them the sign */
            missed->n += (uint64_t)((int64_t)(read_counter(index - 1) << spare) >> spare);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } while (lock != __atomic_load_n(&page->lock, __ATOMIC_RELAXED));
    return counts;
}

#endif
