/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that run when the process ends. The first locks 1000 times at once, and computes from then on; the second
 * sleeps in epoll_wait, the third waits for a condition with a lock of its own. The fourth waits for a semaphore, and a
 * handler that interrupts it has waited for another one by then. So has that of the others, which have left the wait by
 * siglongjmp: the fifth computes, and the others do what the second does. The sixth goes on deeper on the stack than it
 * waited; the seventh had computed for 50 ms before its wait. When the first has computed for 200 ms of processor
 * time the main thread calls exit.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sys/epoll.h>

enum { N_LOCKS = 1000, COMPUTES_NS = 200000000, BEFORE_NS = 50000000, DEEPER_BYTES = 16384 };
enum { STAYS = 3, N_THREADS = 7, N_WAIT = N_THREADS - STAYS };

static pthread_mutex_t locks[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static unsigned n_computed, n_waits, n_handled;
static sem_t never_posted, for_handler;
static pthread_t threads[N_THREADS];
static _Thread_local sigjmp_buf *leaves;

static _Noreturn void *computes(void *unused) {
    struct timespec now = {0};
    (void)unused;
    for (unsigned i = 0; i < N_LOCKS; i++) {
        pthread_mutex_lock(&locks[0]);
        pthread_mutex_unlock(&locks[0]);
    }
    for (;;) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        if (now.tv_sec > 0 || now.tv_nsec > COMPUTES_NS)
            __atomic_store_n(&n_computed, 1, __ATOMIC_RELEASE);
    }
}

static _Noreturn void *sleeps(void *unused) {
    struct epoll_event event;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    (void)unused;
    pthread_mutex_lock(&locks[1]);
    pthread_mutex_unlock(&locks[1]);
    for (;;)
        epoll_wait(epoll, &event, 1, -1);
}

static _Noreturn void *waits(void *unused) {
    (void)unused;
    pthread_mutex_lock(&locks[2]);
    for (;;)
        pthread_cond_wait(&never, &locks[2]);
}

static void handle(int signo) {
    (void)signo;
    sem_wait(&for_handler);
    __atomic_fetch_add(&n_handled, 1, __ATOMIC_RELEASE);
    if (leaves != NULL)
        siglongjmp(*leaves, 1);
}

static _Noreturn void *stays(void *unused) {
    (void)unused;
    __atomic_fetch_add(&n_waits, 1, __ATOMIC_RELEASE);
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
    for (volatile unsigned i = 0;; i++) {
    }
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
    struct timespec now = {0};
    while (now.tv_sec == 0 && now.tv_nsec < BEFORE_NS)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    LEAVE_A_WAIT();
    sleeps(unused);
}

static void wait_for(const unsigned *n, unsigned least) {
    while (__atomic_load_n(n, __ATOMIC_ACQUIRE) < least)
        usleep(1000);
}

int main(void) {
    static void *(*const routines[])(void *) = {computes, sleeps, waits, stays, jumps, deeper, worked};
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
    usleep(20000); /* they sleep */
    for (unsigned i = STAYS; i < N_THREADS; i++)
        if (pthread_kill(threads[i], SIGUSR1) != 0)
            return 1;
    usleep(20000);
    for (unsigned i = STAYS; i < N_THREADS; i++)
        sem_post(&for_handler);
    wait_for(&n_handled, N_WAIT);
    while (__atomic_load_n(&n_computed, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    exit(0);
}
