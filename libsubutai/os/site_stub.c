/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stubs; see site_stub.h. Only x86-64 has sites. */
#include "os/site_stub.h"

#if defined(__x86_64__)

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "os/arch.h"
#include "os/mapped.h"
#include "os/memory.h"
#include "os/proc.h"

#define PAGE ((uintptr_t)4096)
#define NEAR ((uintptr_t)0x7fff0000) /* how far a jump may go, less than some pages */
#define STEP ((uintptr_t)16 << 20)   /* between two places that are tried */
/* Ends of a sentence "LIBRARY ...", which a user may read. */
#define NOT_REPLACED "waits by system calls of its own, and they cannot be replaced: "
#define NO_MEMORY NOT_REPLACED "there is no memory beside it"
#define NOT_EXECUTABLE NOT_REPLACED "the kernel does not let memory be made executable"

struct __attribute__((packed)) stub {
    uint8_t below_red_zone[5]; /* lea -128(%rsp), %rsp */
    uint8_t call[2];           /* call *entry(%rip) */
    int32_t entry;
    uint8_t above_red_zone[8]; /* lea 128(%rsp), %rsp */
    uint8_t compare[4];        /* cmp $-38, %rax */
    uint8_t jump;              /* jmp behind the site */
    int32_t behind_site;
    uint8_t unused[4]; /* int3 */
    uintptr_t site;    /* behind its system call */
};
_Static_assert(offsetof(struct stub, site) - offsetof(struct stub, above_red_zone) == SBT_STUB_SITE, "as documented");

struct stubs {
    const void *entry;
    uint64_t unused;
    struct stub of[SBT_SITES_MAX];
};
_Static_assert(sizeof(struct stubs) <= 4096, "one page");

static const struct stub pattern = {.below_red_zone = {0x48, 0x8d, 0x64, 0x24, 0x80},
                                    .call = {0xff, 0x15},
                                    .above_red_zone = {0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0},
                                    .compare = {0x48, 0x83, 0xf8, 0xda},
                                    .jump = 0xe9,
                                    .unused = {0xcc, 0xcc, 0xcc, 0xcc}};

struct __attribute__((packed)) jump {
    uint8_t jump; /* jmp stub */
    int32_t stub;
    uint8_t nop;
};
_Static_assert(sizeof(struct jump) == SBT_SITE_BYTES, "a jump in a site");

static bool failed(long result) {
    return result < 0 && result > -4096;
}

static void unmap(const void *memory, size_t bytes) {
    sbt_syscall3(SYS_munmap, memory, bytes, 0);
}

/* From a to b, where the instruction before b ends. */
static int32_t distance(uintptr_t from, uintptr_t to) {
    return (int32_t)(intptr_t)(to - from);
}

static bool is_near(uintptr_t page, const struct sbt_sites *s) {
    const uintptr_t first = s->at[0], last = s->at[s->n - 1];
    return page < first ? last - page < NEAR : page - first < NEAR;
}

static void *map_at(uintptr_t at, const struct sbt_sites *s, int fixed) {
    long p = sbt_syscall6(SYS_mmap, (long)at, (long)PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed,
                          -1, 0);
    if (failed(p))
        return NULL;
    if (is_near((uintptr_t)p, s))
        return (void *)p;
    unmap((void *)p, PAGE);
    return NULL;
}

/* A page from which a jump reaches each site, and which each site reaches. */
static struct stubs *map_near(const struct sbt_sites *s) {
    const uintptr_t middle = s->at[0] & -PAGE;
    void *p = map_at(0, s, 0); /* beside the libraries that were mapped last */
    for (uintptr_t far = STEP; p == NULL && far < NEAR - STEP; far += STEP) {
        p = map_at(middle + far, s, MAP_FIXED_NOREPLACE);
        if (p == NULL && middle > far)
            p = map_at(middle - far, s, MAP_FIXED_NOREPLACE);
    }
    return p;
}

static void write_stubs(struct stubs *stubs, const struct sbt_sites *s, const void *entry) {
    stubs->entry = entry;
    for (uint32_t i = 0; i < s->n; i++) {
        struct stub *stub = &stubs->of[i];
        *stub = pattern;
        stub->entry = distance((uintptr_t)stub->above_red_zone, (uintptr_t)&stubs->entry);
        stub->behind_site = distance((uintptr_t)stub->unused, s->at[i] + SBT_SITE_BYTES);
        stub->site = s->at[i] + 2;
    }
}

static struct jump jump_of(const struct sbt_sites *s, const struct stubs *stubs, uint32_t i) {
    return (struct jump){0xe9, distance(s->at[i] + offsetof(struct jump, nop), (uintptr_t)&stubs->of[i]), 0x90};
}

static bool make_executable(const void *memory, size_t bytes) {
    return sbt_syscall3(SYS_mprotect, memory, bytes, PROT_READ | PROT_EXEC) == 0;
}

/* Put a copy of the sites' pages, with the jumps, in their place. */
static const char *replace(const struct sbt_sites *s, const struct stubs *stubs) {
    const uintptr_t first = s->at[0] & -PAGE, end = (s->at[s->n - 1] + SBT_SITE_BYTES + PAGE - 1) & -PAGE;
    const size_t bytes = end - first;
    char *copy = sbt_memory_map(bytes);
    if (copy == NULL)
        return NO_MEMORY;
    memcpy(copy, (const void *)first, bytes);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct jump jump = jump_of(s, stubs, i);
        memcpy(copy + (s->at[i] - first), &jump, sizeof jump);
    }
    const char *why = !make_executable(copy, bytes)        ? NOT_EXECUTABLE
                      : sbt_proc_any_sleeps_in(first, end) ? NOT_REPLACED "it has been called before Subutai saw it"
                      : failed(sbt_syscall6(SYS_mremap, (long)copy, (long)bytes, (long)bytes,
                                            MREMAP_MAYMOVE | MREMAP_FIXED, (long)first, 0))
                          ? NOT_REPLACED "the kernel keeps its memory as it is"
                          : NULL;
    if (why != NULL)
        unmap(copy, bytes);
    return why;
}

const char *sbt_stubs_put(const struct sbt_sites *sites, const void *entry, const void **stubs) {
    struct stubs *new = map_near(sites);
    if (new == NULL)
        return NO_MEMORY;
    write_stubs(new, sites, entry);
    const char *why = make_executable(new, PAGE) ? replace(sites, new) : NOT_EXECUTABLE;
    if (why != NULL)
        unmap(new, PAGE);
    else
        *stubs = new;
    return why;
}

enum sbt_stubs_state sbt_stubs_look(const struct sbt_sites *sites, const void *stubs) {
    uint32_t n_there = 0, n_read = 0;
    for (uint32_t i = 0; i < sites->n; i++) {
        const struct jump wanted = jump_of(sites, stubs, i);
        if (!sbt_mapped_now((const void *)(sites->at[i] - 2), sizeof wanted + 2))
            continue;
        n_read++;
        n_there += memcmp((const void *)sites->at[i], &wanted, sizeof wanted) == 0;
    }
    return n_there == sites->n                  ? SBT_STUBS_THERE
           : n_read == sites->n && n_there == 0 ? SBT_STUBS_GONE
                                                : SBT_STUBS_UNKNOWN;
}

void sbt_stubs_remove(const void *stubs) {
    unmap(stubs, PAGE);
}

#else

const char *sbt_stubs_put(const struct sbt_sites *sites, const void *entry, const void **stubs) {
    (void)sites;
    (void)entry;
    (void)stubs;
    return "has sites of a kind that is not known here";
}

enum sbt_stubs_state sbt_stubs_look(const struct sbt_sites *sites, const void *stubs) {
    (void)stubs;
    return sites->n == 0 ? SBT_STUBS_THERE : SBT_STUBS_GONE;
}

void sbt_stubs_remove(const void *stubs) {
    (void)stubs;
}

#endif
