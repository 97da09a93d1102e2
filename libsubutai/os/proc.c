/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading /proc by system calls of our own; see proc.h. */
#include "os/proc.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "decimal.h"
#include "os/arch.h"

char sbt_proc_state(uint32_t tid) {
    char path[64] = "/proc/self/task/", digits[DECIMAL_SIZE], text[256];
    strcat(strcat(path, decimal_of(digits, tid)), "/stat");
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return '\0';
    long n = sbt_syscall3(SYS_read, fd, text, sizeof text - 1);
    sbt_syscall3(SYS_close, fd, 0, 0);
    if (n <= 0)
        return '\0';
    text[n] = '\0';
    const char *end = strrchr(text, ')'); /* the thread's name, which may hold anything, ends there */
    return end != NULL && end[1] == ' ' ? end[2] : '\0';
}
