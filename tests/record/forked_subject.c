/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Main waits for a lock with a time that is over, again and again, beside many threads that hold locks: the recorder
 * looks which of them has it. A timer's handler forks meanwhile, and the child goes on where main was. Prints how many
 * children ended otherwise than they should.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/threads.h"

enum { N = 200, FORKS = 20, FURTHER = 20 };

static const struct timespec over = {1, 0};
static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER, others[N];
static pthread_barrier_t taken, done;
static pid_t children[FORKS];
static volatile sig_atomic_t n_children, is_child;

static void forks(int unused) {
    (void)unused;
    if (is_child || n_children == FORKS)
        return;
    const int before = errno;
    const pid_t child = fork();
    is_child = child == 0;
    if (child > 0)
        children[n_children++] = child;
    errno = before;
}

static void *holds(void *lock) {
    OK(pthread_mutex_lock(lock));
    if (lock == &others[0])
        OK(pthread_mutex_lock(&wanted));
    pthread_barrier_wait(&taken);
    pthread_barrier_wait(&done);
    return NULL;
}

static void start_timer(int us) {
    const struct itimerval each = {{0, us}, {0, us}};
    SYS(setitimer(ITIMER_REAL, &each, NULL));
}

int main(void) {
    pthread_t threads[N];
    int n_bad = 0;
    sigset_t alarm; /* which is main's alone */
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    OK(pthread_sigmask(SIG_BLOCK, &alarm, NULL));
    OK(pthread_barrier_init(&taken, NULL, N + 1));
    OK(pthread_barrier_init(&done, NULL, N + 1));
    for (int i = 0; i < N; i++) {
        OK(pthread_mutex_init(&others[i], NULL));
        threads[i] = thread_start(holds, &others[i]);
    }
    pthread_barrier_wait(&taken);
    SYS(sigaction(SIGALRM, &(struct sigaction){.sa_handler = forks, .sa_flags = SA_RESTART}, NULL));
    OK(pthread_sigmask(SIG_UNBLOCK, &alarm, NULL));
    start_timer(10000);
    while (n_children < FORKS && !is_child)
        CHECK_RC(pthread_mutex_timedlock(&wanted, &over), ETIMEDOUT);
    if (is_child) {
        for (int i = 0; i < FURTHER; i++)
            CHECK_RC(pthread_mutex_timedlock(&wanted, &over), ETIMEDOUT);
        _exit(0);
    }
    start_timer(0);
    for (int i = 0; i < FORKS; i++) {
        int status;
        SYS(waitpid(children[i], &status, 0));
        n_bad += status != 0;
    }
    pthread_barrier_wait(&done);
    for (int i = 0; i < N; i++)
        thread_join(threads[i]);
    printf("%d of %d\n", n_bad, FORKS);
    return 0;
}
