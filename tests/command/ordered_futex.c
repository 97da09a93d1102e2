/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits on a futex that are interrupted, lose their word, or come while a library is loaded. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "ordered.h"

static uint32_t word;

static long futex(uint32_t *at, int op, uint32_t value, const void *more, uint32_t *at2) {
    return syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, value, more, at2, value);
}

static void compute_ms(long ms) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void yield_often(void) {
    for (int i = 0; i < YIELDS; i++)
        sched_yield();
}

static void count(int number) {
    (void)number;
    atomic_fetch_add(&flag, 1);
}

static uint32_t in_handler; /* a futex */

static void count_and_wait(int number) {
    count(number);
    sem_wait(&sem);
}

static void count_and_wait_too(int number) {
    count(number);
    while (__atomic_load_n(&in_handler, __ATOMIC_SEQ_CST) == 0)
        futex(&in_handler, FUTEX_WAIT, 0, NULL, NULL);
}

static atomic_bool has_ended;

static void *futex_waiter(void *argument) {
    bool is_woken = futex(&word, FUTEX_WAIT, 0, NULL, NULL) == 0;
    puts(is_woken ? "done" : strerrorname_np(errno));
    atomic_store(&has_ended, true);
    return argument;
}

/* The wait is restarted, the thread waits for the turn with that, and a handler with a wait of its own comes. */
static void restart(void (*waits)(int)) {
    const struct sigaction actions[] = {{.sa_handler = count, .sa_flags = SA_RESTART},
                                        {.sa_handler = waits, .sa_flags = SA_RESTART}};
    static const int signals[] = {SIGUSR1, SIGUSR2};
    pthread_t thread;
    atomic_store(&flag, 0);
    atomic_store(&has_ended, false);
    pthread_create(&thread, NULL, futex_waiter, NULL);
    yield_often();
    for (int i = 0; i < 2; i++) {
        sigaction(signals[i], &actions[i], NULL);
        pthread_kill(thread, signals[i]);
        while (atomic_load(&flag) == i)
            ;
        compute_ms(20); /* with the turn */
    }
    yield_often(); /* the handler waits */
    sem_post(&sem);
    __atomic_store_n(&in_handler, 1, __ATOMIC_SEQ_CST);
    futex(&in_handler, FUTEX_WAKE, 1, NULL, NULL);
    while (!atomic_load(&has_ended)) { /* the word stays as it is: there is nothing but a wake-up that ends the wait */
        futex(&word, FUTEX_WAKE, 1, NULL, NULL);
        sched_yield();
    }
    pthread_join(thread, NULL);
}

int restarted(void) {
    sem_wait(&sem);
    restart(count_and_wait);
    restart(count_and_wait_too);
    return 0;
}

/* While its word stays as it is, a waiter is found in each moment, however often its wait is restarted. */
int restarted_in_place(void) {
    enum { SIGNALS = 20 };
    const struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    pthread_t thread;
    int n_found = 0;
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, futex_waiter, NULL);
    yield_often();
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(thread, SIGUSR1);
        while (atomic_load(&flag) == i)
            ;
        compute_ms(2); /* with the turn */
        n_found += futex(&word, FUTEX_REQUEUE, 0, (const void *)1, &word) == 1;
    }
    printf("%d of %d\n", n_found, SIGNALS);
    while (!atomic_load(&has_ended)) { /* one that was in no queue must look again first */
        futex(&word, FUTEX_WAKE, 1, NULL, NULL);
        sched_yield();
    }
    pthread_join(thread, NULL);
    return 0;
}

static uint32_t *page;

static void *wait_for_unmapped(void *requeues) {
    const void *one = (const void *)1;
    int op = requeues != NULL ? FUTEX_CMP_REQUEUE : FUTEX_WAIT;
    futex(page, op, 1, requeues != NULL ? one : NULL, &word); /* fails: the value is another */
    atomic_store(&flag, 1);
    long r = futex(page, op, 0, requeues != NULL ? one : NULL, &word);
    puts(r == -1 ? strerrorname_np(errno) : "no error");
    return NULL;
}

int unmapped(void) {
    for (uintptr_t i = 0; i < 2; i++) {
        pthread_t thread;
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
            return 1;
        atomic_store(&flag, 0);
        pthread_create(&thread, NULL, wait_for_unmapped, (void *)i);
        sched_yield();
        while (atomic_load(&flag) == 0)
            ;
        compute_ms(20); /* with the turn */
        munmap(page, 4096);
        pthread_join(thread, NULL);
    }
    return 0;
}

static void *wait_in_vain(void *argument) {
    for (int i = 0; i < 200; i++) {
        futex(&word, FUTEX_WAIT, 1, NULL, NULL);
        for (volatile int k = 0; k < 20000; k++)
            ;
    }
    return argument;
}

int loaded(const char *library) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_in_vain, NULL);
    bool is_there = dlopen(library, RTLD_NOW) != NULL;
    pthread_join(thread, NULL);
    puts(is_there ? "done" : dlerror());
    return 0;
}
