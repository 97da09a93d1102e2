/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread that waits for the turn at a barrier is served by the thread that passes the turn, and signal handlers come
 * in between. The main thread keeps the turn and makes no operation until the other one sleeps in that wait.
 */
#include <string.h>
#include <sys/wait.h>

#include "ordered.h"

enum { WAYS = 50 };
static pthread_barrier_t meeting;
static pthread_t other;
static atomic_int tid, in_handler, may_return, result;
static enum { COMPUTES, LOCKS, EXITS, FORKS, RETURNS } in_the_handler;
static bool is_child, is_child_good;

static bool is_asleep(void) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&tid));
    FILE *file = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    return strstr(text, ") S ") != NULL;
}

static void on_signal(int number) {
    (void)number;
    atomic_store(&in_handler, 1);
    if (in_the_handler == LOCKS)
        locked_add(2);
    if (in_the_handler == EXITS)
        pthread_exit(NULL);
    if (in_the_handler == FORKS || in_the_handler == RETURNS) {
        int status = 1;
        pid_t child = fork();
        is_child = child == 0;
        if (is_child)
            locked_add(2);
        if (is_child && in_the_handler == RETURNS)
            return;
        if (is_child)
            _exit(0);
        waitpid(child, &status, 0);
        is_child_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    while (atomic_load(&may_return) == 0)
        ;
}

/* The main thread yields too, and has the turn when `tid` is set. */
static void *arrives(void *unused) {
    sched_yield();
    atomic_store(&tid, gettid());
    atomic_store(&result, pthread_barrier_wait(&meeting) == PTHREAD_BARRIER_SERIAL_THREAD ? 1 : 2);
    locked_add(1);
    if (is_child)
        _exit(0);
    return unused;
}

static void begin(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_create(&other, NULL, arrives, NULL);
    sched_yield();
    while (atomic_load(&tid) == 0 || !is_asleep())
        ;
}

/* By a system call: no operation. The handler's first operation, if it makes one, waits for the turn when this returns.
 */
static void interrupt(void) {
    tgkill(getpid(), atomic_load(&tid), SIGUSR1);
    while (atomic_load(&in_handler) == 0 || (in_the_handler != COMPUTES && !is_asleep()))
        ;
}

/* The main thread arrives; `is_last`: after the other one. Then the other one's handler may return. */
static int meet_and_end(bool is_last) {
    bool is_serial = pthread_barrier_wait(&meeting) == PTHREAD_BARRIER_SERIAL_THREAD;
    atomic_store(&may_return, 1);
    pthread_join(other, NULL);
    puts(is_serial == is_last && atomic_load(&result) == (is_last ? 2 : 1) ? "done" : "wrong");
    return 0;
}

/* It is in a handler when the turn comes to it, and the main thread does not wait for that. */
int served_in_handler(void) {
    begin();
    interrupt();
    return meet_and_end(false);
}

/* The handler makes an operation of its thread: before the thread arrives, which it does afterwards. */
int offer_taken_back(void) {
    in_the_handler = LOCKS;
    atomic_store(&may_return, 1);
    begin();
    interrupt();
    return meet_and_end(false);
}

/* The thread has been served, and waits at the barrier: the handler is a guest. */
int guest_of_served(void) {
    in_the_handler = LOCKS;
    atomic_store(&may_return, 1);
    begin();
    sched_yield();
    interrupt();
    return meet_and_end(true);
}

/* The thread ends in the handler: it does not arrive. */
int offer_of_ended(void) {
    in_the_handler = EXITS;
    begin();
    interrupt();
    pthread_join(other, NULL);
    puts(atomic_load(&result) == 0 ? "done" : "wrong");
    return 0;
}

/* The handler forks; the child has operations of its own, and the thread arrives. */
int offer_and_fork(void) {
    in_the_handler = FORKS;
    atomic_store(&may_return, 1);
    begin();
    interrupt();
    return meet_and_end(false);
}

/* The thread has been served. The child's handler makes an operation and returns: the wait is over there. */
int served_and_fork(void) {
    in_the_handler = RETURNS;
    atomic_store(&may_return, 1);
    begin();
    sched_yield();
    interrupt();
    int status = meet_and_end(true);
    puts(is_child_good ? "child done" : "wrong");
    return status;
}

/* One thread computes after each operation; the other one does not, and has the turn next. */
static void *computes(void *unused) {
    for (int i = 0; i < WAYS; i++) {
        sched_yield();
        for (volatile int k = 0; k < 400000; k++)
            ;
    }
    return unused;
}

static void *yields(void *unused) {
    for (int i = 0; i < WAYS; i++)
        sched_yield();
    return unused;
}

int way_made(void) {
    pthread_t thread[2];
    pthread_create(&thread[0], NULL, computes, NULL);
    pthread_create(&thread[1], NULL, yields, NULL);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    return 0;
}

/* The main thread leaves by exit and waits for the turn, which the other one has. That leaves by _exit meanwhile. */
static void *leaves(void *unused) {
    atomic_store(&tid, 1);
    while (atomic_load(&may_return) == 0)
        ;
    for (volatile int k = 0; k < 20000000; k++)
        ;
    _exit(0);
    return unused;
}

int left_twice(void) {
    pthread_create(&other, NULL, leaves, NULL);
    while (atomic_load(&tid) == 0)
        ;
    sched_yield();
    atomic_store(&may_return, 1);
    return 0;
}
