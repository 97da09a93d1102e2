/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads wait for a plain variable that another one writes, which waits for the turn. */
#include <sys/syscall.h>

#include "ordered.h"

static atomic_int setter_tid;

static void *setter(void *argument) {
    (void)argument;
    atomic_store(&setter_tid, gettid());
    locked_add(1);
    atomic_store(&flag, 1);
    return NULL;
}

static int loop(bool reads_clock) {
    struct timespec now;
    pthread_t thread;
    pthread_create(&thread, NULL, setter, NULL);
    while (atomic_load(&flag) == 0)
        if (reads_clock)
            clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

int stalled(void) {
    return loop(false);
}

int stalled_at_clock(void) {
    return loop(true);
}

static void *spinner(void *argument) {
    for (int i = 0; i < YIELDS / 2; i++)
        sched_yield();
    while (atomic_load(&flag) == 0)
        ;
    return argument;
}

/*
 * The setter waits for a mutex. It is woken, and the turn goes to a thread that loops already: no thread waits for the
 * turn but the one that slept. That is so for one number of yields.
 */
static void wake_while_others_loop(int n_yields_before) {
    pthread_t looping, kept_waiting;
    atomic_store(&flag, 0);
    pthread_mutex_lock(&mutex);
    pthread_create(&looping, NULL, spinner, NULL);
    pthread_create(&kept_waiting, NULL, setter, NULL);
    for (int i = 0; i < n_yields_before; i++)
        sched_yield();
    pthread_mutex_unlock(&mutex);
    while (atomic_load(&flag) == 0)
        ;
    pthread_join(looping, NULL);
    pthread_join(kept_waiting, NULL);
}

int stalled_after_wait(void) {
    for (int i = 0; i < YIELDS; i++)
        wake_while_others_loop(i);
    puts("done");
    return 0;
}

static void on_signal(int number) {
    (void)number;
}

/* The waiting thread's sleeps are interrupted sooner than it would look for a stall. */
int stalled_by_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    pthread_t thread;
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, setter, NULL);
    while (atomic_load(&flag) == 0) {
        syscall(SYS_tgkill, getpid(), atomic_load(&setter_tid), SIGUSR1);
        for (volatile int i = 0; i < 20000; i++)
            ;
    }
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
