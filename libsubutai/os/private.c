/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/private.h"

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/arch.h"
#include "os/objects.h"

/* The kernel keeps as much free below the main thread's stack, and more. */
#define STACK_BYTES ((uintptr_t)8 << 20)
#define N_SEGMENTS 4

struct range {
    uintptr_t from, to;
};

/*
 * Written by the first threads that ask, each the same values, before `learnt`. The end of the heap moves; relaxed: an
 * older end is asked about again.
 */
static struct range variables[N_SEGMENTS], stack, heap;
static uint32_t learnt;

static bool is_in(const struct range *r, uintptr_t at) {
    return at - r->from < r->to - r->from;
}

/* The first object is the program. Its variables are never unloaded. */
static int note_variables(struct dl_phdr_info *info, size_t size, void *unused) {
    size_t n = 0;
    (void)size, (void)unused;
    for (size_t i = 0; i < info->dlpi_phnum && n < N_SEGMENTS; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_W) != 0)
            variables[n++] = (struct range){from, from + p->p_memsz};
    }
    return 1;
}

static uintptr_t number(const char **at) {
    uintptr_t value = 0;
    for (;; (*at)++) {
        if (**at >= '0' && **at <= '9')
            value = value << 4 | (uintptr_t)(**at - '0');
        else if (**at >= 'a' && **at <= 'f')
            value = value << 4 | (uintptr_t)(**at - 'a' + 10);
        else
            return value;
    }
}

static bool ends_with(const char *line, const char *end) {
    size_t n = strlen(line), m = strlen(end);
    return n >= m && strcmp(line + n - m, end) == 0;
}

/* "from-to permissions ... name" */
static void note_line(const char *line) {
    struct range r;
    const char *at = line;
    r.from = number(&at);
    at += *at == '-';
    r.to = number(&at);
    if (ends_with(line, " [heap]"))
        heap = r;
    else if (ends_with(line, " [stack]"))
        stack = (struct range){r.to - STACK_BYTES, r.to};
}

static long open_own(const char *file) {
    return sbt_syscall6(SYS_openat, AT_FDCWD, (long)file, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

static void read_maps(void) {
    char text[1024], line[256];
    size_t length = 0;
    long fd = open_own("/proc/self/maps"), n;
    if (fd < 0)
        return;
    while ((n = sbt_syscall3(SYS_read, fd, text, sizeof text)) > 0)
        for (long i = 0; i < n; i++) {
            bool ends = text[i] == '\n';
            line[length] = ends ? '\0' : text[i];
            if (ends)
                note_line(line);
            length = ends ? 0 : length < sizeof line - 1 ? length + 1 : length;
        }
    sbt_syscall3(SYS_close, fd, 0, 0);
}

static uintptr_t end_of_heap(void) {
    return (uintptr_t)sbt_syscall3(SYS_brk, 0, 0, 0);
}

static void learn(void) {
    sbt_objects_iterate(note_variables, NULL);
    read_maps();
    if (heap.to == 0)
        heap.from = heap.to = end_of_heap();
    __atomic_store_n(&learnt, 1, __ATOMIC_RELEASE);
}

/* A heap does not reach that far beyond what was known: spare the question. */
#define GROWTH_MOST ((uintptr_t)1 << 34)

static bool is_in_heap(uintptr_t at) {
    uintptr_t to = __atomic_load_n(&heap.to, __ATOMIC_RELAXED);
    if (at < heap.from || at - heap.from > GROWTH_MOST)
        return false;
    if (at < to)
        return true;
    to = end_of_heap();
    __atomic_store_n(&heap.to, to, __ATOMIC_RELAXED);
    return at < to;
}

bool sbt_private_for_good(const void *word) {
    uintptr_t at = (uintptr_t)word;
    if (SBT_UNLIKELY(__atomic_load_n(&learnt, __ATOMIC_ACQUIRE) == 0))
        learn();
    for (size_t i = 0; i < N_SEGMENTS; i++)
        if (is_in(&variables[i], at))
            return true;
    return is_in(&stack, at) || is_in_heap(at);
}

/* A page's entry in /proc/self/pagemap: it is in memory or swapped out, and belongs to no file or shared memory. */
#define PRESENT_OR_SWAPPED ((uint64_t)3 << 62)
#define FILE_OR_SHARED ((uint64_t)1 << 61)

static bool is_anonymous(uintptr_t at) {
    uint64_t entry = 0;
    long fd = open_own("/proc/self/pagemap");
    if (fd < 0)
        return false;
    long n = sbt_syscall6(SYS_pread64, fd, (long)&entry, sizeof entry, (long)(at / SBT_PAGE_MAX * sizeof entry), 0, 0);
    sbt_syscall3(SYS_close, fd, 0, 0);
    return n == sizeof entry && (entry & PRESENT_OR_SWAPPED) != 0 && (entry & FILE_OR_SHARED) == 0;
}

bool sbt_private_now(const void *word) {
    return sbt_private_for_good(word) || is_anonymous((uintptr_t)word);
}
