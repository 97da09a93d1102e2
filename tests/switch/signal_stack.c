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
static stack_t owns[N]; /* of all threads */
static _Thread_local long self;
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

static void get_signal_stack(void *number) {
    learn_stack();
    self = (long)number;
    own = (stack_t){.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    CHECK(own.ss_sp != NULL);
    OK_ERRNO(sigaltstack(&own, NULL));
    owns[self] = own;
}

static bool is_on_anothers(uintptr_t at) {
    for (long i = 0; i < N; i++)
        if (i != self && at - (uintptr_t)owns[i].ss_sp < owns[i].ss_size)
            return true;
    return false;
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
    CHECK(!is_on_own_stack((uintptr_t)&here) && !is_on_anothers((uintptr_t)&here));
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
    get_signal_stack(number);
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
    get_signal_stack(number);
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        OK_ERRNO(raise(i % 2 == 0 ? SIGUSR1 : SIGTRAP));
        moved = moved || is_away();
        meet();
        if ((i + self) % 3 == 0)
            overflow_and_survive();
        if ((i + self) % 3 == 1)
            check_signal_stack();
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
    CHECK(!is_on_own_stack((uintptr_t)pattern) && !is_on_anothers((uintptr_t)pattern));
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = mine;
    for (int i = 0; i < 3; i++)
        meet();
    for (size_t i = 0; i < sizeof pattern; i++)
        if (pattern[i] != mine)
            FAIL("the signal stack of a handler that waits was used by another");
}

static void *wait_on_it(void *number) {
    bool moved = false;
    get_signal_stack(number);
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 4; k++)
            meet();
        moved = moved || is_away();
        OK_ERRNO(raise(SIGUSR2));
    }
    atomic_fetch_add(&n_moved, moved);
    give_back_signal_stack();
    return number;
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

/* ---- a thread that is brought home by a signal, in the midst of a computation, has its own there ---- */
static atomic_bool is_computing[N], go_on[N];

static void go(int signal) {
    (void)signal;
    atomic_store(&go_on[self], true);
}

static void *compute(void *number) {
    get_signal_stack(number);
    for (int i = 0; i < 20; i++)
        meet();
    atomic_fetch_add(&n_moved, is_away());
    is_computing[self] = true;
    while (!go_on[self])
        ;
    give_back_signal_stack();
    return NULL;
}

static void recalled(void) {
    for (int i = 0; i < 20; i++) {
        handle(SIGUSR1, go, SA_RESTART);
        OK(pthread_barrier_init(&barrier, NULL, 4));
        for (int k = 0; k < 4; k++) {
            is_computing[k] = go_on[k] = false;
            OK(pthread_create(&threads[k], NULL, compute, (void *)(long)k));
        }
        for (int k = 0; k < 4; k++) {
            while (!is_computing[k])
                sched_yield();
            OK(pthread_kill(threads[k], SIGUSR1));
        }
        for (int k = 0; k < 4; k++)
            thread_join(threads[k]);
    }
    printf("%d threads computed on another's kernel thread\n", n_moved);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"stack-overflows", overflows}, {"stack-returns", returns},
        {"stack-waits", waits},         {"stack-odd", odd},
        {"stack-recalled", recalled},   {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
