/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signal handlers that yield, or sleep. In a program without jumps: where there are some, it is looked at more often
 * what masks threads have.
 */
#include "topic.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

/*
 * The running thread is interrupted and waits in the handler: afterwards its signal mask is as it was, and what it
 * waited for before has not been lost.
 */
#define N_YIELDERS 6
static pthread_barrier_t barrier;
static atomic_int handled, met, enough, ended;
static void yield_in_handler(int signo) {
    (void)signo;
    for (int i = 0; i < 3; i++)
        sched_yield();
    atomic_fetch_add(&handled, 1);
}
static void sleep_in_handler(int signo) {
    (void)signo;
    nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    atomic_fetch_add(&handled, 1);
}
/* Until it is enough: the last to arrive says so to all. */
static void *meet_and_look(void *unused) {
    sigset_t mask;
    (void)unused;
    while (atomic_load(&ended) == 0) {
        int r = pthread_barrier_wait(&barrier);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
        if (r != 0) {
            atomic_store(&ended, atomic_load(&enough));
            atomic_fetch_add(&met, 1);
        }
        OK(pthread_sigmask(SIG_BLOCK, NULL, &mask));
        CHECK_INT(sigismember(&mask, SIGUSR1), 0);
        r = pthread_barrier_wait(&barrier);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    }
    return NULL;
}
/*
 * They met often enough and enough of them were interrupted; or that takes too long. Each signal needs a turn of the
 * thread that sends it, and beside many busy processes that gets a core a few times a second.
 */
static bool is_enough(int meetings, int interrupted) {
    int by_handlers = atomic_load(&handled) * (meetings / interrupted), by_met = atomic_load(&met);
    return !another_round(by_handlers < by_met ? by_handlers : by_met, meetings, meetings);
}
/* With SA_RESETHAND the handler has been called before it is installed again, and the signal sent again. */
static void are_interrupted(void (*handler)(int), int flags, int meetings, int interrupted) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | flags};
    int n_sent = 0;
    pthread_t threads[N_YIELDERS];
    sigset_t one;
    SYS(sigaction(SIGUSR1, &action, NULL));
    OK(pthread_barrier_init(&barrier, NULL, N_YIELDERS));
    for (int i = 0; i < N_YIELDERS; i++)
        threads[i] = thread_start(meet_and_look, NULL);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    OK(pthread_sigmask(SIG_BLOCK, &one, NULL)); /* one of the others is interrupted */
    /*
     * A signal only after the threads met again: otherwise one may be pending whenever a handler ends, and the thread
     * that the others wait for never executes an instruction of its own.
     */
    for (int before = -1; atomic_load(&ended) == 0; sched_yield()) {
        int now = atomic_load(&met);
        if (atomic_load(&enough) == 0 && is_enough(meetings, interrupted))
            atomic_store(&enough, 1);
        bool is_over = (flags & (int)SA_RESETHAND) == 0 || atomic_load(&handled) == n_sent;
        if (now == before || !is_over)
            continue;
        if (flags != 0)
            SYS(sigaction(SIGUSR1, &action, NULL));
        SYS(kill(getpid(), SIGUSR1));
        n_sent++;
        before = now;
    }
    for (int i = 0; i < N_YIELDERS; i++)
        thread_join(threads[i]);
}
TEST(handlers__may_yield_in_handler, "6 threads meet 2000 times, interrupted; their masks are as they were") {
    are_interrupted(yield_in_handler, 0, 2000, 500);
}
TEST(handlers__may_sleep_in_handler, "6 threads meet 500 times, interrupted; their masks are as they were") {
    are_interrupted(sleep_in_handler, 0, 500, 100);
}
TEST(handlers__once_may_yield_in_handler, "SA_RESETHAND, installed again each time; 6 threads meet 500 times") {
    are_interrupted(yield_in_handler, (int)SA_RESETHAND, 500, 100);
}
TEST(handlers__once_may_sleep_in_handler, "SA_RESETHAND, installed again each time; 6 threads meet 200 times") {
    are_interrupted(sleep_in_handler, (int)SA_RESETHAND, 200, 50);
}
