/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See own_file.h. */
#include "os/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "decimal.h"
#include "os/arch.h"

/* Few programs have so many descriptors, and the limit is seldom lower. */
enum { HIGH_FD = 500 };

static size_t append(char *to, size_t n, const char *text, size_t n_text) {
    if (n_text > SBT_OWN_FILE_PATH - 1 - n)
        n_text = SBT_OWN_FILE_PATH - 1 - n;
    memcpy(to + n, text, n_text);
    to[n + n_text] = '\0';
    return n + n_text;
}

static size_t append_number(char *to, size_t n, uint64_t number) {
    char digits[DECIMAL_SIZE];
    const char *at = decimal_of(digits, number);
    return append(to, append(to, n, ".", 1), at, strlen(at));
}

void sbt_own_file_name(struct sbt_own_file *f, const char *path, const char *ending) {
    size_t n = 0;
    f->ending = ending;
    if (path[0] != '/' && sbt_syscall3(SYS_getcwd, f->wanted, SBT_OWN_FILE_PATH - 1, 0) > 0)
        n = append(f->wanted, strlen(f->wanted), "/", 1);
    append(f->wanted, n, path, strlen(path));
}

/* FILE, FILE.PID, FILE.PID.1, ... */
static void name(struct sbt_own_file *f, unsigned number) {
    size_t n = strlen(f->wanted), n_ending = strlen(f->ending);
    bool has_ending = n > n_ending && strcmp(f->wanted + n - n_ending, f->ending) == 0;
    if (number == 0) {
        append(f->path, 0, f->wanted, n);
        return;
    }
    n = append(f->path, 0, f->wanted, has_ending ? n - n_ending : n);
    n = append_number(f->path, n, (uint64_t)sbt_syscall0(SYS_getpid));
    if (number > 1)
        n = append_number(f->path, n, number - 1);
    append(f->path, n, f->ending, n_ending);
}

long sbt_own_file_create(struct sbt_own_file *f, int flags, unsigned n_names) {
    struct stat st;
    long fd = -EEXIST;
    for (unsigned number = f->is_child ? 1 : 0; fd == -EEXIST && number < n_names; number++) {
        name(f, number);
        fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)f->path, flags | O_CREAT | O_EXCL | O_CLOEXEC, 0666, 0, 0);
    }
    if (fd >= 0 && sbt_syscall3(SYS_fstat, fd, &st, 0) == 0) {
        f->device = st.st_dev;
        f->inode = st.st_ino;
    }
    return fd;
}

bool sbt_own_file_is(const struct sbt_own_file *f, int fd) {
    struct stat st;
    return sbt_syscall3(SYS_fstat, fd, &st, 0) == 0 && st.st_dev == f->device && st.st_ino == f->inode;
}

void sbt_own_file_remove(const struct sbt_own_file *f) {
    struct stat st;
    if (sbt_syscall6(SYS_newfstatat, AT_FDCWD, (long)f->path, (long)&st, AT_SYMLINK_NOFOLLOW, 0, 0) == 0 &&
        st.st_dev == f->device && st.st_ino == f->inode)
        sbt_syscall6(SYS_unlinkat, AT_FDCWD, (long)f->path, 0, 0, 0, 0);
}

long sbt_own_file_open(const struct sbt_own_file *f, int flags) {
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)f->path, flags | O_CLOEXEC, 0, 0, 0);
    if (fd < 0 || sbt_own_file_is(f, (int)fd))
        return fd;
    sbt_syscall3(SYS_close, fd, 0, 0);
    return -ENOENT;
}

int sbt_own_file_out_of_the_way(long fd) {
    long high = sbt_syscall3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        high = fd == 0 ? sbt_syscall3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 1) : fd;
    if (high == fd)
        return (int)fd;
    sbt_syscall3(SYS_close, fd, 0, 0);
    return high > 0 ? (int)high : 0;
}

void sbt_own_file_take_limit(void) {
    struct timespec at_once = {0, 0};
    uint64_t too_large = UINT64_C(1) << (SIGXFSZ - 1);
    sbt_syscall6(SYS_rt_sigtimedwait, (long)&too_large, 0, (long)&at_once, sizeof too_large, 0, 0);
}
