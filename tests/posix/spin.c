/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Spin locks. Source: POSIX.1-2017 pthread_spin_init, _lock, _trylock, _unlock, _destroy. There is no static
 * initialiser, and zeroed memory is no valid object: on x86-64 glibc's free lock is 1, and code inlined elsewhere may
 * know that.
 */
#include "topic.h"

#include <signal.h>
#include <string.h>

static pthread_spinlock_t spin;
static long plain;
static atomic_int inside, entered;

static void *do_trylock(void *unused) {
    (void)unused;
    int rc = pthread_spin_trylock(&spin);
    if (rc == 0)
        OK(pthread_spin_unlock(&spin));
    return (void *)(long)rc;
}
static int probe(void) {
    return (int)(long)thread_join(thread_start(do_trylock, NULL));
}
TEST(spin_init__is_free, "init over zeros and over ones gives a free lock, private and shared") {
    for (int fill = 0; fill <= 0xff; fill += 0xff)
        for (int shared = 0; shared < 2; shared++) {
            memset((void *)&spin, fill, sizeof spin);
            OK(pthread_spin_init(&spin, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE));
            OK(probe());
            OK(pthread_spin_destroy(&spin));
        }
}
TEST(spin_lock__acquires, "lock of a free lock: 0, others find it busy until unlock") {
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_lock(&spin));
    CHECK_RC(probe(), EBUSY);
    OK(pthread_spin_unlock(&spin));
    OK(probe());
}
TEST(spin_trylock__acquires, "trylock of a free lock: 0, others find it busy until unlock") {
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_trylock(&spin));
    CHECK_RC(probe(), EBUSY);
    OK(pthread_spin_unlock(&spin));
    OK(probe());
}
TEST(spin_trylock__own_returns_EBUSY, "trylock of an own spin lock: EBUSY") {
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_lock(&spin));
    CHECK_RC(pthread_spin_trylock(&spin), EBUSY);
    OK(pthread_spin_unlock(&spin));
}
static void *enter_once(void *unused) {
    (void)unused;
    OK(pthread_spin_lock(&spin));
    atomic_store(&entered, 1);
    OK(pthread_spin_unlock(&spin));
    return NULL;
}
TEST(spin_lock__waits_for_the_owner, "a locker stays out until the owner unlocks") {
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_lock(&spin));
    pthread_t other = thread_start(enter_once, NULL);
    let_threads_block();
    CHECK_INT(atomic_load(&entered), 0);
    OK(pthread_spin_unlock(&spin));
    thread_join(other);
    CHECK_INT(atomic_load(&entered), 1);
}
static atomic_int absent;
static void *enter_often(void *unused) {
    (void)unused;
    begin_together(&absent);
    for (int i = 0; i < 20000; i++) {
        if (i % 3 != 0 || pthread_spin_trylock(&spin) != 0)
            OK(pthread_spin_lock(&spin));
        CHECK_INT(atomic_fetch_add(&inside, 1), 0);
        plain++;
        let_others_in(i);
        CHECK_INT(atomic_fetch_sub(&inside, 1), 1);
        OK(pthread_spin_unlock(&spin));
    }
    return NULL;
}
TEST(spin_lock__excludes, "4 threads, 20000 sections each by lock and trylock: one inside at a time, no update lost") {
    pthread_t threads[4];
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    atomic_store(&absent, 4);
    for (int i = 0; i < 4; i++)
        threads[i] = thread_start(enter_often, NULL);
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
    CHECK_INT(plain, 80000);
}
static void *do_lock(void *unused) {
    (void)unused;
    return (void *)(long)pthread_spin_lock(&spin);
}
TEST(spin_unlock__by_another_thread, "a lock released by a thread that did not take it is free (glibc)") {
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK((int)(long)thread_join(thread_start(do_lock, NULL)));
    CHECK_RC(pthread_spin_trylock(&spin), EBUSY);
    OK(pthread_spin_unlock(&spin));
    OK(pthread_spin_trylock(&spin));
}
TEST(spin_destroy__then_init_again, "destroy: 0, and a second init gives a free lock") {
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_lock(&spin));
    OK(pthread_spin_unlock(&spin));
    OK(pthread_spin_destroy(&spin));
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_trylock(&spin));
}
TEST(spin_lock__never_returns_EINTR, "a locker hit by 20 signals goes on waiting and gets the lock") {
    signal_counter(SIGUSR1, false);
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_lock(&spin));
    pthread_t other = thread_start(enter_once, NULL);
    let_threads_block();
    signal_thread(other, SIGUSR1, 20);
    CHECK_INT(atomic_load(&entered), 0);
    OK(pthread_spin_unlock(&spin));
    thread_join(other);
}
