/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signals that are sent to the process, which its main thread blocks: a thread that accepts them takes them while it
 * waits, with its own variables, identity and stacks.
 */
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/proc.h"
#include "topic.h"

enum { N = 4, SIGNALS = 40, MAIN_MS = 300 };

static struct worker {
    pthread_t thread;
    char stack[65536];
    atomic_int n;
    bool blocks; /* SIGUSR1 */
} worker[N];
static _Thread_local struct worker *mine;
static atomic_int n_handled, n_foreign, n_waiting, n_off_stack;
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem[N];
static bool over;

static void mask(int how, int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    OK(pthread_sigmask(how, &set, NULL));
}

static void handle(int signal) {
    char here;
    (void)signal;
    if (mine == NULL || !pthread_equal(mine->thread, pthread_self()) || mine->blocks) {
        atomic_fetch_add(&n_foreign, 1);
    } else {
        atomic_fetch_add(&mine->n, 1);
        if (&here < mine->stack || &here >= mine->stack + sizeof mine->stack)
            atomic_fetch_add(&n_off_stack, 1);
    }
    atomic_fetch_add(&n_handled, 1);
}

static void install(int flags) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
    SYS(sigaction(SIGUSR1, &action, NULL));
}

/* One after the other: each is handled before the next is sent. */
static void send_all(int n) {
    for (int i = 0; i < n; i++) {
        int before = atomic_load(&n_handled);
        SYS(kill(getpid(), SIGUSR1));
        await(&n_handled, before + 1);
    }
    CHECK_INT(n_foreign, 0);
}

static struct worker *enter(void *number) {
    mine = &worker[(long)number];
    mine->thread = pthread_self();
    return mine;
}

static void start_all(void *(*routine)(void *)) {
    for (long i = 0; i < N; i++)
        OK(pthread_create(&worker[i].thread, NULL, routine, (void *)i));
}

static void join_all(void) {
    for (int i = 0; i < N; i++)
        OK(pthread_join(worker[i].thread, NULL));
}

/* ---- at a barrier ---- */
static void *meet_twice(void *number) {
    enter(number);
    for (int i = 0; i < 20; i++)
        pthread_barrier_wait(&barrier);
    atomic_fetch_add(&n_waiting, 1);
    pthread_barrier_wait(&barrier);
    return NULL;
}
static void *last_to_meet(void *unused) {
    for (int i = 0; i < 20; i++)
        pthread_barrier_wait(&barrier);
    return unused;
}
static void at_a_barrier(bool before) {
    OK(pthread_barrier_init(&barrier, NULL, N + 1));
    install(SA_RESTART);
    start_all(meet_twice);
    last_to_meet(NULL);
    if (before)
        mask(SIG_BLOCK, SIGUSR1);
    await(&n_waiting, N);
    let_threads_block();
    if (!before)
        mask(SIG_BLOCK, SIGUSR1);
    send_all(SIGNALS);
    pthread_barrier_wait(&barrier);
    join_all();
}
TEST(process_signal__to_threads_at_a_barrier,
     "main blocks it, 4 threads wait at a barrier: 40 handlers on their own threads") {
    at_a_barrier(true);
}
TEST(process_signal__blocked_by_main_afterwards, "the same, and main blocks it when they wait already") {
    at_a_barrier(false);
}

/* ---- the thread that has taken them ends ---- */
static void *wait_for_own_post(void *number) {
    struct worker *w = enter(number);
    atomic_fetch_add(&n_waiting, 1);
    while (sem_wait(&sem[w - worker]) != 0)
        CHECK_INT(errno, EINTR);
    return NULL;
}
TEST(process_signal__taker_ends,
     "the thread that has handled it ends, then the next: the other threads that wait take it") {
    for (int i = 0; i < N; i++)
        SYS(sem_init(&sem[i], 0, 0));
    install(SA_RESTART);
    start_all(wait_for_own_post);
    mask(SIG_BLOCK, SIGUSR1);
    await(&n_waiting, N);
    for (int left = N; left > 0; left--) {
        let_threads_block();
        send_all(5);
        int taker = 0;
        while (worker[taker].n == 0)
            taker++;
        SYS(sem_post(&sem[taker]));
        OK(pthread_join(worker[taker].thread, NULL));
        worker[taker].n = 0;
        if (left > 1)
            CHECK_INT(n_foreign, 0);
    }
}

/* ---- the thread that has taken them blocks them ---- */
static void *wait_and_block(void *number) {
    struct worker *w = enter(number);
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&n_waiting, 1);
    while (!over) {
        OK(pthread_cond_wait(&cond, &mutex));
        if (w->n > 0 && !w->blocks && !over) {
            mask(SIG_BLOCK, SIGUSR1);
            w->blocks = true;
            atomic_fetch_sub(&n_waiting, 1);
        }
    }
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
TEST(process_signal__taker_blocks,
     "the thread that has handled it blocks it, and waits again: the other threads take it") {
    install(SA_RESTART);
    start_all(wait_and_block);
    mask(SIG_BLOCK, SIGUSR1);
    await(&n_waiting, N);
    for (int left = N; left > 0; left--) {
        let_threads_block();
        send_all(1);
        while (atomic_load(&n_waiting) == left) { /* of those that have handled one, one was left */
            OK(pthread_mutex_lock(&mutex));
            OK(pthread_cond_broadcast(&cond));
            OK(pthread_mutex_unlock(&mutex));
            sched_yield();
        }
        CHECK_INT(n_waiting, left - 1);
    }
    OK(pthread_mutex_lock(&mutex));
    over = true;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    join_all();
    CHECK_INT(n_handled, N);
}

/* ---- after main's end ---- */
static void *send_from_a_thread(void *unused) {
    mask(SIG_BLOCK, SIGUSR1);
    await(&n_waiting, N);
    /* Until it has ended main takes signals itself. Its kernel thread may live on, if threads are switched. */
    for (int ms = 0; proc_thread_state(getpid()) != 'Z' && ms < MAIN_MS; ms++)
        sleep_ms(1);
    let_threads_block();
    send_all(SIGNALS);
    _exit(0);
    return unused;
}
static void main_ends(void *unused) {
    pthread_t sender;
    OK(pthread_barrier_init(&barrier, NULL, N + 1));
    install(SA_RESTART);
    start_all(meet_twice);
    OK(pthread_create(&sender, NULL, send_from_a_thread, unused));
    last_to_meet(NULL);
    pthread_exit(NULL);
}
TEST(process_signal__after_the_end_of_main, "main has called pthread_exit: threads that wait handle 40") {
    run_in_child(main_ends, NULL);
}

/* ---- stacks of their own ---- */
static void *meet_on_own_stack(void *number) {
    struct worker *w = &worker[(long)number];
    stack_t stack = {.ss_sp = w->stack, .ss_size = sizeof w->stack};
    SYS(sigaltstack(&stack, NULL));
    return meet_twice(number);
}
TEST(process_signal__on_the_alternate_stack,
     "SA_ONSTACK, each thread has its own alternate stack: 40 handlers, each on its thread's") {
    OK(pthread_barrier_init(&barrier, NULL, N + 1));
    install(SA_RESTART | SA_ONSTACK);
    start_all(meet_on_own_stack);
    last_to_meet(NULL);
    mask(SIG_BLOCK, SIGUSR1);
    await(&n_waiting, N);
    let_threads_block();
    send_all(SIGNALS);
    CHECK_INT(n_off_stack, 0);
    pthread_barrier_wait(&barrier);
    join_all();
}

/* ---- without a handler ---- */
static void dies(void *unused) {
    (void)unused;
    OK(pthread_barrier_init(&barrier, NULL, N + 1));
    start_all(meet_twice);
    last_to_meet(NULL);
    mask(SIG_BLOCK, SIGUSR1);
    await(&n_waiting, N);
    let_threads_block();
    SYS(kill(getpid(), SIGUSR1));
    sleep_ms(LONG_MS);
}
TEST(process_signal__default_action, "no handler, main blocks it, threads that wait do not: the process ends by it") {
    int status;
    pid_t child = child_start(dies, NULL);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
}

/* ---- all block it, one waits for it ---- */
static void *take_by_sigwait(void *unused) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    for (int i = 0; i < SIGNALS; i++) {
        CHECK_INT(sigwait(&set, &signal), 0);
        CHECK_INT(signal, SIGUSR1);
        atomic_fetch_add(&n_handled, 1);
    }
    return unused;
}
TEST(process_signal__to_sigwait, "all block it, threads wait at a barrier, one in sigwait: that one gets 40") {
    OK(pthread_barrier_init(&barrier, NULL, N + 1));
    mask(SIG_BLOCK, SIGUSR1);
    start_all(meet_twice);
    last_to_meet(NULL);
    await(&n_waiting, N);
    pthread_t taker = thread_start(take_by_sigwait, NULL);
    let_threads_block();
    send_all(SIGNALS);
    thread_join(taker);
    pthread_barrier_wait(&barrier);
    join_all();
}

/* ---- under way ---- */
static void *turn(void *number) {
    enter(number);
    atomic_fetch_add(&n_waiting, 1);
    while (!over)
        pthread_barrier_wait(&barrier);
    return NULL;
}
TEST(process_signal__while_threads_meet, "threads meet at a barrier all the time; main blocks and accepts it in turn") {
    static struct worker main_worker;
    mine = &main_worker;
    mine->thread = pthread_self();
    OK(pthread_barrier_init(&barrier, NULL, N));
    install(SA_RESTART);
    start_all(turn);
    await(&n_waiting, N);
    for (int i = 0; i < 100; i++) {
        mask(i % 2 == 0 ? SIG_BLOCK : SIG_UNBLOCK, SIGUSR1);
        mine->blocks = i % 2 == 0;
        send_all(3);
    }
    /* They are under way: the test's process ends beside them. */
}
