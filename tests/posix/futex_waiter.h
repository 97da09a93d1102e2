/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that make one wait on a futex; for the suites of futex(2). */
#ifndef TESTS_POSIX_FUTEX_WAITER_H
#define TESTS_POSIX_FUTEX_WAITER_H

#include "topic.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The suites are built twice: for calls with FUTEX_PRIVATE_FLAG, and for calls without. */
#ifdef SHARED
#define FLAG 0
#else
#define FLAG FUTEX_PRIVATE_FLAG
#endif

static uint32_t word;

static inline long futex(uint32_t *at, int op, uint32_t val, const void *more, uint32_t *at2, uint32_t val3) {
    return syscall(SYS_futex, at, op | FLAG, val, more, at2, val3);
}
static inline long wake(uint32_t *at, uint32_t n) {
    return futex(at, FUTEX_WAKE, n, NULL, NULL, 0);
}
static inline const void *number(unsigned long n) {
    return (const void *)n;
}

/* A thread that makes one wait. `left`: it has returned; in which order the threads of a test did. */
struct waiter {
    uint32_t *at, val, bits;
    const struct timespec *timeout;
    int op;
    pthread_t thread;
    long result;
    int error, left;
};
static atomic_int n_left;

static inline void *wait_once(void *argument) {
    struct waiter *w = argument;
    w->result = futex(w->at, w->op, w->val, w->timeout, NULL, w->bits);
    w->error = w->result == -1 ? errno : 0;
    w->left = atomic_fetch_add(&n_left, 1) + 1;
    return NULL;
}
/* A thread that is about to wait is no waiter yet. A word's waiters moved to the word itself stay, and are counted. */
static inline long n_waiters(uint32_t *at) {
    return futex(at, FUTEX_REQUEUE, 0, number(INT_MAX), at, 0);
}
static inline void await_waiters(uint32_t *at, long n) {
    while (n_waiters(at) < n)
        sleep_ms(1);
}
static inline void start_at(struct waiter *w, uint32_t *at, uint32_t bits) {
    long before = n_waiters(at);
    *w = (struct waiter){.at = at, .val = *at, .bits = bits, .op = bits != 0 ? FUTEX_WAIT_BITSET : FUTEX_WAIT};
    w->thread = thread_start_small(1 << 17, wait_once, w);
    await_waiters(at, before + 1);
    let_threads_block();
}
static inline void start(struct waiter *w) {
    start_at(w, &word, 0);
}
static inline void check_woken(struct waiter *w) {
    thread_join(w->thread);
    CHECK_INT(w->result, 0);
}

#endif
