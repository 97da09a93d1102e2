/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Delegated mutexes, as delegate.c, in unusual programs: handlers that lock, user contexts, unlocks by other threads,
 * thousands of threads, CPUs that become fewer, and two mutexes of one name.
 */
#include "delegate.h"

#include <errno.h>
#include <signal.h>
#include <ucontext.h>

#include "lib/clock.h"

/* ---- a signal handler locks the mutex, wherever its thread waits ---- */
static _Thread_local volatile sig_atomic_t may_lock;
static atomic_int n_handled;

static void lock_in_handler(int signal) {
    int error = errno;
    (void)signal;
    if (may_lock) {
        enter(&hot);
        count++;
        leave(&hot);
        atomic_fetch_add(&n_handled, 1);
    }
    errno = error;
}

/* Its own sections of `hot` are not to be interrupted by another one. */
static void *be_interrupted(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS / 4; i++) {
        may_lock = 1;
        OK(pthread_mutex_lock(&second));
        other_count++;
        if (i % 16 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&second));
        may_lock = 0;
        enter(&hot);
        leave(&hot);
        if (i % 8 == 0)
            OK(pthread_kill(threads[((long)number + i / 8) % N], SIGUSR1));
    }
    meet(); /* no thread is signalled that has ended */
    return number;
}

static void handlers(void) {
    struct sigaction action = {.sa_handler = lock_in_handler, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &action, NULL));
    run(N, be_interrupted);
    CHECK(other_count == N * (ROUNDS / 4) && count == n_handled);
}

/* ---- user contexts: a section begins on one stack and ends on another ---- */
struct contexts {
    ucontext_t outer, inner;
    bool over;
};
static _Thread_local struct contexts *contexts;

static void begin_sections(void) {
    struct contexts *c = contexts;
    while (!c->over) {
        enter(&hot);
        count++;
        if (count % 64 == 0)
            sched_yield();
        SYS(swapcontext(&c->inner, &c->outer));
    }
}

static void *go_between(void *number) {
    struct contexts c = {.over = false};
    size_t size = 256 * 1024;
    char *stack = malloc(size);
    leave_home();
    CHECK(stack != NULL);
    contexts = &c;
    SYS(getcontext(&c.inner));
    c.inner.uc_stack = (stack_t){.ss_sp = stack, .ss_size = size};
    c.inner.uc_link = &c.outer;
    makecontext(&c.inner, begin_sections, 0);
    for (int i = 0; i < ROUNDS / 2; i++) {
        SYS(swapcontext(&c.outer, &c.inner));
        leave(&hot);
        think();
    }
    c.over = true;
    SYS(swapcontext(&c.outer, &c.inner));
    free(stack);
    return number;
}

static void user_contexts(void) {
    run(N, go_between);
    CHECK(count == N * (ROUNDS / 2));
}

/* ---- one thread locks, another one unlocks: glibc lets normal mutexes be used so ---- */
static pthread_mutex_t pass[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void *pass_on(void *number) {
    leave_home();
    if ((long)number < 2)
        for (int i = 0; i < ROUNDS; i++) {
            OK(pthread_mutex_lock(&pass[(long)number]));
            other_count++;
            OK(pthread_mutex_unlock(&pass[1 - (long)number]));
        }
    count_sections(ROUNDS / 4);
    return number;
}

static void unlocked_by_others(void) {
    OK(pthread_mutex_lock(&pass[1]));
    run(N, pass_on);
    CHECK(other_count == 2 * ROUNDS && count == N * (ROUNDS / 4));
}

/* ---- far more threads than carriers have room for in a batch ---- */
enum { MANY = 2000 };

static void *be_one_of_many(void *number) {
    for (int i = 0; i < 10; i++) {
        OK(pthread_mutex_lock(&hot));
        count++;
        if (count % 64 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&hot));
        struct timespec at = time_in_us(CLOCK_MONOTONIC, 10);
        if (pthread_mutex_clocklock(&hot, CLOCK_MONOTONIC, &at) == 0) {
            other_count++;
            OK(pthread_mutex_unlock(&hot));
        }
    }
    return number;
}

static void many(void) {
    static pthread_t of_many[MANY];
    OK(pthread_mutex_lock(&hot)); /* they queue */
    for (int i = 0; i < MANY; i++)
        of_many[i] = thread_start_small(64 * 1024, be_one_of_many, NULL);
    OK(pthread_mutex_unlock(&hot));
    for (int i = 0; i < MANY; i++)
        thread_join(of_many[i]);
    CHECK(count == 10 * MANY);
}

/* ---- the CPUs become fewer, and more, while sections are handed over ---- */
static atomic_bool has_moved;
static atomic_int n_counted;

/* By the library: a thread that sleeps in the kernel on the only worker sends all others to their own kernel threads,
 * where hardly a section is handed over. */
static void wait_ms(int ms) {
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec at = time_in_ms(CLOCK_MONOTONIC, ms);
    OK(pthread_mutex_lock(&own));
    while (pthread_cond_clockwait(&never, &own, CLOCK_MONOTONIC, &at) == 0)
        ;
    OK(pthread_mutex_unlock(&own));
}

static void move(void) {
    cpu_set_t all, one;
    SYS(sched_getaffinity(getpid(), sizeof all, &all));
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET((size_t)cpu, &all))
            CPU_SET((size_t)cpu, &one);
    for (int i = 0; i < 20; i++) {
        SYS(sched_setaffinity(getpid(), sizeof one, i % 2 == 0 ? &one : &all));
        wait_ms(3);
    }
}

static void *count_or_move(void *number) {
    leave_home();
    if ((long)number == 0) {
        move();
        atomic_store(&has_moved, true);
    }
    while (!atomic_load(&has_moved)) {
        count_sections(64);
        atomic_fetch_add(&n_counted, 64);
    }
    return number;
}

static void *count_and_stay(void *number) {
    count_or_move(number);
    meet(); /* threads that are moved are there */
    return number;
}

static void moved(void) {
    run(N, count_and_stay);
    CHECK(count == n_counted);
}

/* ---- a name that two variables have means both ---- */
pthread_mutex_t *delegate_same(void);

static pthread_mutex_t same = PTHREAD_MUTEX_INITIALIZER;

static void *count_same(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS / 2; i++) {
        OK(pthread_mutex_lock(&same));
        count++;
        if (i % 64 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&same));
        OK(pthread_mutex_lock(delegate_same()));
        other_count++;
        if (i % 64 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(delegate_same()));
        think();
    }
    return number;
}

static void same_name(void) {
    run(N, count_same);
    CHECK(count == N * (ROUNDS / 2) && other_count == count);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"handlers", handlers},
        {"user-contexts", user_contexts},
        {"unlocked-by-others", unlocked_by_others},
        {"many", many},
        {"moved", moved},
        {"same-name", same_name},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
