/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that are off the processor between calls: four compute for 30 ms each on one CPU, and one sleeps for 60 ms.
 * usage: cores [kill]; with it, the process ends itself by SIGKILL then.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void synchronize(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *computes(void *argument) {
    synchronize();
    uint64_t until = cpu_ns() + 30000000;
    while (cpu_ns() < until)
        ;
    synchronize();
    return argument;
}

static void *sleeps(void *argument) {
    synchronize();
    for (int i = 0; i < 6; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    synchronize();
    return argument;
}

int main(int argc, char **argv) {
    (void)argv;
    pthread_t threads[5];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, i < 4 ? computes : sleeps, NULL);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    if (argc > 1)
        raise(SIGKILL);
    return 0;
}
