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

/* By the control groups above the process (version 2). */
static bool is_kept_to_one_cpu(void) {
    char line[512], path[600], *slash;
    FILE *groups = fopen("/proc/self/cgroup", "r");
    bool kept = false;
    if (groups == NULL || fgets(line, sizeof line, groups) == NULL || strncmp(line, "0::", 3) != 0)
        line[0] = '\0';
    if (groups != NULL)
        fclose(groups);
    line[strcspn(line, "\n")] = '\0';
    while ((slash = strrchr(line, '/')) != NULL) {
        long quota, period;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", line + 3);
        FILE *file = fopen(path, "r");
        kept |= file != NULL && fscanf(file, "%ld %ld", &quota, &period) == 2 && quota < 2 * period;
        if (file != NULL)
            fclose(file);
        *slash = '\0';
    }
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
