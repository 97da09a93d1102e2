/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/options.h"
#include "os/arch.h"

void sbt_log(unsigned verbosity, const char *first, ...) {
    if (verbosity > sbt_options.value[SBT_OPT_VERBOSE].u)
        return;
    char line[640] = "subutai: ";
    size_t n = strlen(line);
    va_list strings;
    va_start(strings, first);
    for (const char *s = first; s != NULL; s = va_arg(strings, const char *)) {
        size_t length = strlen(s);
        if (length > sizeof line - 1 - n)
            length = sizeof line - 1 - n;
        memcpy(line + n, s, length);
        n += length;
    }
    va_end(strings);
    line[n++] = '\n';

    long fd = 2;
    const char *file = sbt_options.value[SBT_OPT_LOG].s;
    if (file != NULL && *file != '\0') {
        long opened =
            sbt_syscall6(SYS_openat, AT_FDCWD, (long)file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666, 0, 0);
        fd = opened >= 0 ? opened : 2; /* without the file the message goes to stderr */
    }
    sbt_syscall3(SYS_write, fd, line, n);
    if (fd != 2)
        sbt_syscall3(SYS_close, fd, 0, 0);
}
