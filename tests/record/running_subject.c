/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that run when the process ends. The first locks 1000 times at once, and computes from then on; the second
 * sleeps in epoll_wait, the third waits for a condition with a lock of its own. The fourth waits for a semaphore, and a
 * handler that interrupts it has waited for another one by then. So has that of the others, which have left the wait by
 * siglongjmp: the fifth computes, and the others do what the second does. The sixth goes on deeper on the stack than it
 * waited; the seventh had computed for 50 ms before its wait.
 *
 * What comes before all of them do that takes as long as the machine likes. The main thread then lets three times as
 * much time pass, and the first and the fifth compute for 200 ms of processor time each, before it calls exit. So each
 * thread has done what it does at the end for three quarters of its life at least, however busy the machine is.
 */
#include "lib/asleep.h"
#include "lib/clock.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sys/epoll.h>

enum { N_LOCKS = 1000, COMPUTES_NS = 200000000, BEFORE_NS = 50000000, DEEPER_BYTES = 16384 };
enum { STAYS = 3, N_THREADS = 7, N_WAIT = N_THREADS - STAYS, N_COMPUTE = 2, N_SLEEP = N_THREADS - N_COMPUTE };

static pthread_mutex_t locks[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static unsigned n_computing, n_computed, n_waits, n_interrupted, n_handled, n_asleep, last_part;
static pid_t waiting[N_WAIT]; /* before they are interrupted */
static pid_t asleep[N_SLEEP]; /* in the wait of their end */
static sem_t never_posted, for_handler;
static pthread_t threads[N_THREADS];
static _Thread_local sigjmp_buf *leaves;

/* Until the process ends. When the last part has begun it tells after 200 ms of processor time. */
static _Noreturn void compute(void) {
    int64_t begun_ns = 0;
    __atomic_fetch_add(&n_computing, 1, __ATOMIC_RELEASE);
    for (bool told = false;;) {
        int64_t ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
        if (begun_ns == 0 && __atomic_load_n(&last_part, __ATOMIC_ACQUIRE) != 0)
            begun_ns = ns;
        if (!told && begun_ns != 0 && ns > begun_ns + COMPUTES_NS) {
            told = true;
            __atomic_fetch_add(&n_computed, 1, __ATOMIC_RELEASE);
        }
    }
}

static void sleeps_from_here(void) {
    asleep_from_here(&asleep[__atomic_fetch_add(&n_asleep, 1, __ATOMIC_RELAXED)]);
}

static _Noreturn void *computes(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < N_LOCKS; i++) {
        pthread_mutex_lock(&locks[0]);
        pthread_mutex_unlock(&locks[0]);
    }
    compute();
}

static _Noreturn void *sleeps(void *unused) {
    struct epoll_event event;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    (void)unused;
    pthread_mutex_lock(&locks[1]);
    pthread_mutex_unlock(&locks[1]);
    sleeps_from_here();
    for (;;)
        epoll_wait(epoll, &event, 1, -1);
}

static _Noreturn void *waits(void *unused) {
    (void)unused;
    pthread_mutex_lock(&locks[2]);
    sleeps_from_here();
    for (;;)
        pthread_cond_wait(&never, &locks[2]);
}

static void handle(int signo) {
    (void)signo;
    __atomic_fetch_add(&n_interrupted, 1, __ATOMIC_RELEASE);
    sem_wait(&for_handler);
    __atomic_fetch_add(&n_handled, 1, __ATOMIC_RELEASE);
    if (leaves != NULL)
        siglongjmp(*leaves, 1);
    sleeps_from_here();
}

static _Noreturn void *stays(void *unused) {
    (void)unused;
    asleep_from_here(&waiting[__atomic_fetch_add(&n_waits, 1, __ATOMIC_RELEASE)]);
    for (;;)
        sem_wait(&never_posted);
}

/* A wait, and out of it. */
#define LEAVE_A_WAIT()                                                                                                 \
    do {                                                                                                               \
        sigjmp_buf here;                                                                                               \
        leaves = &here;                                                                                                \
        if (sigsetjmp(here, 1) == 0)                                                                                   \
            stays(NULL);                                                                                               \
    } while (0)

static _Noreturn void *jumps(void *unused) {
    (void)unused;
    LEAVE_A_WAIT();
    pthread_mutex_lock(&locks[3]);
    pthread_mutex_unlock(&locks[3]);
    compute();
}

static __attribute__((noinline)) _Noreturn void far_below(void *unused) {
    volatile char frame[DEEPER_BYTES] = {0};
    (void)frame;
    sleeps(unused);
}

static _Noreturn void *deeper(void *unused) {
    LEAVE_A_WAIT();
    far_below(unused);
}

static _Noreturn void *worked(void *unused) {
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < BEFORE_NS) {
    }
    LEAVE_A_WAIT();
    sleeps(unused);
}

static void wait_for(const unsigned *n, unsigned least) {
    while (__atomic_load_n(n, __ATOMIC_ACQUIRE) < least)
        sleep_ms(1);
}

static void await_all_asleep(const pid_t *tids, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        await_asleep(&tids[i]);
}

int main(void) {
    static void *(*const routines[])(void *) = {computes, sleeps, waits, stays, jumps, deeper, worked};
    const struct timespec begun = time_now(CLOCK_MONOTONIC);
    const struct sched_param first = {.sched_priority = 1};
    /* Where it may: a thread that has left its wait can be told by nothing but its share of the processor's time. */
    pthread_setschedparam(pthread_self(), SCHED_RR, &first);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    if (sem_init(&never_posted, 0, 0) != 0 || sem_init(&for_handler, 0, 0) != 0 ||
        sigaction(SIGUSR1, &action, NULL) != 0)
        return 1;
    for (unsigned i = N_THREADS; i-- > 0;) {
        if (pthread_create(&threads[i], NULL, routines[i], NULL) != 0 || pthread_detach(threads[i]) != 0)
            return 1;
        if (routines[i] == worked) /* the others do not wait for long before they are interrupted */
            wait_for(&n_waits, 1);
    }
    wait_for(&n_waits, N_WAIT);
    await_all_asleep(waiting, N_WAIT);
    for (unsigned i = STAYS; i < N_THREADS; i++)
        if (pthread_kill(threads[i], SIGUSR1) != 0)
            return 1;
    wait_for(&n_interrupted, N_WAIT);
    await_all_asleep(waiting, N_WAIT); /* in their handlers */
    for (unsigned i = STAYS; i < N_THREADS; i++)
        sem_post(&for_handler);
    wait_for(&n_handled, N_WAIT);
    wait_for(&n_computing, N_COMPUTE);
    await_all_asleep(asleep, N_SLEEP);
    __atomic_store_n(&last_part, 1, __ATOMIC_RELEASE);
    sleep_ms(3 * (time_since_ms(CLOCK_MONOTONIC, begun) + 1));
    wait_for(&n_computed, N_COMPUTE);
    exit(0);
}
