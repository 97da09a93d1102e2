/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe/misses.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "os/arch.h"
#include "os/fence.h"
#include "os/fork.h"

#ifdef __x86_64__
enum { PAGE_BYTES = 4096 };

static bool available; /* written before there are threads */

static uint64_t read_counter(uint32_t number) {
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
    return (uint64_t)high << 32 | low;
}

/* NULL: the kernel gives none. The page keeps the counter when the descriptor is closed. */
static const struct perf_event_mmap_page *counter_of_caller(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = PERF_ATTR_SIZE_VER0,
                                   .config = PERF_COUNT_HW_CACHE_MISSES,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    long fd = sbt_syscall6(SYS_perf_event_open, (long)&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    long page = sbt_syscall6(SYS_mmap, 0, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    sbt_syscall3(SYS_close, fd, 0, 0);
    return page < 0 && page > -4096 ? NULL : (const struct perf_event_mmap_page *)page;
}

bool rec_misses_start(void) {
    struct rec_misses mine = {.page = NULL};
    uint64_t count;
    available = sbt_syscall3(SYS_prctl, PR_GET_SECCOMP, 0, 0) == 0;
    available = available && rec_misses_read(&mine, &count);
    rec_misses_end(&mine);
    return available;
}

bool rec_misses_read(struct rec_misses *m, uint64_t *count) {
    if (!available || sbt_fence_is_forbidden())
        return false;
    int32_t tid = (int32_t)sbt_syscall0(SYS_gettid);
    if (m->tid != tid || m->generation != sbt_fork_generation()) {
        rec_misses_end(m);
        m->tid = tid;
        m->generation = sbt_fork_generation();
        m->page = counter_of_caller();
    }
    return m->page != NULL && rec_misses_of(m->page, read_counter, count);
}

/* The kernel does not give these pages to a forked child: there is nothing to give back, or something else. */
void rec_misses_end(struct rec_misses *m) {
    if (m->page != NULL && m->generation == sbt_fork_generation())
        sbt_syscall3(SYS_munmap, m->page, PAGE_BYTES, 0);
    *m = (struct rec_misses){.page = NULL};
}
#else
bool rec_misses_start(void) {
    return false;
}

bool rec_misses_read(struct rec_misses *m, uint64_t *count) {
    (void)m;
    (void)count;
    return false;
}

void rec_misses_end(struct rec_misses *m) {
    (void)m;
}
#endif
