/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The switch of registers: what a call preserves survives on both sides, the TLS base and with it errno and
 * thread_local change hands, values arrive, and a fiber runs on another kernel thread than the one it was left on.
 */
#include "switch/regs.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/suite.h"

static struct sbt_regs here, there;
static char stack[65536] __attribute__((aligned(16)));

/* The compiler keeps these in callee-saved registers, and spills the rest, across the call. */
static uint64_t switch_among_values(struct sbt_regs *from, struct sbt_regs *to, void *value, uint64_t seed) {
    uint64_t v[12];
    double d[10];
    for (int i = 0; i < 12; i++)
        v[i] = seed * (uint64_t)(i + 3);
    for (int i = 0; i < 10; i++)
        d[i] = (double)(seed + (uint64_t)i);
    void *got;
#if defined(__x86_64__)
    register uint64_t b __asm__("rbx") = v[0];
    register uint64_t r12 __asm__("r12") = v[1];
    register uint64_t r13 __asm__("r13") = v[2];
    register uint64_t r14 __asm__("r14") = v[3];
    register uint64_t r15 __asm__("r15") = v[4];
    __asm__ volatile("" : "+r"(b), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15));
    got = sbt_regs_switch(from, to, value);
    __asm__ volatile("" : "+r"(b), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15));
    uint64_t sum = b + r12 + r13 + r14 + r15;
#else
    register uint64_t x19 __asm__("x19") = v[0];
    register uint64_t x23 __asm__("x23") = v[1];
    register uint64_t x28 __asm__("x28") = v[2];
    register double d8 __asm__("d8") = d[3];
    register double d15 __asm__("d15") = d[4];
    __asm__ volatile("" : "+r"(x19), "+r"(x23), "+r"(x28), "+w"(d8), "+w"(d15));
    got = sbt_regs_switch(from, to, value);
    __asm__ volatile("" : "+r"(x19), "+r"(x23), "+r"(x28), "+w"(d8), "+w"(d15));
    uint64_t sum = x19 + x23 + x28 + (uint64_t)d8 + (uint64_t)d15;
#endif
    for (int i = 0; i < 12; i++)
        sum += v[i];
    for (int i = 0; i < 10; i++)
        sum += (uint64_t)d[i];
    return sum + (uint64_t)(uintptr_t)got;
}

static uint64_t expected_sum(uint64_t seed, uint64_t got) {
    uint64_t sum = got;
#if defined(__x86_64__)
    sum += seed * (3 + 4 + 5 + 6 + 7);
#else
    sum += seed * (3 + 4 + 5) + (seed + 3) + (seed + 4);
#endif
    for (uint64_t i = 0; i < 12; i++)
        sum += seed * (i + 3);
    for (uint64_t i = 0; i < 10; i++)
        sum += seed + i;
    return sum;
}

static volatile int n_wrong;

static void other_side(void *value) {
    uint64_t seed = 1000, got = (uint64_t)(uintptr_t)value;
    if (got != 1)
        n_wrong++;
    for (uint64_t i = 0;; i++, seed += 7)
        /* This side is given odd numbers after the first, and gives even ones. */
        if (switch_among_values(&there, &here, (void *)(uintptr_t)(2 * i), seed) != expected_sum(seed, 2 * i + 3))
            n_wrong++;
}

TEST(registers_survive_on_both_sides) {
    SKIP_IF(sbt_regs_unusable() != NULL, sbt_regs_unusable());
    sbt_regs_make(&there, stack, sizeof stack, other_side, sbt_tls_base());
    here.tls = sbt_tls_base();
    n_wrong = 0;
    for (uint64_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(switch_among_values(&here, &there, (void *)(uintptr_t)(2 * i + 1), i + 5),
                          expected_sum(i + 5, 2 * i));
    ck_assert_int_eq(n_wrong, 0);
}

static volatile int rounding_there;
static volatile uintptr_t misaligned;

static void round_upward(void *unused) {
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    misaligned = frame % 16;
    fesetround(FE_UPWARD);
    (void)unused;
    for (;;) {
        sbt_regs_switch(&there, &here, NULL);
        rounding_there = fegetround();
    }
}

TEST(floating_point_control_is_each_ones_own) {
    SKIP_IF(sbt_regs_unusable() != NULL, sbt_regs_unusable());
    sbt_regs_make(&there, stack, sizeof stack, round_upward, sbt_tls_base());
    here.tls = sbt_tls_base();
    sbt_regs_switch(&here, &there, NULL);
    ck_assert_int_eq(fegetround(), FE_TONEAREST);
    fesetround(FE_DOWNWARD);
    sbt_regs_switch(&here, &there, NULL);
    ck_assert_int_eq(rounding_there, FE_UPWARD);
    ck_assert_int_eq(fegetround(), FE_DOWNWARD);
    fesetround(FE_TONEAREST);
    ck_assert_uint_eq(misaligned, 0);
}

static volatile int flags_there;
static volatile double huge = 1e308, one = 1, three = 3;
static volatile long double long_zero = 0, long_one = 1;

/* By both units where there are two: double and long double. */
static void raise_there(void *unused) {
    (void)unused;
    feclearexcept(FE_ALL_EXCEPT);
    huge = huge * huge; /* overflow, inexact */
    for (;;) {
        sbt_regs_switch(&there, &here, NULL);
        flags_there = fetestexcept(FE_ALL_EXCEPT);
        feclearexcept(FE_ALL_EXCEPT);
        long_one = long_one / long_zero;
    }
}

TEST(floating_point_flags_are_each_ones_own) {
    SKIP_IF(sbt_regs_unusable() != NULL, sbt_regs_unusable());
    sbt_regs_make(&there, stack, sizeof stack, raise_there, sbt_tls_base());
    here.tls = sbt_tls_base();
    feclearexcept(FE_ALL_EXCEPT);
    sbt_regs_switch(&here, &there, NULL);
    ck_assert_int_eq(fetestexcept(FE_ALL_EXCEPT), 0);
    one = one / three;
    sbt_regs_switch(&here, &there, NULL);
    ck_assert_int_eq(flags_there, FE_OVERFLOW | FE_INEXACT);
    ck_assert_int_eq(fetestexcept(FE_ALL_EXCEPT), FE_INEXACT);
    feclearexcept(FE_ALL_EXCEPT);
    sbt_regs_switch(&here, &there, NULL);
    ck_assert_int_eq(flags_there, FE_DIVBYZERO);
    ck_assert_int_eq(fetestexcept(FE_ALL_EXCEPT), 0);
}

/* ---- two kernel threads: the second goes on with what the first has left ---- */
static struct sbt_regs main_loop, first_fiber;
static _Thread_local int own = 7;
static volatile int step;
static pthread_t first_self;
static long tid_before, tid_after;
static volatile int own_after, errno_after;
static volatile bool self_follows;
static struct sbt_regs home_regs;

static void park_kernel_thread(void *unused) {
    (void)unused;
    __atomic_store_n(&step, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != 2)
        syscall(SYS_sched_yield);
    static struct sbt_regs nothing;
    sbt_regs_switch(&nothing, &first_fiber, NULL);
}

static void *wander(void *unused) {
    static char home_stack[16384] __attribute__((aligned(16)));
    (void)unused;
    own = 42;
    first_self = pthread_self();
    first_fiber.tls = sbt_tls_base();
    tid_before = syscall(SYS_gettid);
    errno = EDOM;
    sbt_regs_make(&home_regs, home_stack, sizeof home_stack, park_kernel_thread, sbt_tls_base());
    sbt_regs_switch(&first_fiber, &home_regs, NULL);
    /* On the main thread's kernel thread now. */
    errno_after = errno;
    tid_after = syscall(SYS_gettid);
    own_after = own;
    self_follows = pthread_equal(pthread_self(), first_self);
    sbt_regs_switch(&first_fiber, &main_loop, NULL);
    /* And back home, where alone it may end. */
    return &own;
}

TEST(a_fiber_runs_on_another_kernel_thread) {
    SKIP_IF(sbt_regs_unusable() != NULL, sbt_regs_unusable());
    pthread_t thread;
    void *result;
    ck_assert_int_eq(pthread_create(&thread, NULL, wander, NULL), 0);
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != 1)
        syscall(SYS_sched_yield);
    main_loop.tls = sbt_tls_base();
    errno = ERANGE;
    own = 1;
    sbt_regs_switch(&main_loop, &first_fiber, NULL);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_int_eq(own, 1);
    ck_assert_int_eq(own_after, 42);
    ck_assert_int_eq(errno_after, EDOM);
    ck_assert(self_follows);
    ck_assert_int_ne(tid_before, tid_after);
    ck_assert_int_eq(tid_after, syscall(SYS_gettid));
    __atomic_store_n(&step, 2, __ATOMIC_RELEASE);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
}
