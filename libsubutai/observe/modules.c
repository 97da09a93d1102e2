/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files from which the program's code was loaded, as the kernel lists them: the loader's own list is behind a lock.
 * The list is read again when a call comes from an unknown place, for instance after a dlopen.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/signals.h"

#include "observe/record.h"

/*
 * MAX_LINE: a path of at most 4096 bytes, and what precedes it. MAX_READINGS: a limit for programs that map code all
 * the time.
 */
enum { MAX_RANGES = 512, MAX_READINGS = 64, MAX_LINE = 4352 };

static struct {
    uint32_t reading; /* 1: a thread is reading; other threads go on without. Acquire when taken, release when done */
    uint32_t n_readings, n_ranges;
    struct {
        uintptr_t start, end;
    } ranges[MAX_RANGES]; /* the ranges that are named in the trace */
    uint32_t n_bytes;
    uint8_t definitions[TRACE_MAX_DEFINITION_BYTES];
} modules;

static bool known(uintptr_t address) {
    uint32_t n = __atomic_load_n(&modules.n_ranges, __ATOMIC_ACQUIRE); /* pairs with the store in name */
    for (uint32_t i = 0; i < n; i++)
        if (address - modules.ranges[i].start < modules.ranges[i].end - modules.ranges[i].start)
            return true;
    return false;
}

static void write_out(void) {
    struct trace_block header;
    if (modules.n_bytes == 0)
        return;
    trace_definitions_header(&header, TRACE_BLOCK_MODULES, modules.definitions, modules.n_bytes);
    rec_write(&header, modules.definitions, modules.n_bytes, NULL, 0, NULL, 0);
    modules.n_bytes = 0;
}

static void name(uint64_t start, uint64_t end, uint64_t offset, const char *path, size_t n_path) {
    if (modules.n_ranges == MAX_RANGES || known(start))
        return;
    if (path[0] == '/') { /* otherwise made at run time, or the kernel's */
        if (modules.n_bytes + 48 + n_path > sizeof modules.definitions)
            write_out();
        uint8_t *at = modules.definitions + modules.n_bytes;
        *at++ = TRACE_DEFINE_MODULE;
        at = trace_put(trace_put(trace_put(trace_put(at, start), end - start), offset), n_path);
        memcpy(at, path, n_path);
        modules.n_bytes = (uint32_t)(at + n_path - modules.definitions);
    }
    modules.ranges[modules.n_ranges].start = start;
    modules.ranges[modules.n_ranges].end = end;
    __atomic_store_n(&modules.n_ranges, modules.n_ranges + 1, __ATOMIC_RELEASE);
}

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
static void take_line(const char *line) {
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
    size_t n = strlen(at);
    name(start, end, offset, at, n < TRACE_MAX_TEXT ? n : TRACE_MAX_TEXT);
}

static void read_maps(void) {
    static char line[MAX_LINE]; /* the reading thread's */
    size_t n = 0;
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0), r;
    if (fd < 0)
        return;
    uint64_t signals = sbt_signals_block();
    while ((r = sbt_syscall3(SYS_read, fd, line + n, sizeof line - 1 - n)) > 0) {
        char *begin = line, *end;
        n += (size_t)r;
        line[n] = '\0';
        while ((end = memchr(begin, '\n', n)) != NULL) {
            *end = '\0';
            take_line(begin);
            n -= (size_t)(end + 1 - begin);
            begin = end + 1;
        }
        memmove(line, begin, n);
        if (n == sizeof line - 1)
            n = 0; /* no line is that long */
    }
    sbt_syscall3(SYS_close, fd, 0, 0);
    write_out();
    sbt_signals_restore(signals);
}

void rec_module_of(uintptr_t address) {
    if (known(address - 1) || modules.n_readings >= MAX_READINGS ||
        __atomic_exchange_n(&modules.reading, 1, __ATOMIC_ACQUIRE) != 0)
        return;
    modules.n_readings++;
    read_maps();
    __atomic_store_n(&modules.reading, 0, __ATOMIC_RELEASE);
}

void rec_modules_forget(void) {
    modules.reading = modules.n_readings = modules.n_ranges = modules.n_bytes = 0;
}
