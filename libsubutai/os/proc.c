/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading /proc by system calls of our own; see proc.h. */
#include "os/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "decimal.h"
#include "os/arch.h"
#include "os/futex.h"

#define LOOKS_MOST 2000 /* a fifth of a second, as on a machine that is busy */
#define LOOK_NS 100000

/* A file, terminated; the result is its length, or a negated error. */
static long read_path(const char *path, char *text, size_t room) {
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd;
    long n = sbt_syscall3(SYS_read, fd, text, room - 1);
    sbt_syscall3(SYS_close, fd, 0, 0);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

static long read_file(uint32_t tid, const char *name, char *text, size_t room) {
    char path[64] = "/proc/self/task/", digits[DECIMAL_SIZE];
    return read_path(strcat(strcat(path, decimal_of(digits, tid)), name), text, room);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static uint64_t number_at(const char *at) {
    uint64_t value = 0;
    for (; is_digit(*at); at++)
        value = value * 10 + (uint64_t)(*at - '0');
    return value;
}

uint32_t sbt_proc_runnable_in(const char *text) {
    const char *digit = strchr(text, '/');
    while (digit != NULL && digit > text && digit[-1] != ' ')
        digit--;
    return digit != NULL ? (uint32_t)number_at(digit) : 0;
}

uint32_t sbt_proc_n_runnable(void) {
    char text[128];
    return read_path("/proc/loadavg", text, sizeof text) > 0 ? sbt_proc_runnable_in(text) : 0;
}

char sbt_proc_state(uint32_t tid) {
    char text[256];
    if (read_file(tid, "/stat", text, sizeof text) <= 0)
        return '\0';
    const char *end = strrchr(text, ')'); /* the thread's name, which may hold anything, ends there */
    return end != NULL && end[1] == ' ' ? end[2] : '\0';
}

bool sbt_proc_used(uint32_t tid, uint64_t *cpu_ns, uint64_t *queued_ns) {
    char text[128];
    return read_file(tid, "/schedstat", text, sizeof text) > 0 && sbt_proc_used_in(text, cpu_ns, queued_ns);
}

bool sbt_proc_used_in(const char *text, uint64_t *cpu_ns, uint64_t *queued_ns) {
    const char *second = strchr(text, ' ');
    const uint64_t first = number_at(text);
    if (second == NULL || !is_digit(second[1]) || first == 0) /* all are 0 where the kernel does not count */
        return false;
    *cpu_ns = first;
    *queued_ns = number_at(second + 1);
    return true;
}

/* The link leads to PID/task/TID. */
uint32_t sbt_proc_tid(void) {
    char text[64];
    uint32_t tid = 0;
    long n = sbt_syscall6(SYS_readlinkat, AT_FDCWD, (long)"/proc/thread-self", (long)text, sizeof text, 0, 0);
    for (long i = 0; i < n; i++)
        tid = text[i] == '/' ? 0 : tid * 10 + (uint32_t)(text[i] - '0');
    return tid;
}

uint64_t sbt_proc_start(void) {
    char text[1024];
    return read_path("/proc/self/stat", text, sizeof text) > 0 ? sbt_proc_start_in(text) : 0;
}

uint64_t sbt_proc_start_in(const char *text) {
    const char *at = strrchr(text, ')'); /* the name is field 2, and may hold anything */
    for (int field = 2; at != NULL && field < 22; field++)
        if ((at = strchr(at, ' ')) != NULL)
            at++;
    return at != NULL ? number_at(at) : 0;
}

static uint64_t hexadecimal(const char *at) {
    uint64_t value = 0;
    for (;; at++) {
        if (*at >= '0' && *at <= '9')
            value = value << 4 | (uint64_t)(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            value = value << 4 | (uint64_t)(*at - 'a' + 10);
        else
            return value;
    }
}

struct code {
    uintptr_t from, to;
};

/* The file ends with the instruction pointer; or it is the word "running". */
static bool sleeps_in(uint32_t tid, void *argument) {
    const struct code *code = argument;
    char text[256];
    long n = read_file(tid, "/syscall", text, sizeof text);
    if (n <= 0 || text[0] == 'r')
        return n != -ENOENT && n != -ESRCH && n <= 0; /* the thread has ended; or the kernel does not say */
    const char *last = strrchr(text, ' ');
    return last == NULL || strncmp(last, " 0x", 3) != 0 || hexadecimal(last + 3) - code->from < code->to - code->from;
}

struct entry { /* as the kernel writes it */
    uint64_t inode;
    int64_t offset;
    uint16_t n_bytes;
    uint8_t type;
    char name[];
};

static bool any_of(long directory, bool (*is)(uint32_t tid, void *argument), void *argument) {
    const uint32_t self = (uint32_t)sbt_syscall0(SYS_gettid);
    char room[1024] __attribute__((aligned(8)));
    long n;
    while ((n = sbt_syscall3(SYS_getdents64, directory, room, sizeof room)) > 0)
        for (long at = 0; at < n; at += ((const struct entry *)(room + at))->n_bytes) {
            uint32_t tid = 0;
            for (const char *digit = ((const struct entry *)(room + at))->name; *digit >= '0' && *digit <= '9'; digit++)
                tid = tid * 10 + (uint32_t)(*digit - '0');
            if (tid != 0 && tid != self && is(tid, argument))
                return true;
        }
    return n < 0;
}

bool sbt_proc_any_thread(bool (*is)(uint32_t tid, void *argument), void *argument) {
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)"/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return true;
    bool any = any_of(fd, is, argument);
    sbt_syscall3(SYS_close, fd, 0, 0);
    return any;
}

bool sbt_proc_any_sleeps_in(uintptr_t from, uintptr_t to) {
    struct code code = {from, to};
    return sbt_proc_any_thread(sleeps_in, &code);
}

bool sbt_proc_has_timers(void) {
    char text[2];
    return read_path("/proc/self/timers", text, sizeof text) != 0;
}

static bool is_there(uint32_t tid, void *unused) {
    (void)tid;
    (void)unused;
    return true;
}

void sbt_proc_await_alone(void) {
    for (int i = 0; i < LOOKS_MOST && sbt_proc_any_thread(is_there, NULL); i++)
        sbt_pause_ns(LOOK_NS);
}
