/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe/misses.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "core/handlers.h"
#include "os/arch.h"
#include "os/fence.h"
#include "os/fork.h"
#include "switch/switch.h"

#ifdef __x86_64__
enum { PAGE_BYTES = 4096 };

static bool available; /* written before there are threads */

static uint64_t read_counter(uint32_t number) {
    uint32_t low, high;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
    return (uint64_t)high << 32 | low;
}

/* A filter that the program has installed by an instruction of its own is seen here only. */
static bool is_filtered(void) {
    return sbt_fence_is_forbidden() || sbt_syscall3(SYS_prctl, PR_GET_SECCOMP, 0, 0) != 0;
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
    return page < 0 && page > -PAGE_BYTES ? NULL : (const struct perf_event_mmap_page *)page;
}

bool rec_misses_start(void) {
    if (is_filtered())
        return false;
    const struct perf_event_mmap_page *page = counter_of_caller();
    available = page != NULL && page->cap_user_rdpmc;
    if (page != NULL && !available)
        sbt_syscall3(SYS_munmap, page, PAGE_BYTES, 0);
    return available;
}

void rec_misses_begin(struct rec_misses *m) {
    if (!available || is_filtered())
        return;
    m->tid = (int32_t)sbt_syscall0(SYS_gettid);
    m->generation = sbt_fork_generation();
    m->page = counter_of_caller();
}

/* A handler in between may fork, and the child does not have the page. */
bool rec_misses_read(const struct rec_misses *m, struct rec_missed *missed) {
    if (m->page == NULL)
        return false;
    sbt_handlers_hold();
    bool counts = m->generation == sbt_fork_generation() && !sbt_fence_is_forbidden() &&
                  sbt_switch_running_load() == 0 && m->tid == (int32_t)sbt_syscall0(SYS_gettid) &&
                  rec_misses_of(m->page, read_counter, missed);
    sbt_handlers_release();
    return counts;
}

/* The kernel does not give these pages to a forked child: there is nothing to give back, or something else. */
void rec_misses_end(struct rec_misses *m) {
    const struct perf_event_mmap_page *page = m->page;
    m->page = NULL;
    if (page != NULL && m->generation == sbt_fork_generation())
        sbt_syscall3(SYS_munmap, page, PAGE_BYTES, 0);
}
#else
bool rec_misses_start(void) {
    return false;
}

void rec_misses_begin(struct rec_misses *m) {
    (void)m;
}

bool rec_misses_read(const struct rec_misses *m, struct rec_missed *missed) {
    (void)m;
    (void)missed;
    return false;
}

void rec_misses_end(struct rec_misses *m) {
    (void)m;
}
#endif
