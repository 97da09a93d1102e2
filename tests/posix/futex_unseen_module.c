/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A module that makes futex calls as some runtimes do: by a system-call instruction, and by syscall() too. */
#include "futex_unseen.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
long unseen_futex(uint32_t *word, int op, uint32_t val, unsigned long val2, uint32_t *word2, uint32_t val3) {
    long result;
    register unsigned long r10 __asm__("r10") = val2;
    register uint32_t *r8 __asm__("r8") = word2;
    register uint32_t r9 __asm__("r9") = val3;
    __asm__ volatile("movl %1, %%eax\n\tsyscall"
                     : "=&a"(result)
                     : "i"(SYS_futex), "D"(word), "S"(op), "d"(val), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#else
long unseen_futex(uint32_t *word, int op, uint32_t val, unsigned long val2, uint32_t *word2, uint32_t val3) {
    register uint32_t *x0 __asm__("x0") = word;
    register long x1 __asm__("x1") = op;
    register unsigned long x2 __asm__("x2") = val;
    register unsigned long x3 __asm__("x3") = val2;
    register uint32_t *x4 __asm__("x4") = word2;
    register unsigned long x5 __asm__("x5") = val3;
    __asm__ volatile("mov x8, %1\n\tsvc 0"
                     : "+r"(x0)
                     : "i"(SYS_futex), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "x8", "memory", "cc");
    return (long)x0;
}
#endif

long unseen_futex_by_syscall(uint32_t *word, int op, uint32_t val, unsigned long val2, uint32_t *word2, uint32_t val3) {
    long r = syscall(SYS_futex, word, op, val, val2, word2, val3);
    return r == -1 ? -errno : r;
}
