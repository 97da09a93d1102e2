/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread is cancelled asynchronously at any instruction of an operation, or of what comes before and behind it: by
 * single steps (x86-64). It stands there until it has been cancelled, and the signal of that is blocked until then.
 * Where it has the turn, or its wait is over in fewer steps, it is cancelled later: the order is the same.
 *
 *   stepped-cancel STEPS     for each STRIDE-th of so many steps it prints whether the thread was cancelled, and a sum
 * of the order; and at the end, as an error, in how many of them the thread stood
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
enum { STRIDE = 5, TRAP_FLAG = 0x100, STANDS_US = 300, PATIENCE_US = 20000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem, cleaned;
static uint64_t sum;
static volatile long steps, at;
static volatile int stepping, reached, cancelled;
static void add(unsigned number) {
    pthread_mutex_lock(&mutex);
    sum = sum * 31 + number;
    pthread_mutex_unlock(&mutex);
}
static void clean(void *unused) {
    (void)unused;
    add(7);
    sem_post(&cleaned);
    add(8);
}
static long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
static void await(const volatile int *what, long us) {
    long end = now_us() + us;
    while (!*what && now_us() < end)
        ;
}
static void step(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    if (stepping && steps++ < at)
        return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(long)TRAP_FLAG;
    if (!stepping)
        return;
    stepping = 0;
    reached = 1;
    await(&cancelled, STANDS_US);
}
static void *operates(void *unused) {
    pthread_cleanup_push(clean, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    sem_post(&sem);
    stepping = 1;
    __asm__ volatile("sub $128, %%rsp; pushfq; orq %0, (%%rsp); popfq; add $128, %%rsp" ::"i"(TRAP_FLAG)
                     : "memory", "cc");
    for (;;) {
        pthread_cond_signal(&cond);
        sem_post(&sem);
    }
    pthread_cleanup_pop(0);
    return unused;
}
int main(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    long end = argc > 1 ? atol(argv[1]) : 0;
    int n_reached = 0;
    memset(&action.sa_mask, 0xff, sizeof action.sa_mask); /* the C library's signals, too */
    sigaction(SIGTRAP, &action, NULL);
    sem_init(&sem, 0, 0);
    sem_init(&cleaned, 0, 0);
    for (at = 0; at < end; at += STRIDE) {
        pthread_t thread;
        void *result;
        sum = 0, steps = 0, reached = cancelled = 0;
        pthread_create(&thread, NULL, operates, NULL);
        sched_yield();
        sched_yield();
        await(&reached, PATIENCE_US);
        n_reached += reached;
        pthread_cancel(thread);
        cancelled = 1;
        add(9);
        sem_wait(&cleaned);
        add(10);
        pthread_join(thread, &result);
        printf("%d %llx\n", result == PTHREAD_CANCELED, (unsigned long long)sum);
    }
    fprintf(stderr, "%d\n", n_reached);
    return 0;
}
