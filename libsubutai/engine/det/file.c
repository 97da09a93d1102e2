/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See file.h. */
#include "engine/det/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/log.h"
#include "decimal.h"
#include "os/arch.h"
#include "os/memory.h"
#include "os/signals.h"

enum { MAX_NAMES = 100 };

/* ---- names ---- */

static size_t append(char *to, size_t n, const char *text) {
    size_t n_text = strnlen(text, DET_FILE_PATH - 1 - n);
    memcpy(to + n, text, n_text);
    to[n + n_text] = '\0';
    return n + n_text;
}

static size_t append_number(char *to, size_t n, uint64_t number) {
    char digits[DECIMAL_SIZE];
    return append(to, append(to, n, "."), decimal_of(digits, number));
}

void det_file_start(struct det_file *f, const char *path) {
    size_t n = 0;
    if (path[0] != '/' && sbt_syscall3(SYS_getcwd, f->wanted, DET_FILE_PATH - 1, 0) > 0)
        n = append(f->wanted, strlen(f->wanted), "/");
    append(f->wanted, n, path);
}

/* FILE, FILE.PID, FILE.PID.1, ... */
static void name(struct det_file *f, unsigned number) {
    size_t n = append(f->path, 0, f->wanted);
    if (number > 0)
        n = append_number(f->path, n, (uint64_t)sbt_syscall0(SYS_getpid));
    if (number > 1)
        append_number(f->path, n, number - 1);
}

/* ---- the window ---- */

static void fail(struct det_file *f, long error) {
    const char *why = strerrordesc_np((int)-error);
    if (f->window != NULL)
        sbt_syscall3(SYS_munmap, f->window, DET_FILE_WINDOW, 0);
    f->window = NULL;
    sbt_log(1, "the schedule log ends, the program goes on: '", f->path, "': ", why != NULL ? why : "unknown error",
            NULL);
}

/* The blocked signal that would end the program is taken here. */
static void take_signal_of_limit(void) {
    struct timespec at_once = {0, 0};
    uint64_t too_large = UINT64_C(1) << (SIGXFSZ - 1);
    sbt_syscall6(SYS_rt_sigtimedwait, (long)&too_large, 0, (long)&at_once, sizeof too_large, 0, 0);
}

/* Zeros, if the file system cannot allocate. */
static long write_zeros(int fd, uint64_t at) {
    static const char zeros[4096];
    for (uint64_t end = at + DET_FILE_WINDOW; at < end; at += sizeof zeros) {
        long n = sbt_syscall6(SYS_pwrite64, fd, (long)zeros, sizeof zeros, (long)at, 0, 0);
        if (n != (long)sizeof zeros)
            return n < 0 ? n : -ENOSPC;
    }
    return 0;
}

/* Map the window at that place of the open file. The result is the system call's. */
static long map(struct det_file *f, int fd, uint64_t at) {
    uint64_t signals = sbt_signals_block();
    long r = sbt_syscall6(SYS_fallocate, fd, 0, (long)at, DET_FILE_WINDOW, 0, 0);
    if (r == -EOPNOTSUPP)
        r = write_zeros(fd, at);
    if (r == -EFBIG)
        take_signal_of_limit();
    sbt_signals_restore(signals);
    if (r < 0)
        return r;
    r = sbt_syscall6(SYS_mmap, 0, DET_FILE_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (long)at);
    if (r < 0 && r > -4096)
        return r;
    f->window = (uint8_t *)r;
    f->window_at = at;
    return 0;
}

static long create(struct det_file *f) {
    struct stat st;
    long fd = -EEXIST;
    for (unsigned number = f->is_child ? 1 : 0; fd == -EEXIST && number < MAX_NAMES; number++) {
        name(f, number);
        fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)f->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666, 0, 0);
    }
    if (fd >= 0 && sbt_syscall3(SYS_fstat, fd, &st, 0) == 0) {
        f->device = st.st_dev;
        f->inode = st.st_ino;
    }
    return fd;
}

/* The file that was made, and no other. */
static long open_again(const struct det_file *f) {
    struct stat st;
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)f->path, O_RDWR | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd;
    if (sbt_syscall3(SYS_fstat, fd, &st, 0) == 0 && st.st_dev == f->device && st.st_ino == f->inode)
        return fd;
    sbt_syscall3(SYS_close, fd, 0, 0);
    return -ENOENT;
}

void det_file_make(struct det_file *f) {
    uint8_t *memory = f->window;
    if (f->is_made || memory == NULL)
        return;
    f->is_made = true;
    long fd = create(f), r = fd < 0 ? fd : map(f, (int)fd, 0);
    if (fd >= 0)
        sbt_syscall3(SYS_close, fd, 0, 0);
    if (r < 0) {
        fail(f, r);
        return;
    }
    memcpy(f->window, memory, f->n);
    sbt_syscall3(SYS_munmap, memory, DET_FILE_WINDOW, 0);
}

/* The window goes on to where it is written now. */
static void move(struct det_file *f) {
    uint8_t *before = f->window;
    uint64_t at = f->window_at + f->n, page = at & ~(uint64_t)(SBT_PAGE_MAX - 1);
    long fd = open_again(f), r = fd < 0 ? fd : map(f, (int)fd, page);
    if (fd >= 0)
        sbt_syscall3(SYS_close, fd, 0, 0);
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
    f->is_child = is_child;
    return det_file_write(f, bytes, n, NULL, 0);
}

bool det_file_write(struct det_file *f, const void *bytes, size_t n, const void *more, size_t n_more) {
    const uint8_t *first = bytes;
    if (f->window != NULL && f->n + n + n_more > DET_FILE_WINDOW) {
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
        long fd = open_again(f);
        if (fd >= 0) {
            sbt_syscall3(SYS_ftruncate, fd, (long)(f->window_at + f->n), 0);
            sbt_syscall3(SYS_close, fd, 0, 0);
        }
    }
    sbt_syscall3(SYS_munmap, f->window, DET_FILE_WINDOW, 0);
    f->window = NULL;
}
