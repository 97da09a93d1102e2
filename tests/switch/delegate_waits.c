/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Delegated mutexes, as delegate.c: sections that wait, in the kernel, at conditions and for threads that are queued,
 * and waits for sections that have a deadline.
 */
#include "delegate.h"

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn, n_done, ends[2];

/* ---- a section that sleeps in the kernel keeps no section of another mutex waiting ---- */
static atomic_int n_queued;

/* Keep the mutex, which the thread holds, until so many others are about to queue for it, or have. */
static void keep_until_queued(int n) {
    while (atomic_load(&n_queued) < n)
        sched_yield();
    for (int i = 0; i < 100; i++)
        sched_yield();
}

static void block_until_told(void) {
    char byte;
    enter(&hot);
    OK_ERRNO(read(ends[0], &byte, 1) == 1 ? 0 : -1);
    keep_until_queued(N - 1);
    leave(&hot);
}

/* Each time all others queue behind one of them. After the barrier they are fibers, wherever they were before. */
static void queue_by_turns(long number) {
    for (int i = 0; i < N; i++) {
        meet(); /* the mutex is free */
        if (number == i)
            enter(&hot);
        meet();
        if (number != i) {
            atomic_fetch_add(&n_queued, 1);
            enter(&hot);
            count++;
        } else {
            keep_until_queued((N - 1) * (i + 2));
        }
        leave(&hot);
    }
}

static void *block_or_count(void *number) {
    char byte = 0;
    leave_home();
    if ((long)number == 0) {
        block_until_told();
        queue_by_turns(0);
        return number;
    }
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_mutex_lock(&second));
        other_count++;
        if (i % 64 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&second));
        think();
    }
    OK(pthread_mutex_lock(&second));
    bool last = ++n_done == N - 1;
    OK(pthread_mutex_unlock(&second));
    if (last)
        OK_ERRNO(write(ends[1], &byte, 1) == 1 ? 0 : -1);
    atomic_fetch_add(&n_queued, 1);
    enter(&hot);
    count++;
    leave(&hot);
    queue_by_turns((long)number);
    return number;
}

static void blocked(void) {
    OK_ERRNO(pipe(ends));
    run(N, block_or_count);
    CHECK(count == (N - 1) * (N + 1) && other_count == (N - 1) * ROUNDS);
}

/* ---- a section waits for a thread that is queued behind the sections of a batch, and for one outside ---- */
static atomic_int come;

static void *await_in_section(void *number) {
    leave_home();
    for (int i = 0; i < 200; i++) {
        if ((long)number == i % N) {
            enter(&hot);
            atomic_store(&come, 1);
            while (atomic_load(&come) != 2)
                sched_yield();
            leave(&hot);
        } else if ((long)number == (i + 1) % N) {
            while (atomic_load(&come) != 1)
                sched_yield();
            atomic_store(&come, 2);
            enter(&hot);
            count++;
            leave(&hot);
        } else {
            enter(&hot);
            count++;
            leave(&hot);
        }
        meet();
    }
    return number;
}

static void awaits(void) {
    run(N, await_in_section);
    CHECK(count == 200 * (N - 1));
}

/* ---- deadlines in the queue; and the mutex is whole afterwards ---- */
static void *give_up(void *number) {
    leave_home();
    for (int i = 0; i < 20; i++) {
        if ((long)number == 0) {
            enter(&hot);
            meet();
            meet(); /* all others have given up */
            leave(&hot);
        } else {
            struct timespec at = time_in_us(CLOCK_MONOTONIC, 100 * (long)number);
            meet();
            CHECK(pthread_mutex_clocklock(&hot, CLOCK_MONOTONIC, &at) == ETIMEDOUT);
            CHECK(time_is_past(CLOCK_MONOTONIC, &at));
            meet();
        }
        meet();
        struct timespec soon = time_in_us(CLOCK_REALTIME, 50);
        int r = pthread_mutex_timedlock(&hot, &soon); /* as its deadline strikes */
        CHECK(r == 0 || r == ETIMEDOUT);
        if (r == 0) {
            CHECK(inside++ == 0);
            think();
            leave(&hot);
        }
        meet();
    }
    return number;
}

static void timed(void) {
    run(N, give_up);
}

/* ---- conditions: a turn goes round, by signals and by broadcasts, with and without the mutex ---- */
static void *take_turns(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS / 4; i++) {
        enter(&hot);
        while (turn != (int)(long)number) {
            inside--;
            OK(pthread_cond_wait(&cond, &hot));
            CHECK(inside++ == 0);
        }
        turn = (turn + 1) % N;
        if (i % 2 == 0)
            OK(pthread_cond_broadcast(&cond));
        leave(&hot);
        if (i % 2 != 0)
            OK(pthread_cond_broadcast(&cond));
    }
    return number;
}

static void turns(void) {
    run(N, take_turns);
}

/* ---- a section blocks where it has travelled to, and sections of other mutexes that travel go on ---- */
static void hold_until_queued(pthread_mutex_t *m, int n) {
    OK(pthread_mutex_lock(m));
    meet();
    keep_until_queued(n);
    OK(pthread_mutex_unlock(m));
}

static void queue_for(pthread_mutex_t *m) {
    meet();
    atomic_fetch_add(&n_queued, 1);
    OK(pthread_mutex_lock(m));
}

static _Thread_local long home; /* kernel thread of the program's thread */
static int n_at_home;           /* sections that ran there; protected by second */

enum { SECONDS = 25 }; /* sections of `second` of each thread: beside many processes a yield lasts for milliseconds */

static void count_up_second(void) {
    for (int i = 0; i < SECONDS; i++) {
        OK(pthread_mutex_lock(&second));
        other_count++;
        n_at_home += proc_kernel_thread() == home;
        sched_yield(); /* others queue */
        OK(pthread_mutex_unlock(&second));
    }
}

static void count_second(void) {
    count_up_second();
    OK(pthread_mutex_lock(&second));
    bool last = ++n_done == N - 2;
    OK(pthread_mutex_unlock(&second));
    char byte = 0;
    if (last)
        OK_ERRNO(write(ends[1], &byte, 1) == 1 ? 0 : -1);
}

static void *block_on_server(void *number) {
    char byte = 0;
    leave_home();
    if ((long)number == 0) {
        hold_until_queued(&hot, 1);
    } else if ((long)number == 1) {
        queue_for(&hot);
        OK_ERRNO(read(ends[0], &byte, 1) == 1 ? 0 : -1);
        OK(pthread_mutex_unlock(&hot));
    } else {
        meet();
        count_second();
    }
    return number;
}

static void blocked_there(void) {
    OK_ERRNO(pipe(ends));
    run(N, block_on_server);
    CHECK(other_count == (N - 2) * SECONDS);
}

/* ---- a section spins, without a yield, until a section of another mutex has run that travels too ---- */
static void *spin_on_server(void *number) {
    home = proc_kernel_thread();
    leave_home();
    if ((long)number == 0) {
        hold_until_queued(&hot, 1);
    } else if ((long)number == 1) {
        queue_for(&hot);
        while (atomic_load(&come) != 1)
            ;
        OK(pthread_mutex_unlock(&hot));
    } else {
        meet();
        count_up_second();
        OK(pthread_mutex_lock(&second));
        if (++n_done == N - 2)
            atomic_store(&come, 1);
        OK(pthread_mutex_unlock(&second));
    }
    return number;
}

static void spins_there(void) {
    run(N, spin_on_server);
    CHECK(other_count == (N - 2) * SECONDS);
    printf("at home: %d\n", n_at_home);
}

/* ---- each section wakes the next one of the same mutex, and ends with a wait, until others' have run ---- */
enum { CHAIN = 4, CHAINED = 5000 };

static void stay(int n) {
    for (volatile int i = 0; i < n; i++)
        ;
}

static void *wake_the_next(void *number) {
    int self = (int)(long)number;
    OK(pthread_mutex_lock(&hot));
    while (atomic_load(&come) == 0) {
        while (turn != self && atomic_load(&come) == 0)
            OK(pthread_cond_wait(&cond, &hot));
        stay(200);
        turn = (self + 1) % CHAIN;
        OK(pthread_cond_broadcast(&cond));
    }
    OK(pthread_mutex_unlock(&hot));
    return number;
}

static void *chain_or_count(void *number) {
    if ((long)number < CHAIN)
        return wake_the_next(number);
    while (atomic_load(&come) == 0) {
        OK(pthread_mutex_lock(&second));
        if (++other_count == CHAINED)
            atomic_store(&come, 1);
        stay(2000);
        if (other_count % 16 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&second));
    }
    OK(pthread_mutex_lock(&hot));
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&hot));
    return number;
}

static void chains(void) {
    run(N, chain_or_count);
    CHECK(other_count >= CHAINED);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"blocked", blocked},
        {"awaits", awaits},
        {"timed", timed},
        {"turns", turns},
        {"blocked-there", blocked_there},
        {"spins-there", spins_there},
        {"chains", chains},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}
