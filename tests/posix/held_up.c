/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread that waits for a mutex, read-write lock or semaphore is held up in a signal handler, as a collector that
 * stops the world holds it up. It holds nothing, so it keeps no other thread out. POSIX says so for
 * barriers only (barrier.c). Under glibc it holds for these too, except for read-write locks that prefer writers and
 * priority-inheriting mutexes.
 */
#include "held_up.h"

#include <semaphore.h>

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock;
static sem_t sem;
static int turns; /* protected by mutex */

/* A thread that runs `routine`, and is held up when it waits. */
static pthread_t start_and_hold_up(void *(*routine)(void *)) {
    begin_round();
    pthread_t thread = thread_start(routine, NULL);
    await(&waiting, 1);
    let_threads_block();
    hold_up(thread);
    return thread;
}
TEST(held_up__mutex_waiter_keeps_none_out, "100 locks by its owner, one in between by each of 3 others") {
    OK(pthread_mutex_lock(&mutex));
    pthread_t held_up = start_and_hold_up(lock_mutex);
    for (int i = 0; i < 100; i++) {
        pthread_t other;
        bool asks = i == 0 || i == 50 || i == 99;
        if (asks) {
            other = thread_start(lock_mutex, NULL);
            let_threads_block();
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
TEST(held_up__mutex_waiter_keeps_no_other_out, "8 wait behind it; all have had the mutex before it goes on") {
    pthread_t others[8];
    OK(pthread_mutex_lock(&mutex));
    pthread_t held_up = start_and_hold_up(lock_mutex);
    for (int i = 0; i < 8; i++)
        others[i] = thread_start(lock_mutex, NULL);
    await(&waiting, 9);
    let_threads_block();
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
    let_threads_block();
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
TEST(held_up__cond_waiter_keeps_no_thread_from_the_mutex,
     "woken by a broadcast with 4 others: those, and the broadcaster, "
     "go on") {
    held_up_in_condition_wait(true);
}
TEST(held_up__cond_waiter_keeps_no_thread_from_the_free_mutex, "the same if the mutex is free at the broadcast") {
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
TEST(held_up__rwlock_writer_keeps_none_out, "4 writers and 4 readers wait behind it; all go on, and its owner again") {
    pthread_t others[8];
    OK(pthread_rwlock_init(&rwlock, NULL));
    OK(pthread_rwlock_wrlock(&rwlock));
    pthread_t held_up = start_and_hold_up(write_rwlock);
    for (int i = 0; i < 8; i++)
        others[i] = thread_start(i % 2 == 0 ? write_rwlock : read_rwlock, NULL);
    await(&waiting, 9);
    let_threads_block();
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
TEST(held_up__rwlock_writer_keeps_no_reader_out, "one reader alone waits behind it, and goes on") {
    OK(pthread_rwlock_init(&rwlock, NULL));
    OK(pthread_rwlock_wrlock(&rwlock));
    pthread_t held_up = start_and_hold_up(write_rwlock), other = thread_start(read_rwlock, NULL);
    await(&waiting, 2);
    let_threads_block();
    OK(pthread_rwlock_unlock(&rwlock));
    thread_join(other);
    CHECK_INT(atomic_load(&passed), 1);
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 2);
}
TEST(held_up__rwlock_writer_keeps_later_ones_out_neither, "of 6 that wait one after the other each goes on") {
    OK(pthread_rwlock_init(&rwlock, NULL));
    OK(pthread_rwlock_wrlock(&rwlock));
    pthread_t held_up = start_and_hold_up(write_rwlock);
    for (int i = 0; i < 6; i++) {
        pthread_t other = thread_start(i % 2 == 0 ? write_rwlock : read_rwlock, NULL);
        let_threads_block();
        OK(pthread_rwlock_unlock(&rwlock));
        thread_join(other);
        OK(pthread_rwlock_wrlock(&rwlock));
    }
    OK(pthread_rwlock_unlock(&rwlock));
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 7);
}

/*
 * A waiter that is woken and then held up before it has looked: on one CPU it does not run until another thread waits.
 * Other threads may then take what it was woken for. The caller holds the lock.
 */
static pthread_t wake_and_hold_up(void *(*waits)(void *), void (*lock)(void), void (*unlock)(void)) {
    struct timespec not_for_long = {0, 300000}; /* otherwise it would get the object itself */
    pthread_t held_up;
    int tries = 0;
    for (bool too_quick = true; too_quick; tries++) {
        SKIP_IF(tries == 100, "the waiter always has it at once");
        begin_round();
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
    hold_up(held_up);
    return held_up;
}
static void held_up_before_it_looks(void *(*waits)(void *), void *(*comes_later)(void *), void (*lock)(void),
                                    void (*unlock)(void)) {
    stay_on_one_cpu();
    pthread_t held_up = wake_and_hold_up(waits, lock, unlock);
    let_threads_block(); /* until it is overdue */
    pthread_t other = thread_start(comes_later, NULL);
    await(&waiting, 2);
    let_threads_block();
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
TEST(held_up__woken_mutex_waiter_keeps_none_out,
     "held up before it has looked: a thread that comes later has the mutex") {
    held_up_before_it_looks(lock_mutex, lock_mutex, take_mutex, give_mutex);
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
 * A thread sleeps behind the held-up thread before that is missed. It gets the object when the owner gives it up, or
 * although an owner, or a reader, goes on using it. It may come too late for that, and get the object without a wait:
 * hence 20 times.
 */
static void sleeps_behind_it(pthread_t (*wakes_and_holds_up)(void), void *(*sleeps)(void *), void (*unlock)(void),
                             void (*goes_on)(void)) {
    stay_on_one_cpu();
    for (int i = 0; i < 20; i++) {
        pthread_t held_up = wakes_and_holds_up(), sleeper = thread_start(sleeps, NULL);
        while (atomic_load(&waiting) < 2)
            sched_yield();
        let_others_run(); /* it looks, and sleeps */
        unlock();
        while (goes_on != NULL && atomic_load(&passed) == 0)
            goes_on();
        thread_join(sleeper);
        CHECK_INT(atomic_load(&passed), 1);
        let_go(held_up);
        CHECK_INT(atomic_load(&passed), 2);
    }
}
static pthread_t woken_locker(void) {
    return wake_and_hold_up(lock_mutex, take_mutex, give_mutex);
}
static pthread_t woken_writer(void) {
    return wake_and_hold_up(write_rwlock, take_rwlock, give_rwlock);
}
static void lock_and_unlock(void) {
    take_mutex();
    give_mutex();
}
static void read_and_unlock(void) {
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
}
TEST(held_up__woken_mutex_waiter_keeps_no_sleeper_out, "20 times one sleeps behind it, and has it in between others") {
    sleeps_behind_it(woken_locker, lock_mutex, give_mutex, lock_and_unlock);
}
TEST(held_up__woken_writer_keeps_no_sleeping_reader_out, "the same, a reader behind a writer, beside readers") {
    OK(pthread_rwlock_init(&rwlock, NULL));
    sleeps_behind_it(woken_writer, read_rwlock, give_rwlock, read_and_unlock);
}
TEST(held_up__woken_mutex_waiter_keeps_no_last_one_out, "20 times one sleeps behind it, and the owner unlocks once") {
    sleeps_behind_it(woken_locker, lock_mutex, give_mutex, NULL);
}
TEST(held_up__woken_writer_keeps_no_last_writer_out, "the same, a writer behind a writer") {
    OK(pthread_rwlock_init(&rwlock, NULL));
    sleeps_behind_it(woken_writer, write_rwlock, give_rwlock, NULL);
}
TEST(held_up__woken_writer_keeps_no_last_reader_out, "the same, a reader behind a writer") {
    OK(pthread_rwlock_init(&rwlock, NULL));
    sleeps_behind_it(woken_writer, read_rwlock, give_rwlock, NULL);
}

/*
 * A waiter that has waited for long and has lost the mutex to another thread: an unlock may keep the mutex for it. The
 * signal comes just before that unlock, so the waiter is in its handler before it can look.
 */
static pthread_t hand_over_and_hold_up(void) {
    const struct timespec long_enough = {0, 2000000};
    for (int tries = 0;; tries++) {
        CHECK(tries < 1000);
        begin_round();
        take_mutex();
        pthread_t held_up = thread_start(lock_mutex, NULL);
        await(&waiting, 1);
        nanosleep(&long_enough, NULL);
        give_mutex();
        take_mutex();
        if (atomic_load(&passed) == 0) {
            nanosleep(&long_enough, NULL); /* it finds the mutex taken, and sleeps */
            OK(pthread_kill(held_up, SIGUSR2));
            give_mutex();
            while (atomic_load(&in_handler) == 0)
                sched_yield();
            return held_up;
        }
        give_mutex();
        thread_join(held_up);
    }
}
static void try_until_taken(void) {
    while (pthread_mutex_trylock(&mutex) != 0)
        sched_yield();
    give_mutex();
}
TEST(held_up__handed_mutex_keeps_none_out, "20 times: a trylock succeeds, and a thread that comes has the mutex") {
    stay_on_one_cpu();
    for (int i = 0; i < 20; i++) {
        pthread_t held_up = hand_over_and_hold_up();
        if (i % 2 == 0)
            try_until_taken();
        thread_join(thread_start(lock_mutex, NULL));
        CHECK_INT(atomic_load(&passed), 1);
        let_go(held_up);
        CHECK_INT(atomic_load(&passed), 2);
    }
}

static atomic_int in_wait;
static void *wait_once(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    atomic_store(&in_wait, 1);
    OK(pthread_cond_wait(&cond, &mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
TEST(held_up__handed_mutex_keeps_no_signalled_one_out, "20 times: a thread that is signalled meanwhile goes on") {
    stay_on_one_cpu();
    for (int i = 0; i < 20; i++) {
        atomic_store(&in_wait, 0);
        pthread_t signalled = thread_start(wait_once, NULL);
        await(&in_wait, 1);
        pthread_t held_up = hand_over_and_hold_up();
        OK(pthread_cond_signal(&cond));
        thread_join(signalled);
        let_go(held_up);
    }
}

/* Where the frames of a wait were. */
static __attribute__((noinline)) void overwrite_stack(void) {
    volatile char stack[4096];
    for (size_t i = 0; i < sizeof stack; i++)
        stack[i] = 0x41;
}
static void come_back(int signo) {
    (void)signo;
    atomic_fetch_add(&in_handler, 1);
}
static atomic_int contended;
static void *take_and_give(void *unused) {
    (void)unused;
    while (atomic_load(&contended) != 0) {
        take_mutex();
        give_mutex();
    }
    return NULL;
}
TEST(held_up__nothing_is_left_of_a_wait, "20000 contended locks, each followed by a signal") {
    struct sigaction action = {.sa_handler = come_back};
    SYS(sigaction(SIGUSR2, &action, NULL));
    atomic_store(&contended, 1);
    pthread_t others[2] = {thread_start(take_and_give, NULL), thread_start(take_and_give, NULL)};
    for (int i = 0; i < 20000; i++) {
        take_mutex();
        overwrite_stack();
        OK(pthread_kill(pthread_self(), SIGUSR2));
        give_mutex();
    }
    CHECK_INT(atomic_load(&in_handler), 20000);
    atomic_store(&contended, 0);
    thread_join(others[0]);
    thread_join(others[1]);
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
    let_threads_block();
    for (int i = 0; i < 3; i++)
        SYS(sem_post(&sem));
    for (int i = 0; i < 3; i++)
        thread_join(others[i]);
    CHECK_INT(atomic_load(&passed), 3);
    SYS(sem_post(&sem));
    let_go(held_up);
    CHECK_INT(atomic_load(&passed), 4);
}
