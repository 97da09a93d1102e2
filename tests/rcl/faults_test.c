/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * <subutai/rcl.h> where something fails: threads cannot be made, when a server starts, in a forked child and while a
 * section waits; a section causes a signal. Linked with --wrap=pthread_create. A server that starts blocks all signals:
 * a hang there is ended by the test's time limit.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subutai/rcl.h"

static int n_points, n_failed;

static void point(bool right, const char *text) {
    printf("%sok %d - %s\n", right ? "" : "not ", ++n_points, text);
    fflush(stdout);
    n_failed += !right;
}

static void must(int error, const char *what) {
    if (error != 0) {
        printf("Bail out! %s: error %d\n", what, error);
        exit(1);
    }
}

/* ---- threads that cannot be made: the n-th from now on; 0: none ---- */
static atomic_int fails;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument);

/* A failure takes its time: the servicing thread sleeps meanwhile. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument) {
    if (fails != 0 && --fails == 0) {
        usleep(100000);
        return EAGAIN;
    }
    return __real_pthread_create(thread, attr, routine, argument);
}

static struct rcl_lock lock;
static int count; /* protected by lock */

static void add(void *unused) {
    (void)unused;
    count++;
}

static void check_create(void) {
    struct rcl_server *server;
    for (int n = 1; n <= 2; n++) {
        fails = n;
        point(rcl_server_create(&server, -1) == EAGAIN, "no server without its threads");
    }
    fails = 0;
}

/* A child's server starts with its first section. */
static bool child_starts_after_failures(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        for (int n = 1; n <= 2; n++) {
            fails = n;
            if (rcl_execute(&lock, add, NULL) != EAGAIN)
                _exit(n);
        }
        fails = 0;
        count = 0;
        _exit(rcl_execute(&lock, add, NULL) == 0 && count == 1 ? 0 : 3);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* ---- no thread for the sections of others, while one waits for them ---- */
static struct rcl_cond changed;
static bool is_changed;

static void wait_for_change(void *unused) {
    (void)unused;
    fails = 1;
    while (!is_changed)
        must(rcl_cond_wait(&changed, &lock), "rcl_cond_wait");
}

static void change(void *unused) {
    (void)unused;
    is_changed = true;
    must(rcl_cond_signal(&changed), "rcl_cond_signal");
}

static void *waiting_client(void *unused) {
    must(rcl_execute(&lock, wait_for_change, NULL), "rcl_execute");
    return unused;
}

static void check_wait(void) {
    pthread_t thread;
    must(rcl_cond_init(&changed), "rcl_cond_init");
    must(pthread_create(&thread, NULL, waiting_client, NULL), "pthread_create");
    usleep(50000);
    must(rcl_execute(&lock, change, NULL), "rcl_execute");
    must(pthread_join(thread, NULL), "pthread_join");
    point(fails == 0, "sections go on when there was no thread for them at first");
}

/* ---- a section causes a signal that the program handles ---- */
static char *page;

static void unprotect(int signal) {
    (void)signal;
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) != 0)
        _exit(1);
}

static void write_to_page(void *unused) {
    (void)unused;
    *(volatile char *)page = 1;
}

static void check_signal(void) {
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &(struct sigaction){.sa_handler = unprotect}, NULL);
    must(page == MAP_FAILED ? errno : rcl_execute(&lock, write_to_page, NULL), "rcl_execute");
    signal(SIGSEGV, SIG_DFL);
    point(*page == 1, "a section's own signal is handled");
}

int main(void) {
    struct rcl_server *server;
    alarm(60);
    check_create();
    must(rcl_server_create(&server, -1), "rcl_server_create");
    must(rcl_lock_init(&lock, server), "rcl_lock_init");
#if !defined __SANITIZE_THREAD__ /* it does not follow threads that a forked child makes */
    point(child_starts_after_failures(), "a forked child's server starts when its threads can be made");
#endif
    check_wait();
    check_signal();
    must(rcl_server_destroy(server), "rcl_server_destroy");
    printf("1..%d\n", n_points);
    return n_failed != 0;
}
