/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See file.h. */
#include "engine/det/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "core/log.h"
#include "os/arch.h"
#include "os/memory.h"
#include "os/signals.h"

void det_file_start(struct det_file *f, const char *path, uint8_t full) {
    f->full = full;
    sbt_own_file_name(&f->own, path, "");
}

/* ---- the window ---- */

/* It is closed if it is still the file's. */
static void drop_kept(struct det_file *f) {
    if (f->kept != 0 && sbt_own_file_is(&f->own, f->kept))
        sbt_syscall3(SYS_close, f->kept, 0, 0);
    f->kept = 0;
}

static void fail(struct det_file *f, long error) {
    const char *why = strerrordesc_np((int)-error);
    f->window[f->n] = f->full;
    sbt_syscall3(SYS_munmap, f->window, DET_FILE_WINDOW, 0);
    f->window = NULL;
    drop_kept(f);
    sbt_log(1, "the schedule log ends, the program goes on: '", f->own.path, "': ", why != NULL ? why : "unknown error",
            NULL);
}

/* If the file system cannot allocate. After a write of a part the next one gives the reason. */
static long write_zeros(int fd, uint64_t at, uint64_t end) {
    static const char zeros[4096];
    for (long n = 0; at < end; at += (uint64_t)n) {
        uint64_t left = end - at;
        n = sbt_syscall6(SYS_pwrite64, fd, (long)zeros, (long)(left < sizeof zeros ? left : sizeof zeros), (long)at, 0,
                         0);
        if (n <= 0)
            return n < 0 ? n : -ENOSPC;
    }
    return 0;
}

/*
 * Map the window at that place of the open file, in which there is room up to `end`. The result is the system call's.
 * Signals are blocked.
 */
static long map(struct det_file *f, int fd, uint64_t at, uint64_t end) {
    long r = sbt_syscall6(SYS_fallocate, fd, 0, (long)at, DET_FILE_WINDOW, 0, 0);
    if (r == -EOPNOTSUPP || r == -ENOSYS)
        r = write_zeros(fd, end, at + DET_FILE_WINDOW);
    if (r == -EFBIG)
        sbt_own_file_take_limit();
    if (r < 0)
        return r;
    r = sbt_syscall6(SYS_mmap, 0, DET_FILE_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (long)at);
    if (r < 0 && r > -4096)
        return r;
    f->window = (uint8_t *)r;
    f->window_at = at;
    return 0;
}

void det_file_make(struct det_file *f) {
    uint8_t *memory = f->window;
    if (f->is_made || memory == NULL)
        return;
    f->is_made = true;
    uint64_t signals = sbt_signals_block(); /* system calls on files of a network may end with EINTR */
    long fd = sbt_own_file_create(&f->own, O_RDWR, SBT_OWN_FILE_NAMES), r = fd < 0 ? fd : map(f, (int)fd, 0, 0);
    if (fd >= 0)
        sbt_syscall3(SYS_close, fd, 0, 0);
    sbt_signals_restore(signals);
    if (r < 0) {
        fail(f, r);
        return;
    }
    memcpy(f->window + 1, memory + 1, f->n - 1);
    __atomic_store_n(f->window, memory[0], __ATOMIC_RELEASE); /* the header is there or not, as every token */
    sbt_syscall3(SYS_munmap, memory, DET_FILE_WINDOW, 0);
}

/* A descriptor of the file that was made, which the caller closes. */
static long open_again(const struct det_file *f) {
    long fd = sbt_own_file_open(&f->own, O_RDWR);
    return fd < 0 && f->kept != 0 && sbt_own_file_is(&f->own, f->kept)
               ? sbt_syscall3(SYS_fcntl, f->kept, F_DUPFD_CLOEXEC, 0)
               : fd;
}

void det_file_keep(struct det_file *f) {
    det_file_make(f);
    if (f->window == NULL)
        return;
    uint64_t signals = sbt_signals_block();
    long fd = open_again(f);
    drop_kept(f);
    f->kept = fd >= 0 ? sbt_own_file_out_of_the_way(fd) : 0;
    sbt_signals_restore(signals);
}

/* The window goes on to where it is written now. */
static void move(struct det_file *f) {
    uint8_t *before = f->window;
    uint64_t at = f->window_at + f->n, page = at & ~(uint64_t)(SBT_PAGE_MAX - 1);
    uint64_t signals = sbt_signals_block();
    long fd = open_again(f), r = fd < 0 ? fd : map(f, (int)fd, page, f->window_at + DET_FILE_WINDOW);
    if (fd >= 0)
        sbt_syscall3(SYS_close, fd, 0, 0);
    sbt_signals_restore(signals);
    if (r < 0) {
        fail(f, r);
        return;
    }
    sbt_syscall3(SYS_munmap, before, DET_FILE_WINDOW, 0);
    f->n = (size_t)(at - page);
}

/* ---- the interface ---- */

bool det_file_begin(struct det_file *f, const void *bytes, size_t n, bool is_child) {
    if (f->window != NULL)
        sbt_syscall3(SYS_munmap, f->window, DET_FILE_WINDOW, 0);
    f->window = sbt_memory_map(DET_FILE_WINDOW);
    f->window_at = 0;
    f->n = 0;
    f->is_made = false;
    drop_kept(f);
    f->own.is_child = is_child;
    return det_file_write(f, bytes, n, NULL, 0);
}

bool det_file_write(struct det_file *f, const void *bytes, size_t n, const void *more, size_t n_more) {
    const uint8_t *first = bytes;
    if (f->window != NULL && f->n + n + n_more >= DET_FILE_WINDOW) { /* the last byte is kept for `full` */
        det_file_make(f);
        if (f->window != NULL)
            move(f);
    }
    if (f->window == NULL)
        return false;
    uint8_t *at = f->window + f->n;
    memcpy(at + 1, first + 1, n - 1);
    if (n_more > 0)
        memcpy(at + n, more, n_more);
    __atomic_store_n(at, *first, __ATOMIC_RELEASE); /* after a kill the kernel keeps what was stored, in that order */
    f->n += n + n_more;
    return true;
}

void det_file_end(struct det_file *f) {
    if (f->window == NULL)
        return;
    if (f->is_made) {
        uint64_t signals = sbt_signals_block();
        long fd = open_again(f);
        if (fd >= 0) {
            sbt_syscall3(SYS_ftruncate, fd, (long)(f->window_at + f->n), 0);
            sbt_syscall3(SYS_close, fd, 0, 0);
        }
        sbt_signals_restore(signals);
    }
    drop_kept(f);
    sbt_syscall3(SYS_munmap, f->window, DET_FILE_WINDOW, 0);
    f->window = NULL;
}
