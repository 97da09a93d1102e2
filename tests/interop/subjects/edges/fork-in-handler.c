/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A signal handler forks while its thread is in pthread_cond_timedwait, beside another waiter on the same condition.
 * In the child the handler returns into the wait, which must end by its deadline with the mutex held: of the two
 * waiters only this one exists there, and the child goes on with threads of its own and the same condition. In the
 * parent both waiters are still served.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/threads.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile pid_t child = -1;
static pid_t beside_tid, forker_tid, later_tid;
static int go;

static void fork_here(int number) {
    (void)number;
    child = fork();
}

static int wait_until(int seconds) {
    struct timespec at = time_in_ms(CLOCK_REALTIME, seconds * 1000);
    int result = 0;
    while (!go && result == 0)
        result = pthread_cond_timedwait(&cond, &lock, &at);
    return result;
}

static void *beside(void *arg) {
    pthread_mutex_lock(&lock);
    asleep_from_here(arg);
    int result = wait_until(8);
    pthread_mutex_unlock(&lock);
    return (void *)(long)result;
}

static void set_go(void) {
    pthread_mutex_lock(&lock);
    go = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
}

static void *forker(void *arg) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_mutex_lock(&lock);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    asleep_from_here(&forker_tid);
    int result = wait_until(1);
    CHECK_RC(result, ETIMEDOUT);
    CHECK_RC(pthread_mutex_trylock(&lock), EBUSY);
    pthread_mutex_unlock(&lock);
    if (child == 0) {
        alarm(300);
        pthread_t later = thread_start(beside, &later_tid);
        await_asleep(&later_tid);
        set_go();
        void *lost = thread_join(later);
        _exit(lost == NULL ? 0 : 2);
    }
    return arg;
}

int main(void) {
    sigset_t set;
    int status = -1;
    signal(SIGUSR1, fork_here);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t waiter = thread_start(beside, &beside_tid);
    await_asleep(&beside_tid);
    pthread_t forking = thread_start(forker, NULL);
    await_asleep(&forker_tid);
    pthread_kill(forking, SIGUSR1);
    thread_join(forking);
    set_go();
    void *lost = thread_join(waiter);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    printf("child: %s %d; the waiter beside: %ld\n", WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), (long)lost);
    return status != 0 || lost != NULL;
}
