/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which sleepers of those that a signal or broadcast reaches run before the mutex is unlocked: of `direct` with
 * `--wait adaptive` alone. The first does with several CPUs: a program that signals for each of its items would
 * otherwise have them all wait for one that is on its way, and cores idle. All others sleep on in the mutex's queue.
 */
#include "topic.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/asleep.h"
#include "lib/proc.h"

enum { MANY = 3, ROUNDS = 300 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pid_t tids[MANY + 1];
static int go, passed; /* under the mutex */

static void *wait_for_it(void *tid) {
    OK(pthread_mutex_lock(&mutex));
    asleep_from_here(tid);
    while (go == 0)
        OK(pthread_cond_wait(&cond, &mutex));
    passed++;
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

static long number_in(const char *file, long otherwise) {
    FILE *f = fopen(file, "r");
    long number;
    if (f == NULL || fscanf(f, "%ld", &number) != 1)
        number = otherwise;
    if (f != NULL)
        fclose(f);
    return number;
}

/* The quota of a control group's CPU time, in both versions' files. */
static bool allows_one_cpu(const char *root, const char *group) {
    char quota_file[600], period_file[600];
    long quota, period;
    snprintf(quota_file, sizeof quota_file, "%s%s/cpu.max", root, group);
    FILE *f = fopen(quota_file, "r");
    if (f != NULL) {
        bool has_both = fscanf(f, "%ld %ld", &quota, &period) == 2; /* otherwise it is "max" */
        fclose(f);
        return has_both && quota < 2 * period;
    }
    snprintf(quota_file, sizeof quota_file, "%s%s/cpu.cfs_quota_us", root, group);
    snprintf(period_file, sizeof period_file, "%s%s/cpu.cfs_period_us", root, group);
    quota = number_in(quota_file, -1);
    return quota >= 0 && quota < 2 * number_in(period_file, 0);
}

/* By a control group that the process is in, or one above it: "ID:CONTROLLERS:GROUP", version 2 has no controllers. */
static bool is_kept_to_one_cpu(void) {
    char line[512], root[300];
    FILE *groups = fopen("/proc/self/cgroup", "r");
    bool kept = false;
    while (groups != NULL && fgets(line, sizeof line, groups) != NULL) {
        char *controllers = strchr(line, ':'), *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL,
             *slash;
        if (group == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        *group++ = '\0';
        snprintf(root, sizeof root, "/sys/fs/cgroup%s%s", controllers[1] != '\0' ? "/" : "", controllers + 1);
        while ((slash = strrchr(group, '/')) != NULL) {
            kept |= allows_one_cpu(root, group);
            *slash = '\0';
        }
        kept |= allows_one_cpu(root, "");
    }
    if (groups != NULL)
        fclose(groups);
    return kept;
}

static bool has_several_cpus(void) {
    cpu_set_t set;
    SYS(sched_getaffinity(0, sizeof set, &set));
    return CPU_COUNT(&set) > 1 && !is_kept_to_one_cpu();
}

/* It is about to sleep. Until it is off its CPU, and counted: the kernel waits for that before it tells the call. */
static void await_off_cpu(int i) {
    char name[64], call[128];
    snprintf(name, sizeof name, "/proc/self/task/%d/syscall", (int)tids[i]);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, call, sizeof call);
        SYS(close(fd));
    }
}

/* So often has the waiter slept. */
static long sleeps(int i) {
    char task[32], value[32];
    await_off_cpu(i);
    snprintf(task, sizeof task, "self/task/%d", (int)tids[i]);
    CHECK(proc_status(task, "voluntary_ctxt_switches:", value, sizeof value));
    return strtol(value, NULL, 10);
}

static pthread_t threads[MANY + 1];
static long before[MANY];

/* They sleep at the condition, in the order of their numbers, and the caller has the mutex. */
static void let_them_wait(int n) {
    for (int i = 0; i < n; i++) {
        threads[i] = thread_start(wait_for_it, &tids[i]);
        await_asleep(&tids[i]);
    }
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < n; i++)
        before[i] = sleeps(i);
    go = 1;
}

static void let_them_pass(int n) {
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < n; i++)
        thread_join(threads[i]);
    CHECK_INT(passed, n);
}

/* Awake, it finds the mutex held, and sleeps again in the end. */
static void await_another_sleep(int i) {
    while (sleeps(i) == before[i])
        sleep_ms(1);
}

static void check_asleep(int from, int to) {
    let_threads_block();
    for (int i = from; i < to; i++)
        CHECK_INT(sleeps(i), before[i]);
}

TEST(signalled__sleeper_is_woken_at_once, "a signal's waiter runs while the mutex is held") {
    SKIP_IF(!has_several_cpus(), "one CPU");
    let_them_wait(1);
    OK(pthread_cond_signal(&cond));
    await_another_sleep(0);
    let_them_pass(1);
}
TEST(signalled__each_signal_wakes_one, "of 3 signals in one section each wakes a waiter") {
    SKIP_IF(!has_several_cpus(), "one CPU");
    let_them_wait(MANY);
    for (int i = 0; i < MANY; i++)
        OK(pthread_cond_signal(&cond));
    for (int i = 0; i < MANY; i++)
        await_another_sleep(i);
    let_them_pass(MANY);
}
TEST(signalled__broadcast_wakes_one_at_once, "of a broadcast's 3 waiters the first does, and the others sleep on") {
    SKIP_IF(!has_several_cpus(), "one CPU");
    let_them_wait(MANY);
    OK(pthread_cond_broadcast(&cond));
    await_another_sleep(0);
    check_asleep(1, MANY);
    let_them_pass(MANY);
}

/* ---- real-time priorities, of which the mutex's queue keeps the order ---- */

static pthread_t start_with_priority(void *(*routine)(void *), void *argument) {
    pthread_attr_t attr;
    pthread_t thread;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
    OK(pthread_attr_setschedpolicy(&attr, SCHED_FIFO));
    OK(pthread_attr_setschedparam(&attr, &(struct sched_param){.sched_priority = 10}));
    OK(pthread_create(&thread, &attr, routine, argument));
    OK(pthread_attr_destroy(&attr));
    return thread;
}

/* As let_them_wait, but the last to come has a priority, and is the first to be signalled. */
static void let_them_wait_by_priority(int n) {
    for (int i = 0; i < n; i++) {
        threads[i] = i == n - 1 ? start_with_priority(wait_for_it, &tids[i]) : thread_start(wait_for_it, &tids[i]);
        await_asleep(&tids[i]);
    }
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < n; i++)
        before[i] = sleeps(i);
    go = 1;
}

TEST(signalled__priority_sleeps_on, "a signal's waiter of SCHED_FIFO sleeps on until the mutex is unlocked") {
    SKIP_IF(no_realtime(), "SCHED_FIFO is refused");
    let_them_wait_by_priority(1);
    OK(pthread_cond_signal(&cond));
    check_asleep(0, 1);
    let_them_pass(1);
}
TEST(signalled__none_goes_before_a_priority, "a broadcast's waiters behind one of SCHED_FIFO sleep on, as it does") {
    SKIP_IF(no_realtime(), "SCHED_FIFO is refused");
    let_them_wait_by_priority(MANY);
    OK(pthread_cond_broadcast(&cond));
    check_asleep(0, MANY);
    let_them_pass(MANY);
}

/* ---- waiters with two mutexes, by turns ---- */

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static int n_returned[2]; /* atomic */

static void *wait_with_own_mutex(void *tid) {
    int which = (int)((pid_t *)tid - tids) % 2;
    OK(pthread_mutex_lock(&mutexes[which]));
    asleep_from_here(tid);
    OK(pthread_cond_wait(&cond, &mutexes[which]));
    __atomic_fetch_add(&n_returned[which], 1, __ATOMIC_SEQ_CST);
    OK(pthread_mutex_unlock(&mutexes[which]));
    return NULL;
}

TEST(signalled__broadcast_with_two_mutexes,
     "one mutex is unlocked after a broadcast: its 2 waiters return, the other's do not") {
    for (int i = 0; i < 4; i++) {
        threads[i] = thread_start(wait_with_own_mutex, &tids[i]);
        await_asleep(&tids[i]);
    }
    OK(pthread_mutex_lock(&mutexes[0]));
    OK(pthread_mutex_lock(&mutexes[1]));
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutexes[0]));
    thread_join(threads[0]);
    thread_join(threads[2]);
    let_threads_block();
    CHECK_INT(__atomic_load_n(&n_returned[1], __ATOMIC_SEQ_CST), 0);
    OK(pthread_mutex_unlock(&mutexes[1]));
    thread_join(threads[1]);
    thread_join(threads[3]);
    CHECK_INT(__atomic_load_n(&n_returned[1], __ATOMIC_SEQ_CST), 2);
}

/* ---- a woken waiter waits again at once ---- */

static pthread_cond_t passed_all = PTHREAD_COND_INITIALIZER;
static int n_too_often; /* wake-ups within a round that the thread has passed */

static void *wait_each_round(void *tid) {
    OK(pthread_mutex_lock(&mutex));
    for (int round = 1; round <= ROUNDS; round++) {
        __atomic_store_n((pid_t *)tid, gettid(), __ATOMIC_SEQ_CST);
        while (go < round) {
            OK(pthread_cond_wait(&cond, &mutex));
            n_too_often += go < round;
        }
        if (++passed % MANY == 0)
            OK(pthread_cond_signal(&passed_all));
    }
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

TEST(signalled__broadcast_reaches_each_once,
     "300 broadcasts after the mutex: no waiter that waits again is woken by the same one") {
    for (int i = 0; i < MANY; i++)
        threads[i] = thread_start(wait_each_round, &tids[i]);
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < MANY; i++)
            await_asleep(&tids[i]);
        OK(pthread_mutex_lock(&mutex));
        go = round;
        OK(pthread_mutex_unlock(&mutex));
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_lock(&mutex));
        while (passed < round * MANY)
            OK(pthread_cond_wait(&passed_all, &mutex));
        OK(pthread_mutex_unlock(&mutex));
    }
    for (int i = 0; i < MANY; i++)
        thread_join(threads[i]);
    CHECK_INT(n_too_often, 0);
}
TEST(signalled__with_one_cpu_none_is_woken, "a signal's waiter sleeps on until the mutex is unlocked") {
    stay_on_one_cpu();
    let_them_wait(1);
    OK(pthread_cond_signal(&cond));
    check_asleep(0, 1);
    let_them_pass(1);
}
