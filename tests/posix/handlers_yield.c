/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal handlers that give way. In a program without jumps: where there are some, it is looked at more often what
 * masks threads have.
 */
#include "harness.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

/* Whoever runs is interrupted, and gives way in the handler: afterwards its mask is as it was. */
#define N_GIVE_WAY 6
static pthread_barrier_t barrier;
static atomic_int handled, ended;
static void give_way(int signo) {
    (void)signo;
    for (int i = 0; i < 3; i++)
        sched_yield();
    atomic_fetch_add(&handled, 1);
}
static void *meet_and_look(void *unused) {
    sigset_t mask;
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        int r = pthread_barrier_wait(&barrier);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
        OK(pthread_sigmask(SIG_BLOCK, NULL, &mask));
        CHECK_INT(sigismember(&mask, SIGUSR1), 0);
    }
    atomic_store(&ended, 1);
    return NULL;
}
TEST(handlers__may_give_way, "6 threads meet 2000 times, interrupted; their masks are as they were") {
    struct sigaction action = {.sa_handler = give_way, .sa_flags = SA_RESTART};
    pthread_t threads[N_GIVE_WAY];
    sigset_t one;
    SYS(sigaction(SIGUSR1, &action, NULL));
    OK(pthread_barrier_init(&barrier, NULL, N_GIVE_WAY));
    for (int i = 0; i < N_GIVE_WAY; i++)
        threads[i] = thread_start(meet_and_look, NULL);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    OK(pthread_sigmask(SIG_BLOCK, &one, NULL)); /* one of the others is interrupted */
    while (atomic_load(&ended) == 0) {
        SYS(kill(getpid(), SIGUSR1));
        sched_yield();
    }
    for (int i = 0; i < N_GIVE_WAY; i++)
        thread_join(threads[i]);
    CHECK(atomic_load(&handled) > 0);
}
