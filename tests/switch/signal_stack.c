/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Alternate signal stacks, in a program that waits by switching: a thread with one survives the overflow of its own
 * stack wherever it runs, and goes on switching. One scene per run; a hang is ended by the test's time limit.
 */
#include "scene.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ROUNDS 30
#define STACK_BYTES 65536
#define PATTERN_BYTES 16384

static atomic_int n_moved, n_overflows_away;
static _Thread_local sigjmp_buf back;
static _Thread_local stack_t own;
static _Thread_local uintptr_t lowest, highest; /* of the thread's own stack */
static _Thread_local volatile int n_handled;

static bool is_on_own_stack(uintptr_t at) {
    return at >= lowest && at < highest;
}

static bool is_away(void) {
    return proc_kernel_thread() != gettid();
}

static void learn_stack(void) {
    pthread_attr_t attr;
    void *address;
    size_t bytes;
    OK(pthread_getattr_np(pthread_self(), &attr));
    OK(pthread_attr_getstack(&attr, &address, &bytes));
    OK(pthread_attr_destroy(&attr));
    lowest = (uintptr_t)address;
    highest = lowest + bytes;
}

static void get_signal_stack(void) {
    learn_stack();
    own = (stack_t){.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    CHECK(own.ss_sp != NULL);
    OK_ERRNO(sigaltstack(&own, NULL));
}

static void check_signal_stack(void) {
    stack_t now;
    OK_ERRNO(sigaltstack(NULL, &now));
    CHECK(now.ss_sp == own.ss_sp && now.ss_size == own.ss_size && now.ss_flags == 0);
}

static void give_back_signal_stack(void) {
    check_signal_stack();
    OK_ERRNO(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL));
    free(own.ss_sp);
}

/* ---- overflows ---- */
static void survive(int signal) {
    volatile char here;
    (void)signal;
    CHECK(!is_on_own_stack((uintptr_t)&here));
    n_handled++;
    siglongjmp(back, 1);
}

__attribute__((noinline)) static unsigned overflow(unsigned depth) {
    volatile char much[4096];
    much[0] = (char)depth;
    return depth == 0 ? 0 : overflow(depth + 1) + (unsigned)much[0];
}

static void overflow_and_survive(void) {
    int before = n_handled;
    bool away = is_away();
    if (sigsetjmp(back, 1) == 0) {
        overflow(1);
        FAIL("the stack has no end");
    }
    CHECK_INT(n_handled, before + 1);
    atomic_fetch_add(&n_overflows_away, away);
}

static void *overflow_often(void *number) {
    bool moved = false;
    get_signal_stack();
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        moved = moved || is_away();
        if ((i + (long)number) % 3 == 0)
            overflow_and_survive();
        meet();
    }
    atomic_fetch_add(&n_moved, moved);
    give_back_signal_stack();
    return NULL;
}

static void handle(int signal, void (*function)(int), int flags) {
    OK_ERRNO(sigaction(signal, &(struct sigaction){.sa_handler = function, .sa_flags = flags}, NULL));
}

static void one_overflowed_away(void) {
    printf("%d threads ran on another's kernel thread, %d overflows there\n", n_moved, n_overflows_away);
    CHECK(getenv("SWITCHED") == NULL || (n_moved > 0 && n_overflows_away > 0));
}

static void overflows(void) {
    handle(SIGSEGV, survive, SA_ONSTACK);
    run(N, overflow_often);
    one_overflowed_away();
}

/*
 * ---- a handler that waits on the thread's own stack, and returns elsewhere ----
 * What the kernel does to a signal stack when a handler returns must not reach another thread's.
 */
static void wait_here(int signal) {
    volatile char here;
    (void)signal;
    CHECK(is_on_own_stack((uintptr_t)&here));
    for (int i = 0; i < 5; i++)
        meet();
}

static void *return_elsewhere(void *number) {
    bool moved = false;
    get_signal_stack();
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        OK_ERRNO(raise(i % 2 == 0 ? SIGUSR1 : SIGTRAP));
        moved = moved || is_away();
        meet();
        if ((i + (long)number) % 3 == 0)
            overflow_and_survive();
    }
    atomic_fetch_add(&n_moved, moved);
    give_back_signal_stack();
    return NULL;
}

static void returns(void) {
    handle(SIGSEGV, survive, SA_ONSTACK);
    handle(SIGUSR1, wait_here, SA_RESTART);
    handle(SIGTRAP, wait_here, 0); /* as a fault's handler, which is never deferred */
    run(N, return_elsewhere);
    one_overflowed_away();
}

/* ---- a handler that waits on its signal stack: no other thread's handler comes there meanwhile ---- */
static void wait_there(int signal) {
    volatile unsigned char pattern[PATTERN_BYTES];
    unsigned char mine = (unsigned char)(gettid() % 251);
    (void)signal;
    CHECK(!is_on_own_stack((uintptr_t)pattern));
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = mine;
    for (int i = 0; i < 3; i++)
        meet();
    for (size_t i = 0; i < sizeof pattern; i++)
        if (pattern[i] != mine)
            FAIL("the signal stack of a handler that waits was used by another");
}

static void *wait_on_it(void *unused) {
    bool moved = false;
    get_signal_stack();
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 4; k++)
            meet();
        moved = moved || is_away();
        OK_ERRNO(raise(SIGUSR2));
    }
    atomic_fetch_add(&n_moved, moved);
    give_back_signal_stack();
    return unused;
}

static void waits(void) {
    handle(SIGUSR2, wait_there, SA_ONSTACK);
    run(6, wait_on_it);
    printf("%d threads ran on another's kernel thread\n", n_moved);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

/* ---- a stack larger than a carrier's, and one that is for one handler at a time, keep their threads at home ---- */
static void *stay_with_it(void *number) {
    long id = (long)number, first = gettid();
    size_t bytes = id == 0 ? (size_t)1 << 20 : STACK_BYTES;
    bool stays = id < 2, moved = false;
    for (int i = 0; i < 20; i++)
        meet();
    stack_t stack = {.ss_sp = malloc(bytes), .ss_size = bytes, .ss_flags = id == 1 ? (int)(1u << 31) : 0};
    OK_ERRNO(sigaltstack(&stack, NULL));
    for (int i = 0; i < 200; i++) {
        meet();
        CHECK(!stays || proc_kernel_thread() == first);
        moved = moved || proc_kernel_thread() != first;
    }
    atomic_fetch_add(&n_moved, moved);
    CHECK_ERRNO(sigaltstack((stack_t *)16, NULL), EFAULT);
    CHECK_ERRNO(sigaltstack(&(stack_t){.ss_sp = stack.ss_sp, .ss_size = 1}, NULL), ENOMEM);
    OK_ERRNO(sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL));
    free(stack.ss_sp);
    return NULL;
}

static void odd(void) {
    run(8, stay_with_it);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"stack-overflows", overflows},
        {"stack-returns", returns},
        {"stack-waits", waits},
        {"stack-odd", odd},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
