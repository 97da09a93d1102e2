/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shows the program a time ten years ahead, as libfaketime does: its clock_gettime adds them, its
 * pthread_cond_timedwait and sem_timedwait take them off the deadline again for the functions behind them.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <time.h>

#define AHEAD_S (10L * 365 * 86400)

/* On x86-64 by version, as such libraries do it: the other version there is takes the objects of 2002. */
#if defined(__x86_64__)
#define COND_LOOKUP(handle, name) dlvsym(handle, name, "GLIBC_2.3.2")
#else
#define COND_LOOKUP(handle, name) dlsym(handle, name)
#endif

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_sem_timedwait)(sem_t *, const struct timespec *);

__attribute__((constructor)) static void find(void) {
    *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    *(void **)&real_cond_timedwait = COND_LOOKUP(RTLD_NEXT, "pthread_cond_timedwait");
    *(void **)&real_sem_timedwait = dlsym(RTLD_NEXT, "sem_timedwait");
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int r = real_clock_gettime(clock, now);
    if (r == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += AHEAD_S;
    return r;
}

static struct timespec back(const struct timespec *at) {
    return (struct timespec){at->tv_sec - AHEAD_S, at->tv_nsec};
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *at) {
    struct timespec real = back(at);
    return real_cond_timedwait(cond, mutex, &real);
}

int sem_timedwait(sem_t *sem, const struct timespec *at) {
    struct timespec real = back(at);
    return real_sem_timedwait(sem, &real);
}
