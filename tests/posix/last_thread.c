/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The last thread of a process ends, main before it by pthread_exit or a cancellation: exit() runs on a thread of the
 * program's, with that thread's variables, signal mask and name and the process's files. And all keys of
 * thread-specific data are the program's.
 */
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "topic.h"

enum { N_THREADS = 4, ROUNDS = 20, RUNS = 10 };

static int report[2];
static pthread_barrier_t barrier;
static pthread_t main_thread;
static pthread_key_t key;
static sem_t never, main_waits;
static char own_name[32];      /* of the program's threads; under an emulator it is not the program's */
static _Thread_local int mine; /* set by each thread of the program */

static sigset_t only(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    return set;
}

static void enter_program(int number) {
    sigset_t set = only(SIGUSR2);
    mine = number;
    OK(pthread_sigmask(SIG_SETMASK, &set, NULL));
}

/* From glibc 2.43 on main's end blocks all signals; if main is the last thread, exit() runs so. */
static bool ends_blocked(void) {
    int minor = 0;
    return pthread_equal(pthread_self(), main_thread) && sscanf(gnu_get_libc_version(), "2.%d", &minor) == 1 &&
           minor >= 43;
}

/* In exit(): what a handler finds, one letter each; and that it is heard of at all is the last. */
static void report_exit(void) {
    char found[5] = "....", name[32] = "";
    sigset_t now, wanted = only(SIGUSR2);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    if (ends_blocked())
        for (int i = 1; i < NSIG; i++)
            if (i != SIGKILL && i != SIGSTOP)
                sigaddset(&wanted, i);
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (mine != 0)
        found[0] = 'T';
    for (int i = 1; i < NSIG; i++)
        if ((i < 32 || i >= SIGRTMIN) && sigismember(&now, i) != sigismember(&wanted, i)) /* between: glibc's own */
            found[1] = '!';
    if (strcmp(name, own_name) == 0)
        found[2] = 'N';
    if (fcntl(report[1], F_GETFD) >= 0)
        found[3] = 'F';
    if (write(report[1], found, 4) != 4)
        _exit(9);
}

/* The program, in a child: its exit handler is heard of once, and all is in order. */
static void check_last(void (*program)(void *)) {
    OK(pthread_getname_np(pthread_self(), own_name, sizeof own_name));
    for (int i = 0; i < RUNS; i++) {
        char found[16] = "";
        ssize_t n = 0, got;
        SYS(pipe(report));
        pid_t child = child_start(program, NULL);
        SYS(close(report[1]));
        while ((got = read(report[0], found + n, sizeof found - 1 - (size_t)n)) > 0)
            n += got;
        SYS(close(report[0]));
        child_join(child);
        if (strcmp(found, "T.NF") != 0)
            FAIL("the exit handler wrote \"%s\", not \"T.NF\": thread of the program, its mask, name, open file",
                 found);
    }
}

static void begin_program(void) {
    enter_program(1);
    CHECK_INT(atexit(report_exit), 0);
    main_thread = pthread_self();
}

/* ---- threads that have waited, and end one after the other ---- */
static void *meet_and_end(void *number) {
    enter_program(2 + (int)(long)number);
    for (int i = 0; i < ROUNDS; i++)
        pthread_barrier_wait(&barrier);
    sleep_ms((long)number * 3);
    return NULL;
}

static void start_threads(const pthread_attr_t *attr) {
    pthread_t thread;
    OK(pthread_barrier_init(&barrier, NULL, N_THREADS));
    for (long i = 0; i < N_THREADS; i++)
        OK(pthread_create(&thread, attr, meet_and_end, (void *)i));
}

static void main_exits_first(void *unused) {
    (void)unused;
    begin_program();
    start_threads(NULL);
    pthread_exit(NULL);
}
TEST(last_thread__runs_the_exit_handlers, "main calls pthread_exit, 4 threads that have waited end after it") {
    check_last(main_exits_first);
}

static void detached_threads(void *unused) {
    pthread_attr_t attr;
    (void)unused;
    begin_program();
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    start_threads(&attr);
    pthread_exit(NULL);
}
TEST(last_thread__detached, "the same with detached threads") {
    check_last(detached_threads);
}

/* ---- main is the last one ---- */
static void main_exits_last(void *unused) {
    (void)unused;
    begin_program();
    start_threads(NULL);
    sleep_ms(30);
    pthread_exit(NULL);
}
TEST(last_thread__main_itself, "4 threads end, then main calls pthread_exit") {
    check_last(main_exits_last);
}

/* ---- main is cancelled ---- */
/*
 * Main must be asleep. A main that meets its cancellation on its way to the wait may have ended before glibc 2.41 sends
 * its signal; pthread_cancel then returns EINVAL.
 */
static void *cancel_main(void *unused) {
    enter_program(2);
    SYS(sem_wait(&main_waits));
    while (!is_asleep(getpid()))
        sleep_ms(1);
    OK(pthread_cancel(main_thread));
    sleep_ms(10);
    return unused;
}

static void main_is_cancelled(void *unused) {
    pthread_t thread;
    (void)unused;
    begin_program();
    SYS(sem_init(&never, 0, 0));
    SYS(sem_init(&main_waits, 0, 0));
    OK(pthread_create(&thread, NULL, cancel_main, NULL));
    SYS(sem_post(&main_waits));
    SYS(sem_wait(&never));
    FAIL("main went on after its cancellation");
}
TEST(last_thread__after_a_cancelled_main, "a thread cancels main, which waits in sem_wait, and ends after it") {
    check_last(main_is_cancelled);
}

/* ---- the last one's destructors make another thread ---- */
static void *late_thread(void *unused) {
    enter_program(3);
    sleep_ms(5);
    return unused;
}

static void make_another(void *unused) {
    pthread_t thread;
    (void)unused;
    OK(pthread_create(&thread, NULL, late_thread, NULL));
}

static void *end_with_destructor(void *unused) {
    enter_program(2);
    OK(pthread_setspecific(key, &key));
    sleep_ms(10);
    return unused;
}

static void destructor_makes_a_thread(void *unused) {
    pthread_t thread;
    (void)unused;
    begin_program();
    OK(pthread_key_create(&key, make_another));
    OK(pthread_create(&thread, NULL, end_with_destructor, NULL));
    pthread_exit(NULL);
}
TEST(last_thread__made_by_a_destructor, "the last thread's destructor creates another, which ends after it") {
    check_last(destructor_makes_a_thread);
}

/* ---- a process made by a thread that is not the first ---- */
static void *fork_and_end(void *unused) {
    enter_program(2);
    pid_t child = fork();
    SYS(child);
    if (child != 0) {
        child_join(child);
        _exit(0); /* the parent says nothing */
    }
    start_threads(NULL);
    pthread_exit(unused);
}

static void thread_forks(void *unused) {
    pthread_t thread;
    (void)unused;
    begin_program();
    SYS(sem_init(&never, 0, 0));
    OK(pthread_create(&thread, NULL, fork_and_end, NULL));
    SYS(sem_wait(&never)); /* not pthread_exit, which loads code: the child may find the linker's lock taken */
}
TEST(last_thread__of_a_child_of_another_thread, "a thread forks; in the child it creates 4, and calls pthread_exit") {
    check_last(thread_forks);
}

/* ---- what stdio has kept is written ---- */
static void *print_and_end(void *unused) {
    sleep_ms(5);
    puts("result: 42");
    return unused;
}

static void prints_last(void *unused) {
    pthread_t thread;
    (void)unused;
    if (dup2(report[1], STDOUT_FILENO) < 0)
        _exit(1);
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    OK(pthread_create(&thread, NULL, print_and_end, NULL));
    pthread_exit(NULL);
}
TEST(last_thread__flushes_its_output, "main calls pthread_exit; what the last thread prints into a pipe arrives") {
    for (int i = 0; i < RUNS; i++) {
        char text[64] = "";
        ssize_t n = 0, got;
        SYS(pipe(report));
        fflush(NULL);
        pid_t child = child_start(prints_last, NULL);
        SYS(close(report[1]));
        while ((got = read(report[0], text + n, sizeof text - 1 - (size_t)n)) > 0)
            n += got;
        SYS(close(report[0]));
        child_join(child);
        if (strcmp(text, "result: 42\n") != 0)
            FAIL("\"%s\" arrived", text);
    }
}

/* ---- keys ---- */
static void *nothing(void *unused) {
    return unused;
}
TEST(keys__all_are_the_programs, "with and without threads: PTHREAD_KEYS_MAX keys can be created, and 0 is the first") {
    static pthread_key_t keys[PTHREAD_KEYS_MAX];
    pthread_key_t more;
    for (int threads = 0; threads < 2; threads++) {
        for (int i = 0; i < PTHREAD_KEYS_MAX; i++) {
            OK(pthread_key_create(&keys[i], NULL));
            CHECK_INT(keys[i], i);
        }
        CHECK_RC(pthread_key_create(&more, NULL), EAGAIN);
        for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
            OK(pthread_key_delete(keys[i]));
        thread_join(thread_start(nothing, NULL));
    }
}
