/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the interface does not show: threads that wait for long sleep, at once where others compute; a servicing thread
 * that is one too many parks, also if it was taken for blocked; and slots of threads that nothing gives back. Threads
 * that do not sleep, and a thread that is lost, are ended by the test's time limit.
 */
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "lib/await.h"
#include "lib/checks.h"
#include "lib/tap.h"
#include "lib/threads.h"
#include "rcl/server.h"
#include "sanitized.h"

static struct rcl_server *server;
static struct rcl_lock lock[2];

/* ---- yields ---- */
static bool others_compute; /* written while no other thread runs sections or waits for them */
static __thread int n_yields;

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void) {
    n_yields++;
    if (__atomic_load_n(&others_compute, __ATOMIC_RELAXED))
        usleep(20000);
    return __real_sched_yield();
}

/* ---- waits ---- */
static int channel[2];
static pid_t client, nesting;

static void read_byte(void *unused) {
    char byte;
    (void)unused;
    CHECK_INT(read(channel[0], &byte, 1), 1);
}

static void *execute_read(void *unused) {
    asleep_from_here(&client);
    OK(rcl_execute(&lock[0], read_byte, NULL));
    return unused;
}

static void nothing(void *unused) {
    (void)unused;
}

static void take_held_lock(void *unused) {
    (void)unused;
    asleep_from_here(&nesting);
    OK(rcl_execute(&lock[0], nothing, NULL));
}

static void *execute_nested(void *unused) {
    OK(rcl_execute(&lock[1], take_held_lock, NULL));
    return unused;
}

/* Twice: it may sleep for another reason first, and then look and yield for ever. */
static bool falls_asleep(const pid_t *tid) {
    await_asleep(tid);
    let_threads_block();
    await_asleep(tid);
    return true;
}

static void check_sleeps(void) {
    OK_ERRNO(pipe(channel));
    pthread_t reader = thread_start(execute_read, NULL);
    tap_point(falls_asleep(&client), "a client of a section that lasts sleeps");
    pthread_t nested = thread_start(execute_nested, NULL);
    tap_point(falls_asleep(&nesting), "a section that waits for a lock sleeps");
    CHECK_INT(write(channel[1], "", 1), 1);
    thread_join(reader);
    thread_join(nested);
}

static void note_yields(void *n) {
    *(int *)n = n_yields;
}

static void await_idle(void) {
    while (__atomic_load_n(&server->asleep, __ATOMIC_SEQ_CST) == 0)
        usleep(1000);
}

static void *count_yields(void *n) {
    OK(rcl_execute(&lock[0], read_byte, NULL));
    *(int *)n = n_yields;
    return NULL;
}

/* Each yield lasts for twenty milliseconds. There is one servicing thread: nothing has blocked so far. */
static void check_yields(void) {
    int before, after, of_client;
    OK_ERRNO(pipe(channel));
    await_idle();
    __atomic_store_n(&others_compute, true, __ATOMIC_RELAXED);
    OK(rcl_execute(&lock[1], note_yields, &before));
    for (int i = 0; i < 10; i++) {
        await_idle();
        OK(rcl_execute(&lock[1], note_yields, &after));
    }
    tap_point(after - before <= 5,
              "where others compute a server with nothing to do sleeps, and yields no more (%d in 10 waits)",
              after - before);
    pthread_t reader = thread_start(count_yields, &of_client);
    usleep(300000); /* without that it would not yield so often */
    CHECK_INT(write(channel[1], "", 1), 1);
    thread_join(reader);
    tap_point(of_client <= 2, "and a client of a section that lasts, too (%d)", of_client);
    __atomic_store_n(&others_compute, false, __ATOMIC_RELAXED);
}

/* ---- the pool ---- */
static struct rcl_worker *uncounted; /* protected by the server's mutex */
static bool was_surplus;             /* written by it, read when it has ended */
static uint32_t has_returned;

/* As if the management thread had taken this one for blocked, just when it had found nothing to do. */
static void park_uncounted(void *unused) {
    (void)unused;
    rcl_block_begin(rcl_self.worker);
    OK(pthread_mutex_lock(&server->mutex));
    uncounted = rcl_self.worker;
    OK(pthread_mutex_unlock(&server->mutex));
    was_surplus = rcl_park_surplus(rcl_self.worker);
    __atomic_store_n(&has_returned, 1, __ATOMIC_RELEASE);
}

static void *execute_park(void *unused) {
    OK(rcl_execute(&lock[0], park_uncounted, NULL));
    return unused;
}

static void block_for_a_moment(void *unused) {
    (void)unused;
    rcl_block_begin(rcl_self.worker);
    rcl_block_end(rcl_self.worker);
}

static bool is_uncounted_parked(void) {
    OK(pthread_mutex_lock(&server->mutex));
    bool parked = uncounted != NULL && server->parked == uncounted;
    OK(pthread_mutex_unlock(&server->mutex));
    return parked;
}

static void await_one_active(void) {
    uint32_t n;
    do {
        sched_yield();
        OK(pthread_mutex_lock(&server->mutex));
        n = server->n_active;
        OK(pthread_mutex_unlock(&server->mutex));
    } while (n != 1);
}

static void check_surplus(void) {
    await_one_active(); /* what was checked before may have made more */
    pthread_t thread = thread_start(execute_park, NULL);
    while (!is_uncounted_parked() && __atomic_load_n(&has_returned, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    OK(rcl_execute(&lock[1], block_for_a_moment, NULL)); /* activates it */
    thread_join(thread);
    tap_point(was_surplus, "a thread that was taken for blocked parks when it finds nothing");
    await_one_active();
    tap_point(true, "and of several active ones one stays");
}

/* ---- slots ---- */
enum { AT_ONCE = 32, N_LATE = RCL_MAX_CLIENTS + 3 * AT_ONCE };

static pthread_key_t last; /* newer than the runtime's, so in each round its destructor comes after that one's */
static int count;          /* protected by lock[0] */

static void add(void *unused) {
    (void)unused;
    count++;
}

static void use_in_last_round(void *round) {
    if ((uintptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS)
        OK(pthread_setspecific(last, (void *)((uintptr_t)round + 1)));
    else
        OK(rcl_execute(&lock[0], add, NULL));
}

static void *end_late(void *unused) {
    OK(pthread_setspecific(last, (void *)(uintptr_t)1));
    return unused;
}

static void check_slots(void) {
    OK(pthread_key_create(&last, use_in_last_round));
    for (int i = 0; i < N_LATE; i += AT_ONCE) {
        pthread_t thread[AT_ONCE];
        for (int j = 0; j < AT_ONCE; j++)
            thread[j] = thread_start(end_late, NULL);
        for (int j = 0; j < AT_ONCE; j++)
            thread_join(thread[j]);
    }
    CHECK_INT(rcl_n_slots, RCL_MAX_CLIENTS); /* otherwise the slots were given back, and this shows nothing */
    tap_point(count == N_LATE, "threads that use a server in their last round of destructors, more than slots");
}

int main(void) {
    alarm(1500);
    OK(rcl_server_create(&server, -1));
    for (int i = 0; i < 2; i++)
        OK(rcl_lock_init(&lock[i], server));
    check_yields();
    check_sleeps();
    check_surplus();
    if (!UNDER_TSAN) /* it has forgotten the thread by then */
        check_slots();
    OK(rcl_server_destroy(server));
    return tap_end();
}
