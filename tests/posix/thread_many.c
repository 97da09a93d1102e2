/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers: 1000 threads at once, 10 000 over a process's life, many objects, and what happens when the system has no
 * more threads or memory to give: an error from the call, never a hang.
 */
#include "topic.h"

#include <limits.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { N_THREADS = 1000 };

static pthread_t threads[N_THREADS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static long counter;
static int waiting, go;
static atomic_int serial;

static void small_attr(pthread_attr_t *attr) {
    OK(pthread_attr_init(attr));
    OK(pthread_attr_setstacksize(attr, PTHREAD_STACK_MIN + (1 << 16)));
}
static void start_thousand(void *(*routine)(void *)) {
    pthread_attr_t attr;
    small_attr(&attr);
    for (int i = 0; i < N_THREADS; i++)
        OK(pthread_create(&threads[i], &attr, routine, NULL));
    OK(pthread_attr_destroy(&attr));
}
static void join_thousand(void) {
    for (int i = 0; i < N_THREADS; i++)
        thread_join(threads[i]);
}

static void *lock_often(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        OK(pthread_mutex_lock(&mutex));
        long before = counter;
        let_others_in(i);
        counter = before + 1;
        OK(pthread_mutex_unlock(&mutex));
    }
    return NULL;
}
TEST(thousand_threads__mutex, "1000 threads queue at a held mutex, 20 sections each: no update lost") {
    OK(pthread_mutex_lock(&mutex));
    start_thousand(lock_often);
    OK(pthread_mutex_unlock(&mutex));
    join_thousand();
    CHECK_INT(counter, 20 * N_THREADS);
}
static void *wait_for_go(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    waiting++;
    while (!go)
        OK(pthread_cond_wait(&cond, &mutex));
    counter++;
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
TEST(thousand_threads__broadcast, "1000 waiters are all woken by one broadcast") {
    start_thousand(wait_for_go);
    for (bool all = false; !all; sleep_ms(1)) {
        OK(pthread_mutex_lock(&mutex));
        all = waiting == N_THREADS;
        if (all) {
            go = 1;
            OK(pthread_cond_broadcast(&cond));
        }
        OK(pthread_mutex_unlock(&mutex));
    }
    join_thousand();
    CHECK_INT(counter, N_THREADS);
}
static void *three_rounds(void *unused) {
    (void)unused;
    for (int i = 0; i < 3; i++)
        atomic_fetch_add(&serial, pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
    return NULL;
}
TEST(thousand_threads__barrier, "3 rounds of a barrier for 1000: 3 serial threads") {
    OK(pthread_barrier_init(&barrier, NULL, N_THREADS));
    start_thousand(three_rounds);
    join_thousand();
    CHECK_INT(atomic_load(&serial), 3);
}
static void *pass_sem(void *unused) {
    (void)unused;
    SYS(sem_wait(&sem));
    return NULL;
}
TEST(thousand_threads__semaphore, "1000 threads blocked at a semaphore pass after 1000 posts, value 0 after") {
    int value = -1;
    SYS(sem_init(&sem, 0, 0));
    start_thousand(pass_sem);
    for (int i = 0; i < N_THREADS; i++)
        SYS(sem_post(&sem));
    join_thousand();
    SYS(sem_getvalue(&sem, &value));
    CHECK_INT(value, 0);
}
static void *read_then_write(void *unused) {
    (void)unused;
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    OK(pthread_rwlock_wrlock(&rwlock));
    long before = counter;
    let_others_in(0);
    counter = before + 1;
    OK(pthread_rwlock_unlock(&rwlock));
    return NULL;
}
TEST(thousand_threads__rwlock, "1000 threads queue at a write lock, each reads and then writes: no update lost") {
    OK(pthread_rwlock_wrlock(&rwlock));
    start_thousand(read_then_write);
    OK(pthread_rwlock_unlock(&rwlock));
    join_thousand();
    CHECK_INT(counter, N_THREADS);
}

static void *lock_once(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    counter++;
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
static void *lock_once_detached(void *unused) {
    OK(pthread_detach(pthread_self()));
    return lock_once(unused);
}
TEST(ten_thousand_threads__over_a_life, "10 000 threads, 8 at a time, each locks a mutex: count is 10 000") {
    pthread_attr_t attr;
    const int n = rounds(10000);
    small_attr(&attr);
    for (int i = 0; i < n; i += 8) {
        for (int k = 0; k < 8; k++)
            OK(pthread_create(&threads[k], &attr, lock_once, NULL));
        for (int k = 0; k < 8; k++)
            thread_join(threads[k]);
    }
    CHECK_INT(counter, n);
}
TEST(ten_thousand_threads__detached, "10 000 detached threads, each locks a mutex: count reaches 10 000") {
    pthread_attr_t attr;
    pthread_t t;
    const int n = rounds(10000);
    small_attr(&attr);
    for (int i = 0; i < n;) {
        int rc = pthread_create(&t, &attr, lock_once_detached, NULL);
        if (rc == 0)
            i++;
        else
            CHECK_RC(rc, EAGAIN); /* the ended ones' stacks are on their way back */
        if (i % 50 == 0 || rc != 0)
            sleep_ms(1);
    }
    for (long now = 0; now != n; sleep_ms(1)) {
        OK(pthread_mutex_lock(&mutex));
        now = counter;
        OK(pthread_mutex_unlock(&mutex));
    }
}
TEST(many_objects__million_mutexes, "a million mutexes in zeroed memory, all held at once, none destroyed") {
    enum { N = 1000000 };
    pthread_mutex_t *many = calloc(N, sizeof *many);
    CHECK(many != NULL);
    for (int i = 0; i < N; i++)
        OK(pthread_mutex_lock(&many[i]));
    for (int i = 0; i < N; i++)
        OK(pthread_mutex_unlock(&many[i]));
    free(many);
}
TEST(many_objects__create_and_destroy,
     "200 000 times init, use and destroy of a mutex; 20 000 conditions never destroyed") {
    static pthread_cond_t kept[20000];
    for (int i = 0; i < 200000; i++) {
        pthread_mutex_t m;
        OK(pthread_mutex_init(&m, NULL));
        OK(pthread_mutex_lock(&m));
        if (i % 10 == 0) {
            OK(pthread_cond_init(&kept[i / 10], NULL));
            OK(pthread_cond_signal(&kept[i / 10]));
        }
        OK(pthread_mutex_unlock(&m));
        OK(pthread_mutex_destroy(&m));
    }
}

TEST(thread_limit__create_returns_EAGAIN,
     "under RLIMIT_NPROC creation fails with EAGAIN and works again after the others "
     "have ended") {
    SKIP_IF(geteuid() == 0 && (setgid(65534) != 0 || setuid(54321) != 0), "root is not limited, privileges stay");
    struct rlimit limit = {40, 40};
    SYS(setrlimit(RLIMIT_NPROC, &limit));
    int n = 0, rc = 0;
    pthread_attr_t attr;
    small_attr(&attr);
    while (n < 100 && (rc = pthread_create(&threads[n], &attr, wait_for_go, NULL)) == 0)
        n++;
    SKIP_IF(n == 100, "RLIMIT_NPROC is not enforced here");
    CHECK_RC(rc, EAGAIN);
    OK(pthread_mutex_lock(&mutex));
    go = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < n; i++)
        thread_join(threads[i]);
    CHECK_INT(counter, n);
    while ((rc = pthread_create(&threads[0], &attr, lock_once, NULL)) == EAGAIN)
        sleep_ms(1); /* the kernel counts an ended thread a moment longer */
    OK(rc);
    thread_join(threads[0]);
}
TEST(memory_limit__locks_need_no_memory,
     "with no address space left a thread is refused with EAGAIN; mutex, condition, "
     "rwlock, barrier and semaphore still work, waits included") {
    struct rlimit limit = {1 << 20, RLIM_INFINITY};
    pthread_t other = thread_start(wait_for_go, NULL), refused;
    SYS(setrlimit(RLIMIT_AS, &limit));
    SKIP_IF(mmap(NULL, 64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED,
            "RLIMIT_AS is not enforced here");
    CHECK_RC(pthread_create(&refused, NULL, wait_for_go, NULL), EAGAIN);
    OK(pthread_barrier_init(&barrier, NULL, 1));
    CHECK_INT(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    SYS(sem_init(&sem, 0, 1));
    SYS(sem_wait(&sem));
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_ERRNO(sem_timedwait(&sem, &end), ETIMEDOUT);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        OK(pthread_mutex_lock(&m));
        CHECK_RC(i > 0 ? ETIMEDOUT : pthread_mutex_timedlock(&m, &end), ETIMEDOUT);
        OK(pthread_mutex_unlock(&m));
    }
    OK(pthread_mutex_lock(&mutex));
    go = 1;
    OK(pthread_cond_signal(&cond));
    OK(pthread_mutex_unlock(&mutex));
    thread_join(other);
}
