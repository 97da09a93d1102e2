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
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/tap.h"
#include "lib/threads.h"
#include "sanitized.h"
#include "subutai/rcl.h"

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
        tap_point(rcl_server_create(&server, -1) == EAGAIN, "no server without its threads");
    }
    fails = 0;
}

/* A child's server starts with its first section. */
static bool child_starts_after_failures(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(600);
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
        OK(rcl_cond_wait(&changed, &lock));
}

static void change(void *unused) {
    (void)unused;
    is_changed = true;
    OK(rcl_cond_signal(&changed));
}

static void *waiting_client(void *unused) {
    OK(rcl_execute(&lock, wait_for_change, NULL));
    return unused;
}

static void check_wait(void) {
    pthread_t thread;
    OK(rcl_cond_init(&changed));
    thread = thread_start(waiting_client, NULL);
    usleep(50000);
    OK(rcl_execute(&lock, change, NULL));
    thread_join(thread);
    tap_point(fails == 0, "sections go on when there was no thread for them at first");
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
    CHECK(page != MAP_FAILED);
    OK(rcl_execute(&lock, write_to_page, NULL));
    signal(SIGSEGV, SIG_DFL);
    tap_point(*page == 1, "a section's own signal is handled");
}

int main(void) {
    struct rcl_server *server;
    alarm(600);
    check_create();
    OK(rcl_server_create(&server, -1));
    OK(rcl_lock_init(&lock, server));
    if (!UNDER_TSAN && !UNDER_ASAN) /* a child of threads that have just started */
        tap_point(child_starts_after_failures(), "a forked child's server starts when its threads can be made");
    check_wait();
    check_signal();
    OK(rcl_server_destroy(server));
    return tap_end();
}
