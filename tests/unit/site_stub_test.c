/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stubs, in libraries made here: that a stub keeps every register, the flags and the red zone, and that a library which
 * cannot be changed stays as it is. What the stubs call is the library's own code, down to abi_futex: that is here, and
 * destroys what a function may.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/kernel_thread/site.h"
#include "core/sites.h"
#include "lib/suite.h"
#include "os/site_stub.h"
#include "site_library.h"

/* ---- stubs ---- */
struct registers {
    uint64_t general[14]; /* rax rdi rsi rdx r10 r8 r9 rbx rbp r12 r13 r14 r15; in "out" also the flags */
    uint64_t red[16];
    uint64_t vector[32][8]; /* up to ZMM31 */
    uint64_t mask[8];
    uint64_t level; /* of "in": 1: YMM too, 2: ZMM and masks */
};

static struct sbt_sites_by by;
static struct {
    int n;
    uint64_t arguments[6], stack;
    long result;
} futex;

long abi_futex(uint32_t *word, int op, uint32_t val, uintptr_t timeout_or_val2, uint32_t *word2, uint32_t val3);
void abi_futex_adopt(uintptr_t from, uintptr_t to);
void abi_futex_forget(uintptr_t from, uintptr_t to);

/* What the library's code would have adopted. */
void abi_futex_adopt(uintptr_t from, uintptr_t to) {
    CHECK(from < to);
}

void abi_futex_forget(uintptr_t from, uintptr_t to) {
    CHECK(from < to);
}

void sbt_sites_serve(const struct sbt_sites_by *how) {
    by = *how;
}

/* From the code below. */
extern const char blob_begin[], blob_end[], blob_wide_begin[], blob_wide_end[];
extern void destroy(uint64_t level);

static uint64_t level_here(void) {
    return __builtin_cpu_supports("avx512bw") ? 2 : __builtin_cpu_supports("avx") ? 1 : 0;
}

long abi_futex(uint32_t *word, int op, uint32_t val, uintptr_t timeout_or_val2, uint32_t *word2, uint32_t val3) {
    const uint64_t arguments[] = {(uintptr_t)word, (uint32_t)op, val, timeout_or_val2, (uintptr_t)word2, val3};
    futex.n++;
    memcpy(futex.arguments, arguments, sizeof arguments);
    futex.stack = (uintptr_t)__builtin_frame_address(0);
    destroy(level_here());
    return futex.result;
}

__asm__(".text\n"
        ".macro load_general\n"
        "mov 0(%rdi), %rax; mov 16(%rdi), %rsi; mov 24(%rdi), %rdx; mov 32(%rdi), %r10; mov 40(%rdi), %r8\n"
        "mov 48(%rdi), %r9; mov 56(%rdi), %rbx; mov 64(%rdi), %rbp; mov 72(%rdi), %r12; mov 80(%rdi), %r13\n"
        "mov 88(%rdi), %r14; mov 96(%rdi), %r15; mov 8(%rdi), %rdi\n"
        ".endm\n"
        ".macro begin_blob\n" /* void (const struct registers *in, struct registers *out) */
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rsi\n"
        ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "mov 112 + 8 * \\i(%rdi), %rcx; mov %rcx, -128 + 8 * \\i(%rsp)\n"
        "movups 240 + 64 * \\i(%rdi), %xmm\\i\n"
        ".endr\n"
        ".endm\n"
        ".macro end_blob\n" /* only mov until the flags are safe */
        "mov (%rsp), %rcx\n"
        "mov %rax, 0(%rcx); mov %rdi, 8(%rcx); mov %rsi, 16(%rcx); mov %rdx, 24(%rcx); mov %r10, 32(%rcx)\n"
        "mov %r8, 40(%rcx); mov %r9, 48(%rcx); mov %rbx, 56(%rcx); mov %rbp, 64(%rcx); mov %r12, 72(%rcx)\n"
        "mov %r13, 80(%rcx); mov %r14, 88(%rcx); mov %r15, 96(%rcx)\n"
        ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "mov -128 + 8 * \\i(%rsp), %r11; mov %r11, 112 + 8 * \\i(%rcx)\n"
        "movups %xmm\\i, 240 + 64 * \\i(%rcx)\n"
        ".endr\n"
        "pushfq; popq 104(%rcx)\n"
        ".endm\n"
        ".macro leave_blob\n"
        "pop %rsi; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"
        ".endm\n"
        "blob_begin:\n"
        "begin_blob\n"
        "load_general\n"
        "syscall; cmp $-38, %rax\n"
        "end_blob\n"
        "leave_blob\n"
        "blob_end:\n"
        "blob_wide_begin:\n"
        "begin_blob\n"
        ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "vmovups 240 + 64 * \\i(%rdi), %ymm\\i\n"
        ".endr\n"
        "cmpq $2, 2352(%rdi); jne 1f\n"
        ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, "
        "28, 29, 30, 31\n"
        "vmovups 240 + 64 * \\i(%rdi), %zmm\\i\n"
        ".endr\n"
        ".irp i, 1, 2, 3, 4, 5, 6, 7\n"
        "kmovq 2288 + 8 * \\i(%rdi), %k\\i\n"
        ".endr\n"
        "1: load_general\n"
        "syscall; cmp $-38, %rax\n"
        "end_blob\n"
        ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "vmovups %ymm\\i, 240 + 64 * \\i(%rcx)\n"
        ".endr\n"
        "cmpq $2, 2352(%rcx); jne 1f\n"
        ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, "
        "28, 29, 30, 31\n"
        "vmovups %zmm\\i, 240 + 64 * \\i(%rcx)\n"
        ".endr\n"
        ".irp i, 1, 2, 3, 4, 5, 6, 7\n"
        "kmovq %k\\i, 2288 + 8 * \\i(%rcx)\n"
        ".endr\n"
        "1: vzeroupper\n"
        "leave_blob\n"
        "blob_wide_end:\n"
        "destroy:\n" /* void (uint64_t level): all that a called function may */
        ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "pcmpeqd %xmm\\i, %xmm\\i\n"
        ".endr\n"
        "cmp $1, %rdi; jb 1f\n"
        ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
        "vxorps %ymm\\i, %ymm\\i, %ymm\\i\n"
        ".endr\n"
        "je 1f\n"
        ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, "
        "28, 29, 30, 31\n"
        "vpternlogd $0xff, %zmm\\i, %zmm\\i, %zmm\\i\n"
        ".endr\n"
        ".irp i, 1, 2, 3, 4, 5, 6, 7\n"
        "kxnorq %k\\i, %k\\i, %k\\i\n"
        ".endr\n"
        "1: mov $-1, %rdi; mov $-1, %rsi; mov $-1, %rdx; mov $-1, %rcx; mov $-1, %r8; mov $-1, %r9; mov $-1, %r10\n"
        "mov $-1, %r11; mov $-1, %rax\n"
        "ret\n");
_Static_assert(offsetof(struct registers, red) == 112 && offsetof(struct registers, vector) == 240 &&
                   offsetof(struct registers, mask) == 2288 && offsetof(struct registers, level) == 2352,
               "as the code has it");

typedef void blob(const struct registers *in, struct registers *out);

/* A served library with one function, which is at `offset` of its code. */
static blob *served(const char *begin, const char *end, size_t offset, struct library *l, struct sbt_sites *sites,
                    const void **stubs) {
    *l = new_library();
    l->n_code = offset;
    const size_t at = add(l, begin, (size_t)(end - begin));
    CHECK_INT(mprotect(l->code, CODE_PAGES * PAGE, PROT_READ | PROT_EXEC), 0);
    ck_assert_ptr_null(find(l, sites));
    CHECK_INT(sites->n, 1);
    abi_sites_serve();
    const void *entry = sites->is_wide ? by.wide : by.narrow;
    ck_assert_ptr_nonnull(entry);
    ck_assert_ptr_null(sbt_stubs_put(sites, entry, stubs));
    CHECK(sbt_stubs_are_there(sites, *stubs));
    blob *function;
    *(void **)(void *)&function = l->code + at;
    return function;
}

static struct registers some(void) {
    struct registers in;
    uint64_t next = 88172645463325252u; /* Marsaglia's xorshift */
    for (size_t i = 0; i < sizeof in / sizeof next; i++) {
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        ((uint64_t *)&in)[i] = next;
    }
    in.general[0] = SYS_futex;
    in.level = level_here();
    return in;
}

static void check_kept(blob *function, size_t n_vector, size_t n_vectors, size_t n_masks, long result) {
    struct registers in = some(), out;
    memset(&out, 0, sizeof out);
    out.level = in.level;
    futex.n = 0;
    futex.result = result;
    function(&in, &out);
    CHECK_INT(futex.n, 1);
    CHECK_INT(futex.arguments[0], in.general[1]);
    CHECK_INT(futex.arguments[1], (uint32_t)in.general[2]);
    CHECK_INT(futex.arguments[2], (uint32_t)in.general[3]);
    CHECK_INT(futex.arguments[3], in.general[4]);
    CHECK_INT(futex.arguments[4], in.general[5]);
    CHECK_INT(futex.arguments[5], (uint32_t)in.general[6]);
    CHECK_INT(futex.stack % 16, 0); /* as the call convention has it */
    CHECK_INT(out.general[0], result);
    for (size_t i = 1; i < 13; i++)
        CHECK_INT(out.general[i], in.general[i]);
    CHECK_INT(memcmp(out.red, in.red, sizeof in.red), 0);
    for (size_t i = 0; i < n_vectors; i++)
        CHECK_INT(memcmp(out.vector[i], in.vector[i], n_vector), 0);
    for (size_t i = 1; i <= n_masks; i++)
        CHECK_INT(out.mask[i], in.mask[i]);
    /* carry, zero, sign: of result - -38 */
    CHECK_INT(out.general[13] & 0xc1,
              ((uint64_t)result < (uint64_t)-38) | (result == -38) << 6 | (uint64_t)(result + 38 < 0) << 7);
}

static const long results[] = {0, 1, -EAGAIN, -ENOSYS, -ETIMEDOUT, 0x7fffffff};

TEST_EACH(stub__keeps_registers_flags_and_red_zone, sizeof results / sizeof *results) {
    struct library l;
    struct sbt_sites sites;
    const void *stubs;
    blob *f = served(blob_begin, blob_end, 0, &l, &sites, &stubs);
    CHECK(!sites.is_wide);
    check_kept(f, 16, 16, 0, results[number]);
    check_kept(f, 16, 16, 0, results[number]);
}

TEST_EACH(stub__keeps_all_vector_registers_of_wide_code, sizeof results / sizeof *results) {
    struct library l;
    struct sbt_sites sites;
    const void *stubs;
    SKIP_IF(level_here() == 0, "this processor has no AVX");
    blob *f = served(blob_wide_begin, blob_wide_end, 0, &l, &sites, &stubs);
    CHECK(sites.is_wide);
    check_kept(f, level_here() == 2 ? 64 : 32, level_here() == 2 ? 32 : 16, level_here() == 2 ? 7 : 0, results[number]);
}

/* In each place around the border of two pages. */
TEST_EACH(stub__site_across_two_pages, 2 * SBT_SITE_BYTES) {
    struct library l = new_library();
    struct sbt_sites sites;
    const void *stubs;
    add(&l, blob_begin, (size_t)(blob_end - blob_begin));
    ck_assert_ptr_null(find(&l, &sites));
    const size_t before = sites.at[0] - (uintptr_t)l.code;
    blob *f = served(blob_begin, blob_end, PAGE - SBT_SITE_BYTES - before + (size_t)number, &l, &sites, &stubs);
    CHECK_INT((sites.at[0] + SBT_SITE_BYTES) % PAGE, number);
    check_kept(f, 16, 16, 0, 0);
}

TEST(stub__makes_other_system_calls) {
    struct library l;
    struct sbt_sites sites;
    const void *stubs;
    struct registers in = some(), out;
    in.general[0] = SYS_getpid;
    blob *f = served(blob_begin, blob_end, 0, &l, &sites, &stubs);
    f(&in, &out);
    CHECK_INT(out.general[0], getpid());
    CHECK_INT(futex.n, 0);
    for (size_t i = 1; i < 13; i++)
        CHECK_INT(out.general[i], in.general[i]);
    CHECK_INT(memcmp(out.red, in.red, sizeof in.red), 0);
}

static size_t n_mappings(void) {
    size_t n = 0;
    int c;
    FILE *maps = fopen("/proc/self/maps", "r");
    while ((c = fgetc(maps)) != EOF)
        n += c == '\n';
    fclose(maps);
    return n;
}

TEST(stub__library_in_the_place_of_another_is_not_taken_for_served) {
    struct library l;
    struct sbt_sites sites;
    const void *stubs;
    served(blob_begin, blob_end, 0, &l, &sites, &stubs);
    CHECK_INT(mprotect(l.code, CODE_PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
    CHECK_INT(mprotect(l.code, CODE_PAGES * PAGE, PROT_NONE), 0);
    CHECK_INT(sbt_stubs_look(&sites, stubs), SBT_STUBS_UNKNOWN);
    CHECK_INT(mprotect(l.code, CODE_PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
    CHECK_INT(sbt_stubs_look(&sites, stubs), SBT_STUBS_THERE);
    memcpy((void *)sites.at[0], SITE, SBT_SITE_BYTES);
    CHECK_INT(sbt_stubs_look(&sites, stubs), SBT_STUBS_GONE);
    munmap(l.memory, (1 + CODE_PAGES) * PAGE);
    CHECK(!sbt_stubs_are_there(&sites, stubs));
    const size_t before = n_mappings();
    sbt_stubs_remove(stubs);
    CHECK_INT(n_mappings(), before - 1);
}

static void filter(const struct sock_filter *program, size_t n) {
    const struct sock_fprog all = {(unsigned short)n, (struct sock_filter *)(uintptr_t)program};
    CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_INT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all), 0);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))

/* Any memory that is writable and executable at once would end the test. */
TEST(stub__memory_is_never_writable_and_executable) {
    static const struct sock_filter both[] = {
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_mmap, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_mprotect, 0, 3),
        LOAD(args[2]),
        BPF_STMT(BPF_ALU | BPF_AND, PROT_WRITE | PROT_EXEC),
        BPF_JUMP(BPF_JMP | BPF_JEQ, PROT_WRITE | PROT_EXEC, 1, 0),
        BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET, SECCOMP_RET_KILL_PROCESS),
    };
    struct library l;
    struct sbt_sites sites;
    const void *stubs;
    filter(both, sizeof both / sizeof *both);
    check_kept(served(blob_begin, blob_end, 0, &l, &sites, &stubs), 16, 16, 0, 0);
    char line[512];
    bool seen = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) {
        CHECK(strstr(line, "rwx") == NULL);
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx r-x", &from, &to) == 2 && sites.at[0] >= from && sites.at[0] < to)
            seen = true;
    }
    CHECK(seen);
    fclose(maps);
}

/* mprotect, mmap and mremap in turn. */
TEST_EACH(stub__where_the_kernel_refuses_the_library_stays_as_it_is, 3) {
    static const uint32_t calls[] = {SYS_mprotect, SYS_mmap, SYS_mremap};
    const struct sock_filter refuse[] = {
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ, calls[number], 0, 1),
        BPF_STMT(BPF_RET, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW),
    };
    struct library l = new_library();
    struct sbt_sites sites;
    const void *stubs = NULL;
    uint8_t before[CODE_PAGES * PAGE];
    ADD(&l, SITE RET);
    CHECK_INT(mprotect(l.code, CODE_PAGES * PAGE, PROT_READ | PROT_EXEC), 0);
    memcpy(before, l.code, sizeof before);
    n_mappings(); /* has its buffer */
    const size_t n = n_mappings();
    ck_assert_ptr_null(find(&l, &sites));
    abi_sites_serve();
    filter(refuse, sizeof refuse / sizeof *refuse);
    ck_assert_ptr_nonnull(sbt_stubs_put(&sites, by.narrow, &stubs));
    ck_assert_ptr_null(stubs);
    CHECK_INT(memcmp(before, l.code, sizeof before), 0);
    CHECK_INT(n_mappings(), n);
}

/* ---- a thread inside ---- */
static uint32_t word;

static void *sleep_inside(void *function) {
    struct registers in = some(), out;
    in.general[1] = (uintptr_t)&word;
    in.general[2] = FUTEX_WAIT_PRIVATE;
    in.general[3] = 0;
    in.general[4] = 0;
    blob *f;
    *(void **)(void *)&f = function;
    f(&in, &out);
    CHECK_INT(out.general[0], 0);
    return NULL;
}

TEST(stub__thread_asleep_in_a_site_keeps_the_library_as_it_is) {
    struct library l = new_library();
    struct sbt_sites sites;
    const void *stubs = NULL;
    pthread_t thread;
    add(&l, blob_begin, (size_t)(blob_end - blob_begin));
    CHECK_INT(mprotect(l.code, CODE_PAGES * PAGE, PROT_READ | PROT_EXEC), 0);
    ck_assert_ptr_null(find(&l, &sites));
    abi_sites_serve();
    OK(pthread_create(&thread, NULL, sleep_inside, l.code));
    while (syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1, &word, 0) == 0) /* moves it: it is asleep */
        sched_yield();
    const char *why = sbt_stubs_put(&sites, by.narrow, &stubs);
    ck_assert_ptr_nonnull(why);
    ck_assert_ptr_nonnull(strstr(why, "called before"));
    CHECK_INT(memcmp((void *)sites.at[0], SITE, SBT_SITE_BYTES), 0);
    while (syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1) == 0)
        sched_yield();
    OK(pthread_join(thread, NULL));
    ck_assert_ptr_null(sbt_stubs_put(&sites, by.narrow, &stubs));
}
