/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * subject SCENE: one thing that tests/lib must notice, or must get right; lib.sh knows what has to become of each. With
 * clocks, threads and /proc asked directly, not by what is tested.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "lib/await.h"
#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/cpus.h"
#include "lib/proc.h"
#include "lib/processes.h"
#include "lib/report.h"
#include "lib/tap.h"
#include "lib/threads.h"

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int two = 2;

/* Ends the scene as failed, not by what is tested. */
static void wrong_unless(bool right, const char *what) {
    if (!right) {
        dprintf(STDERR_FILENO, "wrong: %s\n", what);
        _exit(3);
    }
}

/* ---- checks that fail ---- */
static void check(void) {
    CHECK(two == 3);
}
static void check_int(void) {
    CHECK_INT(two, 3);
}
static void check_int_wide(void) {
    CHECK_INT(two + (1ll << 32), 2);
}
static void check_rc(void) {
    CHECK_RC(pthread_mutex_trylock(&held), EINVAL);
}
static void ok(void) {
    OK(pthread_mutex_trylock(&held));
}
static void check_errno_other(void) {
    CHECK_ERRNO(close(-1), EINTR);
}
static void check_errno_none(void) {
    CHECK_ERRNO(two, EBADF);
}
static void check_errno_stale(void) {
    errno = EBADF;
    CHECK_ERRNO(two - 3, EBADF);
}
static void sys(void) {
    SYS(close(-1));
}
static void ok_errno(void) {
    OK_ERRNO(close(-1));
}
static void ok_errno_number(void) {
    OK_ERRNO(two);
}
static void fail(void) {
    FAIL("after %d", two);
}
static void long_message(void) {
    FAIL("%01000d", two);
}

/* ---- where they fail ---- */
static void *check_there(void *unused) {
    check();
    return unused;
}
static void in_a_thread(void) {
    pthread_t thread;
    wrong_unless(pthread_create(&thread, NULL, check_there, NULL) == 0, "no thread");
    for (;;)
        pause();
}
static void check_in_handler(int signal) {
    (void)signal;
    check();
}
static void in_a_handler(void) {
    signal(SIGUSR1, check_in_handler);
    raise(SIGUSR1);
}
static void run_check(void *unused) {
    (void)unused;
    check();
}
static void in_a_child(void) {
    run_in_child(run_check, NULL);
}

/* ---- children ---- */
static void end_with(void *status) {
    _exit(*(int *)status);
}
static void die(void *unused) {
    (void)unused;
    raise(SIGKILL);
}
static void child_dies(void) {
    run_in_child(die, NULL);
}
static void child_exits(void) {
    run_in_child(end_with, &two);
}
static void child_exits_with_another(void) {
    child_join_with(child_start(end_with, &two), 3);
}
static void child_never_was(void) {
    child_join(-1);
}
static void child_of_another(void) {
    child_join(getppid());
}

/* ---- threads ---- */
static void *nothing(void *value) {
    return value;
}
static void start_fails(void) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    wrong_unless(pthread_attr_setstacksize(&attr, (size_t)1 << 46) == 0, "no such stack");
    thread_start_with(&attr, nothing, NULL);
}
static void start_small_fails(void) {
    thread_start_small(1, nothing, NULL);
}
static void join_fails(void) {
    thread_join(pthread_self());
}
static void join_not_cancelled(void) {
    thread_join_cancelled(thread_start(nothing, NULL));
}

/* ---- what passes ---- */
static void *stay(void *unused) {
    for (;;)
        pause();
    return unused;
}
static void passes(void) {
    sem_t sem;
    CHECK(two == 2);
    CHECK_INT(two, 2);
    CHECK_RC(pthread_mutex_trylock(&held), EBUSY);
    OK(pthread_mutex_unlock(&held));
    CHECK_ERRNO(close(-1), EBADF);
    SYS(dup(STDERR_FILENO));
    OK_ERRNO(sem_init(&sem, 0, 0));
    CHECK(thread_join(thread_start(nothing, &two)) == &two);
    CHECK(thread_join(thread_start_small(64 * 1024, nothing, &two)) == &two);
    pthread_t thread = thread_start(stay, NULL);
    OK(pthread_cancel(thread));
    thread_join_cancelled(thread);
    child_join_with(child_start(end_with, &two), 2);
    int *shared = shared_memory(sizeof *shared), zero = *shared;
    run_in_child(end_with, &zero);
    /* 8 above, and those of the functions. */
    wrong_unless(checks_of_thread >= 8 + 4, "checks are not counted");
}

/* ---- clocks ---- */
static int64_t raw_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}
static int64_t in_ns(struct timespec t) {
    wrong_unless(t.tv_nsec >= 0 && t.tv_nsec < 1000000000, "nanoseconds");
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}
static void no_work(int signal) {
    (void)signal;
}
/* Deadlines are where they should be, and a sleep that signals interrupt is as long. */
static void clocks(void) {
    static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
    for (int i = 0; i < 2; i++) {
        int64_t now = raw_ns(clocks[i]), most = 1000000000;
        struct {
            struct timespec time;
            int64_t ns;
        } times[] = {
            {time_now(clocks[i]), 0},
            {time_in_ns(clocks[i], 7), 7},
            {time_in_us(clocks[i], 1500000), 1500000000},
            {time_in_ms(clocks[i], 60000), 60000000000},
            {time_in_ms(clocks[i], -2500), -2500000000},
            {time_of_ns(now_ns(clocks[i])), 0},
        };
        for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
            int64_t late = in_ns(times[k].time) - now - times[k].ns;
            wrong_unless(late >= 0 && late < most, "a deadline");
            wrong_unless(time_to_ns(&times[k].time) == in_ns(times[k].time), "its nanoseconds");
            wrong_unless(time_is_past(clocks[i], &times[k].time) == (times[k].ns <= 7), "is it past?");
        }
        struct timespec ago = {times[0].time.tv_sec - 2, times[0].time.tv_nsec};
        long since = time_since_ms(clocks[i], ago);
        wrong_unless(since >= 2000 && since < 3000, "since");
    }
    wrong_unless(in_ns(time_of_ns(-1)) == -1 && in_ns(time_of_ns(-1000000000)) == -1000000000, "before zero");
    struct itimerval often = {{0, 5000}, {0, 5000}};
    struct sigaction action = {.sa_handler = no_work};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    int64_t begin = raw_ns(CLOCK_MONOTONIC);
    sleep_ms(60);
    int64_t after_ms = raw_ns(CLOCK_MONOTONIC);
    sleep_us(60000);
    int64_t after_us = raw_ns(CLOCK_MONOTONIC);
    sleep_ns(60000000);
    int64_t after_ns = raw_ns(CLOCK_MONOTONIC);
    wrong_unless(after_ms - begin >= 60000000 && after_us - after_ms >= 60000000 && after_ns - after_us >= 60000000,
                 "a sleep was too short");
    wrong_unless(after_ns - begin < 5000000000, "sleeps were too long");
}

/* ---- waiting for threads ---- */
static pid_t sleeper;
static atomic_int n_up;
static atomic_bool may_sleep, sleeps_now;
static sem_t never;

static void *sleep_later(void *unused) {
    __atomic_store_n(&sleeper, (pid_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    while (!may_sleep)
        ;
    for (int64_t end = raw_ns(CLOCK_MONOTONIC) + 50000000; raw_ns(CLOCK_MONOTONIC) < end;)
        ;
    sleeps_now = true;
    asleep_from_here(&sleeper);
    sem_wait(&never);
    return unused;
}
static void asleep(void) {
    pthread_t thread;
    sem_init(&never, 0, 0);
    wrong_unless(pthread_create(&thread, NULL, sleep_later, NULL) == 0, "no thread");
    while (__atomic_load_n(&sleeper, __ATOMIC_SEQ_CST) == 0)
        sched_yield();
    wrong_unless(!is_asleep(sleeper), "a thread that runs is asleep");
    may_sleep = true;
    await_asleep(&sleeper);
    wrong_unless(sleeps_now && is_asleep(sleeper), "awaited, and not asleep");
    pid_t gone = sleeper;
    sem_post(&never);
    pthread_join(thread, NULL);
    /* It is joined before the kernel is done with it. */
    while (proc_thread_state(gone) != '?')
        sleep_ms(1);
    wrong_unless(!is_asleep(gone), "a thread that has ended sleeps");
}
/* The id comes later than the waiting for it. */
static void asleep_not_before_there(void) {
    pthread_t thread;
    sem_init(&never, 0, 0);
    sleeper = 0;
    may_sleep = true;
    wrong_unless(pthread_create(&thread, NULL, sleep_later, NULL) == 0, "no thread");
    await_asleep(&sleeper);
    wrong_unless(sleeper != 0, "awaited a thread that is not there");
}
static void *come_up(void *unused) {
    for (int i = 0; i < 3; i++) {
        usleep(20000);
        atomic_fetch_add(&n_up, 1);
    }
    return unused;
}
static void awaits(void) {
    pthread_t thread;
    wrong_unless(pthread_create(&thread, NULL, come_up, NULL) == 0, "no thread");
    await(&n_up, 3);
    wrong_unless(n_up == 3, "not awaited");
    await(&n_up, 2);
    int64_t begin = raw_ns(CLOCK_MONOTONIC);
    let_threads_block();
    wrong_unless(raw_ns(CLOCK_MONOTONIC) - begin >= 20000000, "no time to block");
}

/* ---- /proc, CPUs ---- */
static void *proc_there(void *unused) {
    char pid[32], task[64];
    wrong_unless(proc_kernel_thread() == syscall(SYS_gettid), "the kernel thread");
    snprintf(task, sizeof task, "self/task/%ld", proc_kernel_thread());
    wrong_unless(proc_status("thread-self", "Pid:", pid, sizeof pid) && atol(pid) == proc_kernel_thread(),
                 "its status");
    wrong_unless(proc_status(task, "Pid:", pid, sizeof pid) && atol(pid) == proc_kernel_thread(), "by its number");
    wrong_unless(proc_thread_state((pid_t)proc_kernel_thread()) == 'R', "its state");
    return unused;
}
static void proc(void) {
    char value[64] = "x";
    pthread_t thread;
    proc_there(NULL);
    wrong_unless(pthread_create(&thread, NULL, proc_there, NULL) == 0 && pthread_join(thread, NULL) == 0, "no thread");
    wrong_unless(!proc_status("self", "No such line:", value, sizeof value) && value[0] == '\0', "a line is there");
    wrong_unless(!proc_status("self/task/1", "Pid:", value, sizeof value), "a thread is there");
    long before = proc_kib("VmSize:");
    char *more = malloc(64 << 20);
    wrong_unless(more != NULL && proc_kib("VmSize:") >= before + (64 << 10), "the size");
    wrong_unless(proc_kib("VmRSS:") > 0 && proc_kib("VmRSS:") < before, "what is resident");
    free(more);
}
static void proc_kib_of_nothing(void) {
    proc_kib("VmNothing:");
}
static void one_cpu(void) {
    cpu_set_t set;
    stay_on_one_cpu();
    wrong_unless(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1, "more CPUs than one");
}

/* ---- TAP and reports: what is printed is compared, and the status ---- */
static int tap_all(void) {
    tap_plan(3);
    tap_point(two == 2, "two is %d", two);
    tap_skip("three", "not today");
    tap_note("between\nthe points");
    wrong_unless(tap_point(true, "four\nlines"), "a point is not what it was given");
    return tap_end();
}
static int tap_one_fails(void) {
    wrong_unless(!tap_point(two == 3, "two is three"), "a point is not what it was given");
    tap_point(true, "afterwards");
    return tap_end();
}
static int tap_too_few(void) {
    tap_plan(2);
    tap_point(true, "one");
    return tap_end();
}
static int tap_none(void) {
    return tap_end();
}
static int tap_skipped(void) {
    tap_skip_all("no such machine");
    return tap_end();
}
static int tap_bails_out(void) {
    return tap_bail_out("no memory");
}
static int report_broken(void) {
    report(true, "kept");
    report(false, "broken");
    report(true, "kept again");
    return report_end();
}
static int report_kept(void) {
    report(true, "kept");
    return report_end();
}

#define SCENE(name)                                                                                                    \
    { #name, name, NULL }
#define STATUS(name)                                                                                                   \
    { #name, NULL, name }

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*play)(void);
        int (*status)(void);
    } scenes[] = {
        SCENE(check),
        SCENE(check_int),
        SCENE(check_int_wide),
        SCENE(check_rc),
        SCENE(ok),
        SCENE(check_errno_other),
        SCENE(check_errno_none),
        SCENE(check_errno_stale),
        SCENE(sys),
        SCENE(ok_errno),
        SCENE(ok_errno_number),
        SCENE(fail),
        SCENE(long_message),
        SCENE(in_a_thread),
        SCENE(in_a_handler),
        SCENE(in_a_child),
        SCENE(child_dies),
        SCENE(child_exits),
        SCENE(child_exits_with_another),
        SCENE(child_never_was),
        SCENE(child_of_another),
        SCENE(start_fails),
        SCENE(start_small_fails),
        SCENE(join_fails),
        SCENE(join_not_cancelled),
        SCENE(passes),
        SCENE(clocks),
        SCENE(asleep),
        SCENE(asleep_not_before_there),
        SCENE(awaits),
        SCENE(proc),
        SCENE(proc_kib_of_nothing),
        SCENE(one_cpu),
        STATUS(tap_all),
        STATUS(tap_one_fails),
        STATUS(tap_too_few),
        STATUS(tap_none),
        STATUS(tap_skipped),
        STATUS(tap_bails_out),
        STATUS(report_broken),
        STATUS(report_kept),
    };
    pthread_mutex_lock(&held);
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(argv[1], scenes[i].name) == 0) {
            if (scenes[i].status != NULL)
                return scenes[i].status();
            scenes[i].play();
            return 0;
        }
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        puts(scenes[i].name);
    return 2;
}
