/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread that waits for a mutex, read-write lock or semaphore is held up in a signal handler, as a collector that
 * stops the world holds it up. It has nothing, so it keeps nobody else out. POSIX says so for barriers only
 * (barrier.c); under glibc it is so for these, but for read-write locks that prefer writers and priority-inheriting
 * mutexes.
 */
#include "harness.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock;
static sem_t sem;
static atomic_int waiting, in_handler, leave_handler, passed;
static int turns; /* protected by mutex */

static void linger(int signo) {
    (void)signo;
    int e = errno;
    atomic_store(&in_handler, 1);
    while (atomic_load(&leave_handler) == 0)
        sleep_ms(1);
    errno = e;
}
/* One that runs `routine`, and is held up when it waits. */
static pthread_t start_and_hold_up(void *(*routine)(void *)) {
    struct sigaction action = {.sa_handler = linger};
    SYS(sigaction(SIGUSR2, &action, NULL));
    pthread_t thread = thread_start(routine, NULL);
    await(&waiting, 1);
    settle();
    OK(pthread_kill(thread, SIGUSR2));
    await(&in_handler, 1);
    return thread;
}
static void let_go(pthread_t thread) {
    atomic_store(&leave_handler, 1);
    thread_join(thread);
}

static void *lock_mutex(void *unused) {
    (void)unused;
    atomic_fetch_add(&waiting, 1);
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&passed, 1);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
TEST(held_up__mutex_waiter_keeps_nobody_out, "100 locks by its owner, one in between by each of 3 others") {
    OK(pthread_mutex_lock(&mutex));
    pthread_t held_up = start_and_hold_up(lock_mutex);
    for (int i = 0; i < 100; i++) {
        pthread_t other;
        bool asks = i == 0 || i == 50 || i == 99;
        if (asks) {
            other = thread_start(lock_mutex, NULL);
            settle();
        }
        OK(pthread_mutex_unlock(&mutex));
        if (asks)
            thread_join(other);
        OK(pthread_mutex_lock(&mutex));
    }
    CHECK_INT(atomic_load(&passed), 3);
    OK(pthread_mutex_unlock(&mutex));
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 4);
}
TEST(held_up__mutex_waiter_keeps_no_crowd_out, "8 wait behind it; all have had the mutex before it goes on") {
    pthread_t others[8];
    OK(pthread_mutex_lock(&mutex));
    pthread_t held_up = start_and_hold_up(lock_mutex);
    for (int i = 0; i < 8; i++)
        others[i] = thread_start(lock_mutex, NULL);
    await(&waiting, 9);
    settle();
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 8; i++)
        thread_join(others[i]);
    CHECK_INT(atomic_load(&passed), 8);
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 9);
}

static void *wait_for_turn(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&waiting, 1);
    while (turns == 0)
        OK(pthread_cond_wait(&cond, &mutex));
    turns--;
    atomic_fetch_add(&passed, 1);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
static void held_up_in_condition_wait(bool broadcast_with_mutex) {
    pthread_t others[4];
    pthread_t held_up = start_and_hold_up(wait_for_turn);
    for (int i = 0; i < 4; i++)
        others[i] = thread_start(wait_for_turn, NULL);
    await(&waiting, 5);
    settle();
    OK(pthread_mutex_lock(&mutex));
    turns = 5;
    if (broadcast_with_mutex)
        OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    if (!broadcast_with_mutex)
        OK(pthread_cond_broadcast(&cond));
    for (int i = 0; i < 4; i++)
        thread_join(others[i]);
    OK(pthread_mutex_lock(&mutex));
    CHECK_INT(turns, 1);
    OK(pthread_mutex_unlock(&mutex));
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 5);
}
TEST(held_up__cond_waiter_keeps_nobody_from_the_mutex,
     "woken by a broadcast with 4 others: those, and the broadcaster, "
     "go on") {
    held_up_in_condition_wait(true);
}
TEST(held_up__cond_waiter_keeps_nobody_from_the_free_mutex, "the same if the mutex is free at the broadcast") {
    held_up_in_condition_wait(false);
}

static void *write_rwlock(void *unused) {
    (void)unused;
    atomic_fetch_add(&waiting, 1);
    OK(pthread_rwlock_wrlock(&rwlock));
    atomic_fetch_add(&passed, 1);
    OK(pthread_rwlock_unlock(&rwlock));
    return NULL;
}
static void *read_rwlock(void *unused) {
    (void)unused;
    atomic_fetch_add(&waiting, 1);
    OK(pthread_rwlock_rdlock(&rwlock));
    atomic_fetch_add(&passed, 1);
    OK(pthread_rwlock_unlock(&rwlock));
    return NULL;
}
TEST(held_up__rwlock_writer_keeps_nobody_out,
     "4 writers and 4 readers wait behind it; all go on, and its owner again") {
    pthread_t others[8];
    OK(pthread_rwlock_init(&rwlock, NULL));
    OK(pthread_rwlock_wrlock(&rwlock));
    pthread_t held_up = start_and_hold_up(write_rwlock);
    for (int i = 0; i < 8; i++)
        others[i] = thread_start(i % 2 == 0 ? write_rwlock : read_rwlock, NULL);
    await(&waiting, 9);
    settle();
    OK(pthread_rwlock_unlock(&rwlock));
    for (int i = 0; i < 8; i++)
        thread_join(others[i]);
    CHECK_INT(atomic_load(&passed), 8);
    for (int i = 0; i < 100; i++) {
        OK(pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        OK(pthread_rwlock_rdlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
    }
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 9);
}
TEST(held_up__rwlock_writer_keeps_later_ones_out_neither, "of 6 that wait one after the other each goes on") {
    OK(pthread_rwlock_init(&rwlock, NULL));
    OK(pthread_rwlock_wrlock(&rwlock));
    pthread_t held_up = start_and_hold_up(write_rwlock);
    for (int i = 0; i < 6; i++) {
        pthread_t other = thread_start(i % 2 == 0 ? write_rwlock : read_rwlock, NULL);
        settle();
        OK(pthread_rwlock_unlock(&rwlock));
        thread_join(other);
        OK(pthread_rwlock_wrlock(&rwlock));
    }
    OK(pthread_rwlock_unlock(&rwlock));
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 7);
}

/*
 * One that is woken, but held up before it has looked: on one CPU it does not run until somebody else waits. What it
 * was woken for is others' then. The caller holds the lock.
 */
static pthread_t wake_and_hold_up(void *(*waits)(void *), void (*lock)(void), void (*unlock)(void)) {
    struct sigaction action = {.sa_handler = linger};
    struct timespec not_for_long = {0, 300000}; /* or it would be the one to have it */
    pthread_t held_up;
    int tries = 0;
    SYS(sigaction(SIGUSR2, &action, NULL));
    for (bool too_quick = true; too_quick; tries++) {
        SKIP_IF(tries == 100, "who waits always has it at once");
        atomic_store(&waiting, 0);
        atomic_store(&passed, 0);
        atomic_store(&in_handler, 0);
        atomic_store(&leave_handler, 0);
        lock();
        held_up = thread_start(waits, NULL);
        await(&waiting, 1);
        nanosleep(&not_for_long, NULL);
        unlock();
        lock();
        too_quick = atomic_load(&passed) != 0;
        if (too_quick) {
            unlock();
            thread_join(held_up);
        }
    }
    OK(pthread_kill(held_up, SIGUSR2));
    while (atomic_load(&in_handler) == 0)
        sched_yield(); /* at once, not when await looks next */
    return held_up;
}
static void held_up_before_it_looks(void *(*waits)(void *), void *(*comes_later)(void *), void (*lock)(void),
                                    void (*unlock)(void)) {
    stay_on_one_cpu();
    pthread_t held_up = wake_and_hold_up(waits, lock, unlock);
    settle(); /* until it is missed: who comes sooner relies on it (DEVELOPMENT.md) */
    pthread_t other = thread_start(comes_later, NULL);
    await(&waiting, 2);
    settle();
    unlock();
    thread_join(other);
    CHECK_INT(atomic_load(&passed), 1);
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 2);
}
static void take_mutex(void) {
    OK(pthread_mutex_lock(&mutex));
}
static void give_mutex(void) {
    OK(pthread_mutex_unlock(&mutex));
}
static void take_rwlock(void) {
    OK(pthread_rwlock_wrlock(&rwlock));
}
static void give_rwlock(void) {
    OK(pthread_rwlock_unlock(&rwlock));
}
TEST(held_up__woken_mutex_waiter_keeps_nobody_out, "held up before it has looked: who comes later has the mutex") {
    held_up_before_it_looks(lock_mutex, lock_mutex, take_mutex, give_mutex);
}
/* The same, and one sleeps behind it, before it is missed: in the end it has the mutex beside an owner that goes on. */
TEST(held_up__woken_mutex_waiter_keeps_no_sleeper_out, "20 times one sleeps behind it, and has it in between others") {
    stay_on_one_cpu();
    for (int i = 0; i < 20; i++) {
        pthread_t held_up = wake_and_hold_up(lock_mutex, take_mutex, give_mutex);
        pthread_t sleeper = thread_start(lock_mutex, NULL);
        while (atomic_load(&waiting) < 2)
            sched_yield();
        for (int k = 0; k < 50; k++)
            sched_yield(); /* it looks, and sleeps */
        give_mutex();
        while (atomic_load(&passed) == 0) {
            take_mutex();
            give_mutex();
        }
        thread_join(sleeper);
        CHECK_INT(atomic_load(&passed), 1);
        let_go(held_up);
        CHECK_INT(atomic_load(&passed), 2);
    }
}
TEST(held_up__woken_writer_keeps_no_writer_out, "the same with a read-write lock, a writer") {
    OK(pthread_rwlock_init(&rwlock, NULL));
    held_up_before_it_looks(write_rwlock, write_rwlock, take_rwlock, give_rwlock);
}
TEST(held_up__woken_writer_keeps_no_reader_out, "the same, a reader") {
    OK(pthread_rwlock_init(&rwlock, NULL));
    held_up_before_it_looks(write_rwlock, read_rwlock, take_rwlock, give_rwlock);
}

/*
 * A reader that sleeps behind it, before it is missed, comes in beside those that read again and again. It may come too
 * late for that, and go in by itself: hence 20 times.
 */
TEST(held_up__woken_writer_keeps_no_sleeping_reader_out,
     "20 times a reader sleeps behind it, and comes in beside others") {
    OK(pthread_rwlock_init(&rwlock, NULL));
    stay_on_one_cpu();
    for (int i = 0; i < 20; i++) {
        pthread_t held_up = wake_and_hold_up(write_rwlock, take_rwlock, give_rwlock);
        pthread_t reader = thread_start(read_rwlock, NULL);
        while (atomic_load(&waiting) < 2)
            sched_yield();
        for (int k = 0; k < 50; k++)
            sched_yield(); /* it looks, and sleeps */
        give_rwlock();
        while (atomic_load(&passed) == 0) {
            OK(pthread_rwlock_rdlock(&rwlock));
            OK(pthread_rwlock_unlock(&rwlock));
        }
        thread_join(reader);
        CHECK_INT(atomic_load(&passed), 1);
        let_go(held_up);
        CHECK_INT(atomic_load(&passed), 2);
    }
}

static void *take_token(void *unused) {
    (void)unused;
    atomic_fetch_add(&waiting, 1);
    while (sem_wait(&sem) != 0)
        CHECK_INT(errno, EINTR);
    atomic_fetch_add(&passed, 1);
    return NULL;
}
TEST(held_up__semaphore_waiter_takes_no_token, "3 wait behind it, and 3 tokens let them go on") {
    pthread_t others[3];
    SYS(sem_init(&sem, 0, 0));
    pthread_t held_up = start_and_hold_up(take_token);
    for (int i = 0; i < 3; i++)
        others[i] = thread_start(take_token, NULL);
    await(&waiting, 4);
    settle();
    for (int i = 0; i < 3; i++)
        SYS(sem_post(&sem));
    for (int i = 0; i < 3; i++)
        thread_join(others[i]);
    CHECK_INT(atomic_load(&passed), 3);
    SYS(sem_post(&sem));
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 4);
}
