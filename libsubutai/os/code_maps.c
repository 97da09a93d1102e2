/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/code_maps.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/arch.h"
#include "os/signals.h"

static const char *hexadecimal(const char *at, uint64_t *value) {
    for (*value = 0;; at++) {
        unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
                         : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10
                                                    : 16;
        if (digit == 16)
            return at;
        *value = *value << 4 | digit;
    }
}

/* "start-end rwxp offset device inode   path" */
static void take_line(const char *line, sbt_code_maps_visit *visit, void *argument) {
    uint64_t start, end, offset;
    const char *at = hexadecimal(line, &start);
    if (*at++ != '-')
        return;
    at = hexadecimal(at, &end);
    if (strnlen(at, 6) < 6 || at[3] != 'x')
        return;
    at = hexadecimal(at + 6, &offset);
    for (int field = 0; field < 2; field++) { /* skip device and inode */
        at += strspn(at, " ");
        at += strcspn(at, " ");
    }
    at += strspn(at, " ");
    visit(argument, start, end, offset, at);
}

void sbt_code_maps_read(char *line, sbt_code_maps_visit *visit, void *argument) {
    size_t n = 0;
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0), r;
    if (fd < 0)
        return;
    uint64_t signals = sbt_signals_block();
    while ((r = sbt_syscall3(SYS_read, fd, line + n, SBT_CODE_MAPS_LINE - 1 - n)) > 0) {
        char *begin = line, *end;
        n += (size_t)r;
        line[n] = '\0';
        while ((end = memchr(begin, '\n', n)) != NULL) {
            *end = '\0';
            take_line(begin, visit, argument);
            n -= (size_t)(end + 1 - begin);
            begin = end + 1;
        }
        memmove(line, begin, n);
        if (n == SBT_CODE_MAPS_LINE - 1)
            n = 0; /* no line is that long */
    }
    sbt_syscall3(SYS_close, fd, 0, 0);
    sbt_signals_restore(signals);
}
