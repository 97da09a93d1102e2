/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Process-shared objects between a process and its forked child, and at two addresses of one process. The other side
 * may be a program that knows nothing of any preloaded library, so these are the C library's objects under every
 * engine. Robust ones: mutex_special.c. Source: POSIX.1-2017 PTHREAD_PROCESS_SHARED, sem_init with pshared.
 */
#include "topic.h"

#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5000 };

static struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t cond, other_cond;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    pthread_spinlock_t spin;
    sem_t sem, other_sem;
    atomic_int absent, inside, ready, passed;
    atomic_int halfway; /* processes that have made half of their sections */
    atomic_long sections;
    int turn, go, waiting;
    long plain;
} * s;

static void init_mutex(pthread_mutex_t *m, int type) {
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, type));
    OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    OK(pthread_mutex_init(m, &attr));
}
static void init_cond(pthread_cond_t *c, clockid_t clock) {
    pthread_condattr_t attr;
    OK(pthread_condattr_init(&attr));
    OK(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    OK(pthread_condattr_setclock(&attr, clock));
    OK(pthread_cond_init(c, &attr));
}
static void init_objects(int mutex_type, unsigned barrier_count) {
    pthread_rwlockattr_t rwlock;
    pthread_barrierattr_t barrier;
    init_mutex(&s->mutex, mutex_type);
    init_cond(&s->cond, CLOCK_REALTIME);
    init_cond(&s->other_cond, CLOCK_MONOTONIC);
    OK(pthread_rwlockattr_init(&rwlock));
    OK(pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED));
    OK(pthread_rwlock_init(&s->rwlock, &rwlock));
    OK(pthread_barrierattr_init(&barrier));
    OK(pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED));
    OK(pthread_barrier_init(&s->barrier, &barrier, barrier_count));
    OK(pthread_spin_init(&s->spin, PTHREAD_PROCESS_SHARED));
    SYS(sem_init(&s->sem, 1, 0));
    SYS(sem_init(&s->other_sem, 1, 0));
}
static void share(int mutex_type, unsigned barrier_count) {
    s = shared_memory(sizeof *s);
    init_objects(mutex_type, barrier_count);
}

/* --- mutex -------------------------------------------------------------------------------------------------------- */
/*
 * After section i of a process, of n: is there another? Processes do not end before all have made half of their
 * sections: on a busy machine one may not run for so long that the others would never meet it.
 */
static bool goes_on(int i, int n) {
    if (i == ROUNDS / 2)
        atomic_fetch_add(&s->halfway, 1);
    atomic_fetch_add(&s->sections, i > 0);
    return i < ROUNDS || atomic_load(&s->halfway) < n;
}
static void enter_often(void *unused) {
    (void)unused;
    begin_together(&s->absent);
    for (int i = 0; goes_on(i, 3); i++) {
        OK(pthread_mutex_lock(&s->mutex));
        CHECK_INT(atomic_fetch_add(&s->inside, 1), 0);
        s->plain++;
        let_others_in(i);
        CHECK_INT(atomic_fetch_sub(&s->inside, 1), 1);
        OK(pthread_mutex_unlock(&s->mutex));
    }
}
static void exclusion(int type) {
    share(type, 2);
    atomic_store(&s->absent, 3);
    pid_t a = child_start(enter_often, NULL), b = child_start(enter_often, NULL);
    enter_often(NULL);
    child_join(a);
    child_join(b);
    CHECK(s->plain == atomic_load(&s->sections) && s->plain >= 3 * ROUNDS);
    OK(pthread_mutex_destroy(&s->mutex));
}
TEST(shared_mutex__excludes_processes,
     "3 processes, 5000 sections each: one inside at a time, no update lost (normal)") {
    exclusion(PTHREAD_MUTEX_NORMAL);
}
TEST(shared_mutex__recursive_excludes_processes, "3 processes, 5000 sections each (recursive)") {
    exclusion(PTHREAD_MUTEX_RECURSIVE);
}
TEST(shared_mutex__errorcheck_excludes_processes, "3 processes, 5000 sections each (errorcheck)") {
    exclusion(PTHREAD_MUTEX_ERRORCHECK);
}
TEST(shared_mutex__adaptive_excludes_processes, "3 processes, 5000 sections each (adaptive)") {
    exclusion(PTHREAD_MUTEX_ADAPTIVE_NP);
}
static void find_held(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS), mono = time_in_ms(CLOCK_MONOTONIC, SHORT_MS);
    CHECK_RC(pthread_mutex_trylock(&s->mutex), EBUSY);
    CHECK_RC(pthread_mutex_timedlock(&s->mutex, &end), ETIMEDOUT);
    CHECK_RC(pthread_mutex_clocklock(&s->mutex, CLOCK_MONOTONIC, &mono), ETIMEDOUT);
    CHECK_RC(pthread_mutex_unlock(&s->mutex), EPERM);
}
TEST(shared_mutex__held_by_another_process,
     "trylock EBUSY, timedlock and clocklock ETIMEDOUT, unlock EPERM (errorcheck)") {
    share(PTHREAD_MUTEX_ERRORCHECK, 2);
    OK(pthread_mutex_lock(&s->mutex));
    run_in_child(find_held, NULL);
    CHECK_RC(pthread_mutex_lock(&s->mutex), EDEADLK);
    OK(pthread_mutex_unlock(&s->mutex));
}
static void lock_and_hang(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&s->mutex));
    OK(pthread_rwlock_wrlock(&s->rwlock));
    atomic_store(&s->ready, 1);
    for (;;)
        pause();
}
TEST(shared_mutex__of_a_killed_process_stays_held,
     "SIGKILL of the owner of a mutex that is not robust and of an rwlock: "
     "others get EBUSY and ETIMEDOUT, no hang") {
    share(PTHREAD_MUTEX_NORMAL, 2);
    pid_t child = child_start(lock_and_hang, NULL);
    await(&s->ready, 1);
    SYS(kill(child, SIGKILL));
    CHECK_INT(waitpid(child, NULL, 0), child);
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_RC(pthread_mutex_trylock(&s->mutex), EBUSY);
    CHECK_RC(pthread_mutex_timedlock(&s->mutex, &end), ETIMEDOUT);
    CHECK_RC(pthread_rwlock_tryrdlock(&s->rwlock), EBUSY);
    CHECK_RC(pthread_rwlock_timedrdlock(&s->rwlock, &end), ETIMEDOUT);
}

/* --- condition ---------------------------------------------------------------------------------------------------- */
static void take_turns(void *self) {
    for (int i = 0; i < 1000; i++) {
        OK(pthread_mutex_lock(&s->mutex));
        while (s->turn % 2 != (int)(long)self)
            OK(pthread_cond_wait(&s->cond, &s->mutex));
        s->turn++;
        OK(pthread_cond_signal(&s->cond));
        OK(pthread_mutex_unlock(&s->mutex));
    }
}
TEST(shared_cond__signal_reaches_another_process, "2 processes take 1000 turns each by signals") {
    share(PTHREAD_MUTEX_NORMAL, 2);
    pid_t child = child_start(take_turns, (void *)1L);
    take_turns((void *)0L);
    child_join(child);
    CHECK_INT(s->turn, 2000);
}
static void wait_for_go(void *timed) {
    struct timespec end = time_in_ms(CLOCK_MONOTONIC, LONG_MS);
    OK(pthread_mutex_lock(&s->mutex));
    s->waiting++;
    while (!s->go)
        OK(timed != NULL ? pthread_cond_timedwait(&s->other_cond, &s->mutex, &end)
                         : pthread_cond_wait(&s->other_cond, &s->mutex));
    OK(pthread_mutex_unlock(&s->mutex));
    atomic_fetch_add(&s->passed, 1);
}
TEST(shared_cond__broadcast_reaches_all_processes, "4 processes wait, two with a deadline; one broadcast wakes all") {
    pid_t children[4];
    share(PTHREAD_MUTEX_NORMAL, 2);
    for (int i = 0; i < 4; i++)
        children[i] = child_start(wait_for_go, i % 2 == 0 ? NULL : s);
    for (bool all = false; !all; sleep_ms(1)) {
        OK(pthread_mutex_lock(&s->mutex));
        all = s->waiting == 4;
        if (all) {
            s->go = 1;
            OK(pthread_cond_broadcast(&s->other_cond));
        }
        OK(pthread_mutex_unlock(&s->mutex));
    }
    for (int i = 0; i < 4; i++)
        child_join(children[i]);
    CHECK_INT(atomic_load(&s->passed), 4);
}
TEST(shared_cond__timedwait_times_out, "timedwait on both condattr clocks and clockwait: ETIMEDOUT, mutex held") {
    share(PTHREAD_MUTEX_ERRORCHECK, 2);
    struct timespec real = time_in_ms(CLOCK_REALTIME, SHORT_MS), mono = time_in_ms(CLOCK_MONOTONIC, SHORT_MS);
    OK(pthread_mutex_lock(&s->mutex));
    CHECK_RC(pthread_cond_timedwait(&s->cond, &s->mutex, &real), ETIMEDOUT);
    CHECK(time_since_ms(CLOCK_REALTIME, real) >= 0);
    CHECK_RC(pthread_cond_timedwait(&s->other_cond, &s->mutex, &mono), ETIMEDOUT);
    mono = time_in_ms(CLOCK_MONOTONIC, SHORT_MS);
    CHECK_RC(pthread_cond_clockwait(&s->cond, &s->mutex, CLOCK_MONOTONIC, &mono), ETIMEDOUT);
    CHECK(time_since_ms(CLOCK_MONOTONIC, mono) >= 0);
    OK(pthread_mutex_unlock(&s->mutex));
}
static pthread_mutex_t private_mutex = PTHREAD_MUTEX_INITIALIZER;
static int private_go;
static void *wait_with_private_mutex(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&private_mutex));
    atomic_store(&s->ready, 1);
    while (!private_go)
        OK(pthread_cond_wait(&s->cond, &private_mutex));
    OK(pthread_mutex_unlock(&private_mutex));
    return NULL;
}
/* Without a signal; spurious wake-up are allowed and passed over. */
static int wait_until(struct timespec end) {
    int rc;
    do
        rc = pthread_cond_timedwait(&s->cond, &private_mutex, &end);
    while (rc == 0);
    return rc;
}
static void signal_shared(void *unused) {
    (void)unused;
    OK(pthread_cond_broadcast(&s->cond));
}
/* The condition is the C library's, the mutex is not: its unlock and lock happen inside the C library's wait. */
TEST(shared_cond__with_a_private_mutex, "a thread waits on a shared condition with a private mutex; another process "
                                        "broadcasts") {
    share(PTHREAD_MUTEX_NORMAL, 2);
    pthread_t t = thread_start(wait_with_private_mutex, NULL);
    await(&s->ready, 1);
    OK(pthread_mutex_lock(&private_mutex));
    private_go = 1;
    OK(pthread_mutex_unlock(&private_mutex));
    run_in_child(signal_shared, NULL);
    thread_join(t);
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    OK(pthread_mutex_lock(&private_mutex));
    CHECK_RC(wait_until(end), ETIMEDOUT);
    CHECK_RC(pthread_mutex_trylock(&private_mutex), EBUSY);
    OK(pthread_mutex_unlock(&private_mutex));
}
static atomic_int contended;
static void *contend_private(void *unused) {
    (void)unused;
    while (atomic_load(&contended) == 0) {
        OK(pthread_mutex_lock(&private_mutex));
        s->plain++;
        OK(pthread_mutex_unlock(&private_mutex));
    }
    return NULL;
}
TEST(shared_cond__with_a_contended_private_mutex,
     "200 timed waits on a shared condition with a private mutex that 3 threads "
     "fight for: exclusion holds") {
    pthread_t threads[3];
    share(PTHREAD_MUTEX_NORMAL, 2);
    for (int i = 0; i < 3; i++)
        threads[i] = thread_start(contend_private, NULL);
    for (int i = 0; i < 200; i++) {
        struct timespec end = time_in_ms(CLOCK_REALTIME, i % 2);
        OK(pthread_mutex_lock(&private_mutex));
        CHECK_RC(wait_until(end), ETIMEDOUT);
        long before = s->plain;
        for (int k = 0; k < 1000; k++)
            atomic_load(&s->inside);
        CHECK_INT(s->plain, before);
        OK(pthread_mutex_unlock(&private_mutex));
    }
    atomic_store(&contended, 1);
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
}

/* --- rwlock, barrier, spin lock ----------------------------------------------------------------------------------- */
static void read_and_write(void *seed) {
    begin_together(&s->absent);
    for (int i = 0; i < ROUNDS; i++) {
        if ((i + (long)seed) % 3 == 0) {
            OK(pthread_rwlock_wrlock(&s->rwlock));
            CHECK_INT(atomic_fetch_add(&s->inside, 100), 0);
            s->plain++;
            let_others_in(i);
            atomic_fetch_sub(&s->inside, 100);
        } else {
            OK(pthread_rwlock_rdlock(&s->rwlock));
            CHECK(atomic_fetch_add(&s->inside, 1) < 100);
            let_others_in(i);
            atomic_fetch_sub(&s->inside, 1);
        }
        OK(pthread_rwlock_unlock(&s->rwlock));
    }
}
TEST(shared_rwlock__excludes_processes, "3 processes, 5000 locks each: a writer is always alone, no update lost") {
    share(PTHREAD_MUTEX_NORMAL, 2);
    atomic_store(&s->absent, 3);
    pid_t a = child_start(read_and_write, (void *)1L), b = child_start(read_and_write, (void *)2L);
    read_and_write((void *)0L);
    child_join(a);
    child_join(b);
    CHECK_INT(s->plain, ROUNDS);
}
static void find_read(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    OK(pthread_rwlock_tryrdlock(&s->rwlock));
    OK(pthread_rwlock_unlock(&s->rwlock));
    CHECK_RC(pthread_rwlock_trywrlock(&s->rwlock), EBUSY);
    CHECK_RC(pthread_rwlock_timedwrlock(&s->rwlock, &end), ETIMEDOUT);
}
TEST(shared_rwlock__read_by_another_process, "tryrdlock 0, trywrlock EBUSY, timedwrlock ETIMEDOUT") {
    share(PTHREAD_MUTEX_NORMAL, 2);
    OK(pthread_rwlock_rdlock(&s->rwlock));
    run_in_child(find_read, NULL);
    OK(pthread_rwlock_unlock(&s->rwlock));
    OK(pthread_rwlock_trywrlock(&s->rwlock));
}
static void meet(void *unused) {
    (void)unused;
    for (int i = 1; i <= 500; i++) {
        atomic_fetch_add(&s->ready, 1);
        int rc = pthread_barrier_wait(&s->barrier);
        atomic_fetch_add(&s->passed, rc == PTHREAD_BARRIER_SERIAL_THREAD);
        CHECK(atomic_load(&s->ready) >= 3 * i);
    }
}
TEST(shared_barrier__joins_processes, "3 processes, 500 rounds: no process runs ahead, one serial thread each") {
    share(PTHREAD_MUTEX_NORMAL, 3);
    pid_t a = child_start(meet, NULL), b = child_start(meet, NULL);
    meet(NULL);
    child_join(a);
    child_join(b);
    CHECK_INT(atomic_load(&s->passed), 500);
    OK(pthread_barrier_destroy(&s->barrier));
}
static void spin_often(void *unused) {
    (void)unused;
    begin_together(&s->absent);
    for (int i = 0; goes_on(i, 2); i++) {
        OK(pthread_spin_lock(&s->spin));
        CHECK_INT(atomic_fetch_add(&s->inside, 1), 0);
        s->plain++;
        let_others_in(i);
        CHECK_INT(atomic_fetch_sub(&s->inside, 1), 1);
        OK(pthread_spin_unlock(&s->spin));
    }
}
TEST(shared_spin__excludes_processes, "2 processes, 5000 sections each: one inside at a time, no update lost") {
    share(PTHREAD_MUTEX_NORMAL, 2);
    atomic_store(&s->absent, 2);
    pid_t child = child_start(spin_often, NULL);
    spin_often(NULL);
    child_join(child);
    CHECK(s->plain == atomic_load(&s->sections) && s->plain >= 2 * ROUNDS);
}

/* --- semaphore ---------------------------------------------------------------------------------------------------- */
static void answer(void *unused) {
    (void)unused;
    for (int i = 0; i < 1000; i++) {
        SYS(sem_wait(&s->sem));
        SYS(sem_post(&s->other_sem));
    }
}
TEST(shared_sem__ping_pong_between_processes, "1000 round trips over two semaphores, waits with and without deadline") {
    int value = -1;
    share(PTHREAD_MUTEX_NORMAL, 2);
    pid_t child = child_start(answer, NULL);
    for (int i = 0; i < 1000; i++) {
        struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
        SYS(sem_post(&s->sem));
        SYS(i % 2 == 0 ? sem_wait(&s->other_sem) : sem_timedwait(&s->other_sem, &end));
    }
    child_join(child);
    SYS(sem_getvalue(&s->sem, &value));
    CHECK_INT(value, 0);
    SYS(sem_destroy(&s->sem));
}
TEST(shared_sem__errors, "a shared semaphore of 0: EAGAIN, ETIMEDOUT, EINVAL as a private one") {
    share(PTHREAD_MUTEX_NORMAL, 2);
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_ERRNO(sem_trywait(&s->sem), EAGAIN);
    CHECK_ERRNO(sem_timedwait(&s->sem, &end), ETIMEDOUT);
    CHECK_ERRNO(sem_timedwait(&s->sem, &time_nsec_too_big), EINVAL);
}

/* --- two addresses ------------------------------------------------------------------------------------------------ */
static struct shared *alias;
static void *use_alias(void *unused) {
    (void)unused;
    for (int i = 0; i < 500; i++) {
        OK(pthread_mutex_lock(&alias->mutex));
        CHECK_INT(atomic_fetch_add(&alias->inside, 1), 0);
        alias->plain++;
        CHECK_INT(atomic_fetch_sub(&alias->inside, 1), 1);
        OK(pthread_cond_signal(&alias->cond));
        OK(pthread_mutex_unlock(&alias->mutex));
        pthread_barrier_wait(&alias->barrier);
        SYS(sem_wait(&alias->sem));
        SYS(sem_post(&alias->other_sem));
    }
    return NULL;
}
TEST(shared__two_mappings_of_one_object,
     "mutex, condition, barrier, semaphores used at two addresses by two threads of one "
     "process, 500 rounds") {
    int file = memfd_create("posix-shared", MFD_CLOEXEC);
    SYS(file);
    SYS(ftruncate(file, sizeof *s));
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    alias = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(s != MAP_FAILED && alias != MAP_FAILED && s != alias);
    init_objects(PTHREAD_MUTEX_NORMAL, 2);
    pthread_t t = thread_start(use_alias, NULL);
    for (int i = 1; i <= 500; i++) {
        OK(pthread_mutex_lock(&s->mutex));
        CHECK_INT(atomic_fetch_add(&s->inside, 1), 0);
        CHECK_INT(atomic_fetch_sub(&s->inside, 1), 1);
        while (s->plain < i)
            OK(pthread_cond_wait(&s->cond, &s->mutex));
        OK(pthread_mutex_unlock(&s->mutex));
        pthread_barrier_wait(&s->barrier);
        SYS(sem_post(&s->sem));
        SYS(sem_wait(&s->other_sem));
    }
    thread_join(t);
    CHECK_INT(s->plain, 500);
}
