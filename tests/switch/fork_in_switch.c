/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For fork_in_switch.sh: threads that yield, and a handler that forks. gdb sends SIGUSR1 where a carrier has just left
 * a fiber that yields. In the child only the thread that forked goes on, and makes threads of its own. Exits with 0 if
 * so; 3: a thread of the parent has run in the child.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define YIELDS 2000
#define MOST_S 300

static atomic_int child; /* its id, in the parent */
static atomic_bool is_child;
static pthread_t forker;
static pthread_barrier_t barrier;

static void fork_here(int signal) {
    (void)signal;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(MOST_S);
        forker = pthread_self();
        atomic_store(&is_child, true);
    } else {
        atomic_store(&child, pid);
    }
}

static void *meet(void *unused) {
    for (int i = 0; i < YIELDS; i++) {
        sched_yield();
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

static void go_on_as_child(void) {
    pthread_t thread[THREADS];
    if (!pthread_equal(pthread_self(), forker))
        _exit(3);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, meet, NULL) != 0)
            _exit(4);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    _exit(0);
}

static void *yield(void *unused) {
    while (atomic_load(&child) == 0) {
        sched_yield();
        if (atomic_load(&is_child))
            go_on_as_child();
    }
    return unused;
}

int main(void) {
    pthread_t thread[THREADS];
    struct sigaction action = {.sa_handler = fork_here};
    int status = 0;
    alarm(MOST_S);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, yield, NULL) != 0)
            return EXIT_FAILURE;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    if (waitpid(atomic_load(&child), &status, 0) < 0)
        return EXIT_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
