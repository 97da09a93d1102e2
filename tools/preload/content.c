/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies of what programs wrote, and comparisons; see content.h. */
#include "content.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

/* Small on purpose: until a child has executed the program, the command's own memory counts in the child's peak. */
enum { CHUNK = 32768 };

int content_take(const char *subcommand, const char *path) {
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0 && errno == ENOENT)
        return -1;
    if (from < 0)
        cmd_refuse("%s: --output: '%s': %s", subcommand, path, strerror(errno));
    int to = memfd_create("output", MFD_CLOEXEC);
    if (to < 0)
        cmd_refuse("%s: cannot create an in-memory file: %s", subcommand, strerror(errno));
    char chunk[CHUNK];
    ssize_t n;
    while ((n = read(from, chunk, sizeof chunk)) > 0)
        if (write(to, chunk, (size_t)n) != n)
            cmd_refuse("%s: cannot keep a copy of '%s': %s", subcommand, path, strerror(errno));
    if (n < 0)
        cmd_refuse("%s: --output: '%s': %s", subcommand, path, strerror(errno));
    close(from);
    return to;
}

bool content_same(const char *subcommand, int a, int b) {
    if (a < 0 || b < 0)
        return a < 0 && b < 0;
    struct stat st_a, st_b;
    if (fstat(a, &st_a) != 0 || fstat(b, &st_b) != 0)
        cmd_refuse("%s: cannot look at an in-memory file: %s", subcommand, strerror(errno));
    if (st_a.st_size != st_b.st_size)
        return false;
    char chunk_a[CHUNK], chunk_b[CHUNK];
    for (off_t at = 0; at < st_a.st_size;) {
        ssize_t n = pread(a, chunk_a, sizeof chunk_a, at);
        if (n <= 0 || pread(b, chunk_b, (size_t)n, at) != n)
            cmd_refuse("%s: cannot read an in-memory file: %s", subcommand, strerror(errno));
        if (memcmp(chunk_a, chunk_b, (size_t)n) != 0)
            return false;
        at += n;
    }
    return true;
}
