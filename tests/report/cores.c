/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that are off the processor between calls: four compute for 30 ms each on one CPU, and one sleeps for 60 ms.
 * usage: cores [kill]; with it, the process ends itself by SIGKILL then. cores exec, or fork: the main thread has
 * waited for a core for long before there is anything to record of it, as another program or as a forked child, and
 * then sleeps alone for 60 ms.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

/* Until the thread has computed for 100 ms beside a process that does nothing else, on the same CPU. */
static void compete(void) {
    uint64_t until = cpu_ns() + 100000000;
    pid_t other = fork();
    while (other == 0 || cpu_ns() < until)
        ;
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

static void sleep_after(const char *what, char *program) {
    if (strcmp(what, "exec") == 0) {
        compete();
        execl("/proc/self/exe", program, "sleep", (char *)NULL);
    }
    if (strcmp(what, "fork") == 0) {
        synchronize();
        if (fork() != 0) {
            wait(NULL);
            exit(0);
        }
        compete();
    }
    sleeps(NULL);
    pthread_t thread; /* with which the trace begins */
    pthread_create(&thread, NULL, sleeps, NULL);
    pthread_join(thread, NULL);
    exit(0);
}

int main(int argc, char **argv) {
    pthread_t threads[5];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    if (argc > 1 && strcmp(argv[1], "kill") != 0)
        sleep_after(argv[1], argv[0]);
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, i < 4 ? computes : sleeps, NULL);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    if (argc > 1)
        raise(SIGKILL);
    return 0;
}
