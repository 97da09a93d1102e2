/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Private futexes by syscall(): what ends a wait, or meets it, from outside: signals, cancellation, fork, the process's
 * end; and many threads. The kernel is the oracle. Source: futex(2).
 */
#include "futex_waiter.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static uint32_t word2;

static void handle(void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    SYS(sigaction(SIGUSR1, &action, NULL));
}
static void check_fails(const struct waiter *w, int error) {
    thread_join(w->thread);
    CHECK_INT(w->result, -1);
    CHECK_INT(w->error, error);
}

/* --- signals ------------------------------------------------------------------------------------------------------ */
TEST(futex_wait__handler_without_restart_returns_EINTR) {
    struct waiter w;
    signal_counter(SIGUSR1, false);
    start(&w);
    signal_thread(w.thread, SIGUSR1, 1);
    check_fails(&w, EINTR);
    CHECK_INT(wake(&word, INT_MAX), 0);
}
TEST(futex_wait__handler_as_soon_as_it_waits_returns_EINTR, "the waiter is in the queue, and need not sleep yet") {
    signal_counter(SIGUSR1, false);
    for (int i = 0; i < 100; i++) {
        struct waiter w = {.at = &word, .op = FUTEX_WAIT};
        w.thread = thread_start(wait_once, &w);
        while (n_waiters(&word) == 0)
            sched_yield();
        pthread_kill(w.thread, SIGUSR1);
        check_fails(&w, EINTR);
    }
}
TEST(futex_wait__handler_with_restart_goes_on) {
    struct waiter w;
    signal_counter(SIGUSR1, true);
    start(&w);
    signal_thread(w.thread, SIGUSR1, 3);
    let_threads_block();
    CHECK_INT(atomic_load(&n_left), 0);
    await_waiters(&word, 1);
    CHECK_INT(wake(&word, INT_MAX), 1);
    check_woken(&w);
}
TEST(futex_wait__with_a_timeout_is_never_restarted, "EINTR in spite of SA_RESTART") {
    const struct timespec time = {LONG_MS / 1000, 0};
    struct waiter w = {.at = &word, .op = FUTEX_WAIT, .timeout = &time};
    signal_counter(SIGUSR1, true);
    w.thread = thread_start(wait_once, &w);
    await_waiters(&word, 1);
    let_threads_block();
    signal_thread(w.thread, SIGUSR1, 1);
    check_fails(&w, EINTR);
}
static void change_word(int signo) {
    (void)signo;
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    atomic_fetch_add(&signals_seen, 1);
}
static void looks_again_after(int flags) {
    struct waiter w;
    handle(change_word, SA_RESTART | flags);
    start(&w);
    signal_thread(w.thread, SIGUSR1, 1);
    check_fails(&w, EAGAIN);
}
TEST(futex_wait__restarted_looks_at_the_word_again, "the handler changes the word, and makes no wake-up: EAGAIN") {
    looks_again_after(0);
}
TEST(futex_wait__restarted_looks_again_after_a_handler_that_is_reset, "the same with SA_RESETHAND") {
    looks_again_after((int)SA_RESETHAND);
}
static void wake_word(int signo) {
    (void)signo;
    int error = errno;
    wake(&word, INT_MAX);
    errno = error;
    atomic_fetch_add(&signals_seen, 1);
}
TEST(futex_wake__by_a_handler_of_the_waiter_itself, "it returns, with 0 or EINTR") {
    struct waiter w;
    handle(wake_word, 0);
    start(&w);
    signal_thread(w.thread, SIGUSR1, 1);
    thread_join(w.thread);
    CHECK(w.result == 0 || w.error == EINTR);
    CHECK_INT(wake(&word, INT_MAX), 0);
}
static void wait_in_handler(int signo) {
    (void)signo;
    int error = errno;
    word2 = 0;
    atomic_fetch_add(&signals_seen, 1);
    while (__atomic_load_n(&word2, __ATOMIC_SEQ_CST) == 0)
        futex(&word2, FUTEX_WAIT, 0, NULL, NULL, 0);
    errno = error;
}
TEST(futex_wait__in_a_handler_that_interrupts_a_wait, "both are woken") {
    struct waiter w;
    handle(wait_in_handler, SA_RESTART);
    start(&w);
    signal_thread(w.thread, SIGUSR1, 1);
    let_threads_block();
    __atomic_store_n(&word2, 1, __ATOMIC_SEQ_CST);
    CHECK(wake(&word2, 1) <= 1);
    await_waiters(&word, 1);
    CHECK_INT(wake(&word, 1), 1);
    check_woken(&w);
}
static void wait_and_change_word(int signo) {
    const struct timespec time = {0, SHORT_MS * 1000000l};
    (void)signo;
    int error = errno;
    futex(&word2, FUTEX_WAIT, 0, &time, NULL, 0);
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    atomic_fetch_add(&signals_seen, 1);
    errno = error;
}
TEST(futex_wait__restarted_after_a_wait_in_the_handler_looks_again, "at the word that the handler changes: EAGAIN") {
    struct waiter w;
    handle(wait_and_change_word, SA_RESTART);
    start(&w);
    signal_thread(w.thread, SIGUSR1, 1);
    check_fails(&w, EAGAIN);
}
static uint32_t *page;
static void unmap_word(int signo) {
    (void)signo;
    munmap(page, 4096);
    atomic_fetch_add(&signals_seen, 1);
}
TEST(futex_wait__restarted_finds_no_word, "the handler has unmapped it: EFAULT") {
    struct waiter w;
    handle(unmap_word, SA_RESTART);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    start_at(&w, page, 0);
    signal_thread(w.thread, SIGUSR1, 1);
    check_fails(&w, EFAULT);
}
static void leave_by_exit(int signo) {
    (void)signo;
    pthread_exit(NULL);
}
TEST(futex_wait__thread_ends_in_a_handler, "leaves no waiter behind") {
    struct waiter w[2];
    handle(leave_by_exit, 0);
    start(&w[0]);
    start(&w[1]);
    OK(pthread_kill(w[0].thread, SIGUSR1));
    thread_join(w[0].thread);
    CHECK_INT(wake(&word, 1), 1);
    check_woken(&w[1]);
}

/* --- cancellation, processes -------------------------------------------------------------------------------------- */
TEST(futex_wait__is_no_cancellation_point, "a cancelled thread waits on, and ends at the next point") {
    struct waiter w;
    start(&w);
    OK(pthread_cancel(w.thread));
    await_waiters(&word, 1);
    let_threads_block();
    int woken = (int)wake(&word, INT_MAX);
    thread_join(w.thread);
    CHECK_INT(woken, 1);
}
static void *wait_asynchronously(void *unused) {
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    for (;;)
        futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0);
    return unused;
}
TEST(futex_wait__cancelled_asynchronously_ends) {
    pthread_t thread = thread_start(wait_asynchronously, NULL);
    let_threads_block();
    OK(pthread_cancel(thread));
    thread_join_cancelled(thread);
    CHECK_INT(wake(&word, INT_MAX), 0);
}
static void child_of_waiters(void *unused) {
    struct waiter w;
    (void)unused;
    CHECK_INT(wake(&word, INT_MAX), 0);
    start(&w);
    CHECK_INT(wake(&word, INT_MAX), 1);
    check_woken(&w);
}
TEST(futex__forked_child_has_no_waiters, "of its parent; its own are woken; so are the parent's afterwards") {
    struct waiter w[3];
    for (int i = 0; i < 3; i++)
        start(&w[i]);
    run_in_child(child_of_waiters, NULL);
    CHECK_INT(wake(&word, INT_MAX), 3);
    for (int i = 0; i < 3; i++)
        check_woken(&w[i]);
}
static pid_t test_process;
static atomic_int child_woken;
static void *wake_until_it_has_returned(void *unused) {
    while (atomic_load(&child_woken) == 0) {
        wake(&word, 1);
        sleep_ms(1);
    }
    return unused;
}
static void fork_in_handler(int signo) {
    (void)signo;
    int error = errno;
    pid_t child = fork();
    if (child == 0) {
        thread_start(wake_until_it_has_returned, NULL);
        return;
    }
    int status;
    while (waitpid(child, &status, 0) == -1 && errno == EINTR)
        ;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    errno = error;
    atomic_fetch_add(&signals_seen, 1);
}
static void *wait_and_be_forked(void *unused) {
    futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0);
    atomic_store(&child_woken, 1);
    if (getpid() != test_process)
        _exit(0);
    return unused;
}
TEST(futex_wait__its_handler_forks_and_returns_in_the_child,
     "the child's wait is woken in the child, the parent's goes on") {
    test_process = getpid();
    handle(fork_in_handler, SA_RESTART);
    pthread_t thread = thread_start(wait_and_be_forked, NULL);
    let_threads_block();
    signal_thread(thread, SIGUSR1, 1);
    let_threads_block();
    await_waiters(&word, 1);
    CHECK_INT(wake(&word, INT_MAX), 1);
    thread_join(thread);
}
static void exit_with_waiters(void *unused) {
    struct waiter *w = calloc(3, sizeof *w);
    (void)unused;
    for (int i = 0; i < 3; i++)
        start(&w[i]);
    exit(0);
}
TEST(futex__process_ends_with_waiters) {
    run_in_child(exit_with_waiters, NULL);
}

/* --- many --------------------------------------------------------------------------------------------------------- */
enum { MANY = 4000 };
static atomic_int n_waiting;
static void *wait_for_start(void *unused) {
    atomic_fetch_add(&n_waiting, 1);
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0);
    return unused;
}
TEST(futex_wake__thousands_of_threads_on_one_word, "all go on") {
    static pthread_t threads[MANY];
    int n = 0;
    pthread_attr_t attr;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstacksize(&attr, 1 << 17));
    while (n < MANY && pthread_create(&threads[n], &attr, wait_for_start, NULL) == 0)
        n++;
    CHECK(n >= 100);
    await(&n_waiting, n);
    let_threads_block();
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    CHECK(wake(&word, INT_MAX) <= n);
    for (int i = 0; i < n; i++)
        thread_join(threads[i]);
    CHECK_INT(wake(&word, INT_MAX), 0);
}

/* A turn goes round: each thread waits until the word is its number, and passes it on. */
enum { RING = 8, TURNS = 4000 };
static void *take_turns(void *argument) {
    uint32_t me = (uint32_t)(uintptr_t)argument;
    for (;;) {
        uint32_t seen;
        while ((seen = __atomic_load_n(&word, __ATOMIC_ACQUIRE)) < TURNS && seen % RING != me)
            futex(&word, FUTEX_WAIT, seen, NULL, NULL, 0);
        if (seen >= TURNS)
            return NULL;
        __atomic_store_n(&word, seen + 1, __ATOMIC_RELEASE);
        futex(&word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}
TEST(futex__a_turn_goes_round, "the look at the word and the sleep are one step: no wake-up is missed") {
    pthread_t threads[RING];
    for (uintptr_t i = 0; i < RING; i++)
        threads[i] = thread_start(take_turns, (void *)i);
    for (int i = 0; i < RING; i++)
        thread_join(threads[i]);
    CHECK_INT(word, TURNS);
}

/* A mutex of three states (Drepper, "Futexes Are Tricky", mutex 2) and a condition that moves its waiters. */
static uint32_t lock_word, sequence;
static int shared, round_over;
static void take(void) {
    uint32_t zero = 0;
    if (__atomic_compare_exchange_n(&lock_word, &zero, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE) != 0)
        futex(&lock_word, FUTEX_WAIT, 2, NULL, NULL, 0);
}
static void drop(void) {
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
        wake(&lock_word, 1);
}
enum { WORKERS = 6, ROUNDS = 300 };
static int arrived;
static void *meet(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        take();
        shared++;
        if (++arrived == WORKERS) {
            arrived = 0;
            round_over++;
            uint32_t now = __atomic_add_fetch(&sequence, 1, __ATOMIC_SEQ_CST);
            /* Waiters go to the mutex: it counts as contended. */
            __atomic_store_n(&lock_word, 2, __ATOMIC_SEQ_CST);
            futex(&sequence, FUTEX_CMP_REQUEUE, 1, number(INT_MAX), &lock_word, now);
        } else {
            for (int mine = round_over; round_over == mine;) {
                uint32_t seen = __atomic_load_n(&sequence, __ATOMIC_SEQ_CST);
                drop();
                futex(&sequence, FUTEX_WAIT, seen, NULL, NULL, 0);
                while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE) != 0)
                    futex(&lock_word, FUTEX_WAIT, 2, NULL, NULL, 0);
            }
        }
        drop();
    }
    return unused;
}
TEST(futex__mutex_and_condition_of_the_program, "6 threads meet 300 times; waiters are moved to the mutex") {
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        threads[i] = thread_start(meet, NULL);
    for (int i = 0; i < WORKERS; i++)
        thread_join(threads[i]);
    CHECK_INT(shared, WORKERS * ROUNDS);
    CHECK_INT(round_over, ROUNDS);
}
