/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that run when the process ends. The first locks 1000 times at once, and computes from then on; the second
 * sleeps in epoll_wait, the third waits for a condition with a lock of its own. When the first has computed for 200 ms
 * of processor time the main thread calls exit.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sys/epoll.h>

enum { N_LOCKS = 1000, COMPUTES_NS = 200000000 };

static pthread_mutex_t locks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static unsigned n_computed;

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

int main(void) {
    static void *(*const routines[])(void *) = {computes, sleeps, waits};
    for (unsigned i = 0; i < 3; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, routines[i], NULL) != 0)
            return 1;
        pthread_detach(thread);
    }
    while (__atomic_load_n(&n_computed, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    exit(0);
}
