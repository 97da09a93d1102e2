/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What differs between the two architectures: raw system calls and the hint to the processor in an active wait.
 *
 * The calls are raw because the synchronization paths must neither touch errno nor pass glibc's cancellation points.
 * The result is the kernel's: >= 0, or a negated errno value.
 */
#ifndef SBT_OS_ARCH_H
#define SBT_OS_ARCH_H

#if defined(__x86_64__)

static inline long sbt_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline void sbt_cpu_relax(void) {
    __asm__ volatile("pause" ::: "memory");
}

#define SBT_PAGE_MAX 4096 /* bytes; the largest page size of the two architectures */

#elif defined(__aarch64__)

static inline long sbt_syscall6(long nr, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
    return x0;
}

static inline void sbt_cpu_relax(void) {
    __asm__ volatile("isb" ::: "memory"); /* a plain yield hint does nothing on most cores */
}

#define SBT_PAGE_MAX 65536

#else
#error "Subutai supports x86-64 and aarch64"
#endif

#define sbt_syscall0(nr) sbt_syscall6((nr), 0, 0, 0, 0, 0, 0)
#define sbt_syscall3(nr, a, b, c) sbt_syscall6((nr), (long)(a), (long)(b), (long)(c), 0, 0, 0)

#define SBT_LIKELY(x) __builtin_expect(!!(x), 1)
#define SBT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SBT_NOINLINE __attribute__((noinline))
/* Of a variable that each wait reads: without it the compiler reads the address first. Definitions are hidden anyway.
 */
#define SBT_HIDDEN __attribute__((visibility("hidden")))

#endif
