#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The engine det and siglongjmp out of a signal handler into another one, which waits.
. "$(dirname "$0")/lib.sh"

# A handler waits, and another one jumps back into it: what the first has interrupted waits on.
cat >nested.c <<'END'
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
enum { ROUNDS = 5 };
static sigjmp_buf way_out;
static sem_t sem;
static pthread_barrier_t barrier;
static pthread_t first;
static atomic_int come, early, handled;
static volatile sig_atomic_t may_jump;
static void jump(int signal) {
    (void)signal;
    if (may_jump)
        siglongjmp(way_out, 1);
}
static void wait_in_handler(int signal) {
    (void)signal;
    if (sigsetjmp(way_out, 1) == 0) {
        may_jump = 1;
        sem_wait(&sem);
    }
    may_jump = 0;
    atomic_fetch_add(&handled, 1);
}
static void *comes_late(void *unused) {
    for (int i = 1; i <= ROUNDS; i++) {
        usleep(20000);
        pthread_kill(first, SIGUSR1);
        do { /* the other signal's handler may not have begun to wait */
            usleep(20000);
            pthread_kill(first, SIGUSR2);
        } while (atomic_load(&handled) < i);
        usleep(20000);
        atomic_store(&come, i);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}
int main(void) {
    struct sigaction action = {.sa_handler = wait_in_handler};
    pthread_t thread;
    sem_init(&sem, 0, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    first = pthread_self();
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = jump;
    sigaction(SIGUSR2, &action, NULL);
    pthread_create(&thread, NULL, comes_late, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        early += atomic_load(&come) < i;
    }
    pthread_join(thread, NULL);
    printf("%d\n", atomic_load(&early));
    return 0;
}
END
$CC -O1 -pthread nested.c -o nested
for wait in adaptive switch; do
    within 20 "$SUBUTAI" run --engine det --wait $wait --log log -- ./nested
    echo "$status $out"
done >ends
out=$(cat ends)
check "a jump from one handler into another: the barrier holds" is "$(sort -u ends)" '0 0'

# The same where the first handler waits for the turn, which another thread keeps as it computes, and then returns.
cat >posts_in_handler.c <<'END'
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
enum { ROUNDS = 5 };
static sigjmp_buf way_out;
static sem_t sem, other;
static pthread_t first;
static void compute(void) {
    for (volatile int k = 0; k < 20000000; k++)
        ;
}
static volatile sig_atomic_t may_jump;
static void jump(int signal) {
    (void)signal;
    if (may_jump)
        siglongjmp(way_out, 1);
}
static void post_in_handler(int signal) {
    (void)signal;
    if (sigsetjmp(way_out, 1) == 0) {
        may_jump = 1;
        sem_post(&other);
    }
    may_jump = 0;
}
static void *computes(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        sem_trywait(&other);
        pthread_kill(first, SIGUSR1);
        compute();
        pthread_kill(first, SIGUSR2);
        compute();
        sem_post(&sem);
    }
    return unused;
}
int main(int argc, char **argv) {
    (void)argv;
    struct sigaction action = {.sa_handler = post_in_handler, .sa_flags = argc > 1 ? SA_RESTART : 0};
    pthread_t thread;
    sem_init(&sem, 0, 0);
    sem_init(&other, 0, 0);
    first = pthread_self();
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = jump;
    sigaction(SIGUSR2, &action, NULL);
    pthread_create(&thread, NULL, computes, NULL);
    for (int n = 0; n < ROUNDS;)
        n += sem_wait(&sem) == 0;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
END
$CC -O1 -pthread posts_in_handler.c -o posts_in_handler
for wait in adaptive switch; do
    for restart in '' restart; do # the kernel begins the interrupted sleep again
        within 20 "$SUBUTAI" run --engine det --wait $wait --log log -- ./posts_in_handler $restart
        echo "$status $out"
    done
done >ends
out=$(cat ends)
check "a jump out of a handler's wait for the turn: the others get the turn" is "$(sort -u ends)" '0 done'
finish
