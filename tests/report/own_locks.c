/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that synchronize by futexes of their own: own-locks NAME. The locks are contended, the others are not, and
 * the report has to tell. They have the shapes of Rust's (Mutex, RwLock, Condvar) and C++20's (binary_semaphore,
 * latch).
 */
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "disease.h"

static void futex_wait(uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static long futex_wake(uint32_t *word, int n) {
    return syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static uint32_t get(const uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static bool change(uint32_t *word, uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* ---- a mutex: 0 free, 1 taken, 2 and threads wait ---- */

uint32_t own_mutex;

static void mutex_lock(uint32_t *m) {
    if (change(m, 0, 1))
        return;
    while (__atomic_exchange_n(m, 2, __ATOMIC_SEQ_CST) != 0)
        futex_wait(m, 2);
}

static void mutex_unlock(uint32_t *m) {
    if (__atomic_exchange_n(m, 0, __ATOMIC_SEQ_CST) == 2)
        futex_wake(m, 1);
}

static void *mutex_thread(void *argument) {
    for (int i = 0; i < 100; i++) {
        mutex_lock(&own_mutex);
        compute(200);
        mutex_unlock(&own_mutex);
        compute(20);
    }
    return argument;
}

/* ---- a binary semaphore: waits for 0 to change ---- */

uint32_t own_semaphore = 1;

static void *semaphore_thread(void *argument) {
    for (int i = 0; i < 100; i++) {
        while (!change(&own_semaphore, 1, 0))
            futex_wait(&own_semaphore, 0);
        compute(200);
        __atomic_store_n(&own_semaphore, 1, __ATOMIC_SEQ_CST);
        futex_wake(&own_semaphore, 1);
        compute(20);
    }
    return argument;
}

/* ---- a read-write lock of two words: readers wait at the state, writers at a number that each wake-up changes ---- */

struct {
    uint32_t state, number;
} own_rwlock;
#define WRITER 0x3fffffffu
#define READERS_WAIT 0x40000000u
#define WRITERS_WAIT 0x80000000u

static void wake_next(uint32_t s) {
    uint32_t *state = &own_rwlock.state, left = s & READERS_WAIT;
    if ((s & WRITERS_WAIT) != 0) {
        if (!change(state, s, left))
            return;
        __atomic_fetch_add(&own_rwlock.number, 1, __ATOMIC_SEQ_CST);
        if (futex_wake(&own_rwlock.number, 1) > 0)
            return;
    }
    if (left != 0 && change(state, left, 0))
        futex_wake(state, INT_MAX);
}

static void read_lock(void) {
    uint32_t *state = &own_rwlock.state;
    for (;;) {
        uint32_t s = get(state);
        if ((s & WRITER) < WRITER && (s & (READERS_WAIT | WRITERS_WAIT)) == 0) {
            if (change(state, s, s + 1))
                return;
        } else if ((s & READERS_WAIT) != 0 || change(state, s, s | READERS_WAIT)) {
            futex_wait(state, s | READERS_WAIT);
        }
    }
}

static void read_unlock(void) {
    uint32_t s = __atomic_sub_fetch(&own_rwlock.state, 1, __ATOMIC_SEQ_CST);
    if ((s & WRITER) == 0 && (s & WRITERS_WAIT) != 0)
        wake_next(s);
}

static void write_lock(void) {
    uint32_t *state = &own_rwlock.state, others = 0;
    for (;;) {
        uint32_t s = get(state);
        if ((s & WRITER) == 0) {
            if (change(state, s, s | WRITER | others))
                return;
            continue;
        }
        if ((s & WRITERS_WAIT) == 0 && !change(state, s, s | WRITERS_WAIT))
            continue;
        others = WRITERS_WAIT;
        uint32_t number = get(&own_rwlock.number);
        s = get(state);
        if ((s & WRITER) != 0 && (s & WRITERS_WAIT) != 0)
            futex_wait(&own_rwlock.number, number);
    }
}

static void write_unlock(void) {
    uint32_t s = __atomic_sub_fetch(&own_rwlock.state, WRITER, __ATOMIC_SEQ_CST);
    if ((s & (READERS_WAIT | WRITERS_WAIT)) != 0)
        wake_next(s);
}

static void *rwlock_thread(void *argument) {
    for (int i = 0; i < 100; i++) {
        if ((long)argument % 2 == 0) {
            read_lock();
            compute(50);
            read_unlock();
        } else {
            write_lock();
            compute(200);
            write_unlock();
        }
        compute(20);
    }
    return argument;
}

/* ---- workers that wait for work at a condition: a number that each signal changes ---- */

uint32_t own_cond, jobs;
static bool chained; /* a worker that has got a job wakes the next one */

static void *worker(void *argument) {
    for (;;) {
        uint32_t number = get(&own_cond), n = get(&jobs);
        if (n == 0) {
            futex_wait(&own_cond, number);
            continue;
        }
        if (n == UINT32_MAX)
            return argument;
        if (!change(&jobs, n, n - 1))
            continue;
        if (chained) {
            __atomic_fetch_add(&own_cond, 1, __ATOMIC_SEQ_CST);
            futex_wake(&own_cond, 1);
        }
        compute(50);
    }
}

static void work(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 80; i++) {
        pause_us(3000);
        __atomic_fetch_add(&jobs, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_add(&own_cond, 1, __ATOMIC_SEQ_CST);
        futex_wake(&own_cond, 1);
    }
    pause_us(10000);
    __atomic_store_n(&jobs, UINT32_MAX, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&own_cond, 1, __ATOMIC_SEQ_CST);
    futex_wake(&own_cond, INT_MAX);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* ---- workers at a semaphore: each waits for 0 to change, and none posts, or every other job makes one ---- */

static bool has_children;
uint32_t own_tickets, own_children; /* children: jobs that jobs have made */

static void make_job(void) {
    __atomic_fetch_add(&own_tickets, 1, __ATOMIC_SEQ_CST);
    futex_wake(&own_tickets, 1);
}

static void *ticket_worker(void *argument) {
    for (int i = 0; i < 20;) {
        uint32_t n = get(&own_tickets);
        if (n == 0)
            futex_wait(&own_tickets, 0);
        else if (change(&own_tickets, n, n - 1)) {
            compute(50);
            i++;
            if (has_children && __atomic_fetch_add(&own_children, 1, __ATOMIC_SEQ_CST) % 2 == 0)
                make_job();
        }
    }
    return argument;
}

static void tickets(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, ticket_worker, NULL);
    for (int i = 0; i < (has_children ? 40 : 80); i++) {
        pause_us(has_children ? 6000 : 3000);
        make_job();
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    const char *name = argc == 2 ? argv[1] : "";
    has_children = strcmp(name, "children") == 0;
    chained = strcmp(name, "chain") == 0;
    if (strcmp(name, "mutex") == 0)
        run(4, mutex_thread);
    else if (strcmp(name, "semaphore") == 0)
        run(4, semaphore_thread);
    else if (strcmp(name, "rwlock") == 0)
        run(4, rwlock_thread);
    else if (strcmp(name, "tickets") == 0 || has_children)
        tickets();
    else
        work();
    return 0;
}
