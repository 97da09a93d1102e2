/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions of profile-subject: which releases and signals are events, and which are counted only. */
#include "profile_subject.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "lib/checks.h"

static pid_t sleeper;

/* A thread waits for the condition beside the mutex: that makes no unlock of the mutex an event. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool over;
} pair = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

static void *wait_beside(void *unused) {
    OK(pthread_mutex_lock(&pair.mutex));
    asleep_from_here(&sleeper);
    while (!pair.over)
        OK(pthread_cond_wait(&pair.cond, &pair.mutex));
    OK(pthread_mutex_unlock(&pair.mutex));
    return unused;
}

void beside(void) {
    pthread_t thread;
    OK(pthread_create(&thread, NULL, wait_beside, NULL));
    await_asleep(&sleeper);
    for (int i = 0; i < 100; i++) {
        OK(pthread_mutex_lock(&pair.mutex));
        OK(pthread_mutex_unlock(&pair.mutex));
    }
    OK(pthread_mutex_lock(&pair.mutex));
    pair.over = true;
    OK(pthread_mutex_unlock(&pair.mutex));
    OK(pthread_cond_signal(&pair.cond));
    OK(pthread_join(thread, NULL));
    printf("mutex_lock=102 mutex_unlock=0 cond_signal:events=1 cond_wait:ended=1\n");
}

/* Two threads wait, and many signals are given before they can come back: the first two may end a wait. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond, other;
    int n_waiting, round;
} crowd = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER, .other = PTHREAD_COND_INITIALIZER};

static void *wait_twice(void *unused) {
    OK(pthread_mutex_lock(&crowd.mutex));
    for (int round = 0; round < 2; round++) {
        crowd.n_waiting++;
        while (crowd.round <= round)
            OK(pthread_cond_wait(&crowd.cond, &crowd.mutex));
    }
    OK(pthread_mutex_unlock(&crowd.mutex));
    return unused;
}

/* With the mutex held; the threads that have counted wait. */
static void await_crowd(int n) {
    OK(pthread_mutex_lock(&crowd.mutex));
    while (crowd.n_waiting < n) {
        OK(pthread_mutex_unlock(&crowd.mutex));
        SYS(usleep(1000));
        OK(pthread_mutex_lock(&crowd.mutex));
    }
}

void signals(void) {
    enum { N = 10 };
    const struct timespec past = {1, 0};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        OK(pthread_create(&threads[i], NULL, wait_twice, NULL));
    await_crowd(2);
    for (int i = 0; i < N; i++)
        OK(pthread_cond_broadcast(&crowd.cond));
    OK(pthread_cond_signal(&crowd.cond));
    crowd.round = 1;
    OK(pthread_mutex_unlock(&crowd.mutex));
    await_crowd(4);
    if (pthread_cond_timedwait(&crowd.cond, &crowd.mutex, &past) != ETIMEDOUT) /* takes no signal with it */
        exit(1);
    OK(pthread_cond_signal(&crowd.other));
    for (int i = 0; i < N; i++)
        OK(pthread_cond_signal(&crowd.cond));
    OK(pthread_cond_broadcast(&crowd.cond));
    crowd.round = 2;
    OK(pthread_mutex_unlock(&crowd.mutex));
    for (int i = 0; i < 2; i++)
        OK(pthread_join(threads[i], NULL));
    printf("cond_signal=%d cond_signal:events=2 cond_broadcast=%d cond_broadcast:events=1 cond_wait:ended=4\n", N + 2,
           N + 1);
}

/*
 * A waiter that has been woken wants the mutex: a release is an event if the mutex was held on for long, and is none if
 * it was not, or if no thread has been woken.
 */
static int n_given;

static void *wait_often(void *rounds) {
    OK(pthread_mutex_lock(&pair.mutex));
    for (int i = 0; i < *(int *)rounds; i++) {
        asleep_from_here(&sleeper);
        while (n_given <= i)
            OK(pthread_cond_wait(&pair.cond, &pair.mutex));
    }
    OK(pthread_mutex_unlock(&pair.mutex));
    return rounds;
}

void relocks(void) {
    enum { SHORT = 50, LONG = 2, ALONE = 50 };
    int rounds = SHORT + LONG;
    pthread_t thread;
    OK(pthread_create(&thread, NULL, wait_often, &rounds));
    for (int i = 0; i < SHORT + LONG; i++) {
        await_asleep(&sleeper);
        OK(pthread_mutex_lock(&pair.mutex));
        __atomic_store_n(&sleeper, 0, __ATOMIC_SEQ_CST);
        n_given++;
        OK(pthread_cond_signal(&pair.cond));
        if (i >= SHORT)
            SYS(usleep(1000));
        OK(pthread_mutex_unlock(&pair.mutex));
    }
    OK(pthread_join(thread, NULL));
    for (int i = 0; i < ALONE; i++) {
        OK(pthread_mutex_lock(&pair.mutex));
        SYS(usleep(1000));
        OK(pthread_mutex_unlock(&pair.mutex));
    }
    /* A thread that loses its core makes some short holds long. */
    printf("mutex_lock=%d mutex_unlock:least=%d mutex_unlock:most=%d\n", 1 + SHORT + LONG + ALONE, LONG,
           LONG + SHORT / 2);
}

/* ---- stacks ---- */

/* A wait that nothing ends but time: 5 ms, at one call site; less if the thread loses its core before the call. */
__attribute__((noinline)) static void nap(void) {
    struct timespec until;
    OK(pthread_mutex_lock(&pair.mutex));
    SYS(clock_gettime(CLOCK_REALTIME, &until));
    until.tv_nsec += 5000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    CHECK_RC(pthread_cond_timedwait(&pair.cond, &pair.mutex, &until), ETIMEDOUT);
    OK(pthread_mutex_unlock(&pair.mutex));
    __asm__ volatile("");
}

/* Functions alike: their frames have one size, so that only the return addresses tell them apart. */
#define WAY(name, next)                                                                                                \
    __attribute__((noinline)) static void name(void) {                                                                 \
        __asm__ volatile("" ::"i"(__COUNTER__));                                                                       \
        next();                                                                                                        \
        __asm__ volatile("");                                                                                          \
    }
WAY(by_left, nap)
WAY(by_right, nap)
WAY(over_left, by_left)
WAY(under_left, by_left)
WAY(over_right, by_right)
WAY(deeper, over_left)

void ways(void) {
    for (int i = 0; i < 10; i++) {
        over_left();
        under_left();
        over_right();
        deeper();
    }
    printf("cond_wait:events=40\n");
}

/*
 * A thread runs coroutines on stacks of their own, below its stack: two on a large one, and two on a small one that
 * comes to the large one's beginning, with nothing mapped behind it. All wait at the same place.
 */
enum { LARGE = 256 << 10, SMALL = 64 << 10, WAITS_AT = 32 << 10 };

static struct {
    char *stack;
    ucontext_t thread, coroutine;
} run;

__attribute__((noinline)) static void sink(void) {
    char *here = __builtin_frame_address(0);
    volatile char *taken = __builtin_alloca((size_t)(here - run.stack - WAITS_AT) & ~(size_t)15);
    taken[0] = 1;
    nap();
    taken[0] = 2;
}
WAY(on_it, sink)

static void run_coroutine(size_t bytes) {
    SYS(mprotect(run.stack, bytes, PROT_READ | PROT_WRITE));
    for (int i = 0; i < 2; i++) {
        SYS(getcontext(&run.coroutine));
        run.coroutine.uc_stack.ss_sp = run.stack;
        run.coroutine.uc_stack.ss_size = bytes;
        run.coroutine.uc_link = &run.thread;
        makecontext(&run.coroutine, on_it, 0);
        SYS(swapcontext(&run.thread, &run.coroutine));
    }
    SYS(mprotect(run.stack, bytes, PROT_NONE));
}

static void *run_coroutines(void *unused) {
    run.stack = mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(run.stack != MAP_FAILED);
    over_left();
    run_coroutine(LARGE);
    run_coroutine(SMALL);
    over_left();
    return unused;
}

void coroutines(void) {
    pthread_attr_t attr;
    pthread_t thread;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstacksize(&attr, LARGE));
    OK(pthread_create(&thread, &attr, run_coroutines, NULL));
    OK(pthread_join(thread, NULL));
    OK(pthread_attr_destroy(&attr));
    run_coroutines(NULL);
    printf("cond_wait:events=12\n");
}
