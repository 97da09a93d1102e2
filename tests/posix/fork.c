/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fork, vfork and posix_spawn in a process with threads and locks: the child has one thread, the objects as they were,
 * and no waiters of the parent's. Shared objects: shared.c.
 * Source: POSIX.1-2017 fork, pthread_atfork; what a child of a multi-threaded process may do beyond async-signal-safe
 * calls as in glibc 2.36.
 */
#include "topic.h"

#include <dlfcn.h>
#include <link.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER, theirs = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static atomic_int holding, release, waiting, passed;
static long plain;
static int go;

static void *hold_theirs(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&theirs));
    OK(pthread_rwlock_wrlock(&rw));
    atomic_store(&holding, 1);
    await(&release, 1);
    OK(pthread_rwlock_unlock(&rw));
    OK(pthread_mutex_unlock(&theirs));
    return NULL;
}
static pthread_t start_holder(void) {
    pthread_t t = thread_start(hold_theirs, NULL);
    await(&holding, 1);
    return t;
}
static void stop_holder(pthread_t t) {
    atomic_store(&release, 1);
    thread_join(t);
}
static void join_all(pthread_t *threads, int n) {
    for (int i = 0; i < n; i++)
        thread_join(threads[i]);
}

/* --- locks in the child ------------------------------------------------------------------------------------------- */
static void lock_free_ones(void *unused) {
    (void)unused;
    for (int i = 0; i < 100; i++) {
        OK(pthread_mutex_lock(&mine));
        OK(pthread_mutex_unlock(&mine));
    }
}
TEST(fork__free_locks_are_usable_in_the_child,
     "the child locks a mutex that was free, while others are held elsewhere") {
    pthread_t t = start_holder();
    run_in_child(lock_free_ones, NULL);
    stop_holder(t);
}
static void try_held_ones(void *unused) {
    (void)unused;
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    CHECK_RC(pthread_mutex_trylock(&theirs), EBUSY);
    CHECK_RC(pthread_mutex_timedlock(&theirs, &end), ETIMEDOUT);
    CHECK_RC(pthread_rwlock_tryrdlock(&rw), EBUSY);
    CHECK_RC(pthread_rwlock_timedwrlock(&rw, &end), ETIMEDOUT);
}
TEST(fork__locks_of_other_threads_stay_held_in_the_child, "trylock EBUSY, timedlock ETIMEDOUT, for mutex and rwlock") {
    pthread_t t = start_holder();
    run_in_child(try_held_ones, NULL);
    stop_holder(t);
    OK(pthread_mutex_trylock(&theirs));
}
static void init_held_ones(void *unused) {
    (void)unused;
    OK(pthread_mutex_init(&theirs, NULL));
    OK(pthread_rwlock_init(&rw, NULL));
    OK(pthread_mutex_lock(&theirs));
    OK(pthread_rwlock_wrlock(&rw));
}
TEST(fork__init_frees_a_held_lock_in_the_child, "the child initialises the held ones anew and takes them") {
    pthread_t t = start_holder();
    run_in_child(init_held_ones, NULL);
    stop_holder(t);
}
static void unlock_mine(void *unused) {
    (void)unused;
    CHECK_RC(pthread_mutex_trylock(&mine), EBUSY);
    OK(pthread_mutex_unlock(&mine));
    OK(pthread_mutex_lock(&mine));
    OK(pthread_mutex_unlock(&mine));
}
TEST(fork__own_normal_lock_is_released_by_the_child,
     "a mutex that the forking thread holds is held in the child, which "
     "unlocks it; the parent's stays held") {
    OK(pthread_mutex_lock(&mine));
    run_in_child(unlock_mine, NULL);
    CHECK_RC(pthread_mutex_trylock(&mine), EBUSY);
    OK(pthread_mutex_unlock(&mine));
}
static void unlock_owned(void *mutex) {
    CHECK_RC(pthread_mutex_trylock(mutex), EBUSY);
    CHECK_RC(pthread_mutex_unlock(mutex), EPERM);
}
/* POSIX: the child's thread is a replica of the owner. glibc records the owner by kernel id, and the child's differs.
 */
TEST(fork__own_errorcheck_lock_is_foreign_in_the_child,
     "errorcheck and recursive mutexes of the forking thread: EBUSY and "
     "EPERM in the child (glibc)") {
    pthread_mutex_t errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
                    recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    OK(pthread_mutex_lock(&errorcheck));
    OK(pthread_mutex_lock(&recursive));
    run_in_child(unlock_owned, &errorcheck);
    run_in_child(unlock_owned, &recursive);
    OK(pthread_mutex_unlock(&errorcheck));
    OK(pthread_mutex_unlock(&recursive));
}
static void use_errorcheck(void *mutex) {
    OK(pthread_mutex_lock(mutex));
    CHECK_RC(pthread_mutex_lock(mutex), EDEADLK);
    OK(pthread_mutex_unlock(mutex));
    CHECK_RC(pthread_mutex_unlock(mutex), EPERM);
}
TEST(fork__child_owns_what_it_locks, "an errorcheck mutex locked in the child: EDEADLK, unlock 0, EPERM") {
    pthread_mutex_t m = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    use_errorcheck(&m);
    run_in_child(use_errorcheck, &m);
}
static void unlock_rw(void *unused) {
    (void)unused;
    CHECK_RC(pthread_rwlock_trywrlock(&rw), EBUSY);
    OK(pthread_rwlock_unlock(&rw));
    OK(pthread_rwlock_trywrlock(&rw));
}
TEST(fork__own_read_lock_is_released_by_the_child,
     "an rwlock read by the forking thread is read-held in the child, too") {
    OK(pthread_rwlock_rdlock(&rw));
    run_in_child(unlock_rw, NULL);
    CHECK_RC(pthread_rwlock_trywrlock(&rw), EBUSY);
}
/*
 * A write lock of the forking thread is not tested: glibc 2.36 knows the writer by its kernel id, so unlock in the
 * child takes it for a reader and breaks the lock.
 */
static void take_two_tokens(void *unused) {
    (void)unused;
    SYS(sem_wait(&sem));
    SYS(sem_wait(&sem));
    CHECK_ERRNO(sem_trywait(&sem), EAGAIN);
    SYS(sem_post(&sem));
}
TEST(fork__semaphore_value_is_copied,
     "the child has the 2 tokens; its waits and posts do not change the parent's value") {
    int value = -1;
    SYS(sem_init(&sem, 0, 2));
    run_in_child(take_two_tokens, NULL);
    SYS(sem_getvalue(&sem, &value));
    CHECK_INT(value, 2);
}

/* --- waiters of the parent do not exist in the child -------------------------------------------------------------- */
static void *wait_for_mine(void *unused) {
    (void)unused;
    atomic_fetch_add(&waiting, 1);
    OK(pthread_mutex_lock(&mine));
    atomic_fetch_add(&passed, 1);
    OK(pthread_mutex_unlock(&mine));
    return NULL;
}
TEST(fork__waiters_stay_with_the_parent,
     "the forking thread holds a mutex at which 8 threads wait: the child unlocks and "
     "locks it alone, the parent's waiters all get it") {
    pthread_t threads[8];
    OK(pthread_mutex_lock(&mine));
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(wait_for_mine, NULL);
    await(&waiting, 8);
    let_threads_block();
    for (int i = 0; i < 3; i++)
        run_in_child(unlock_mine, NULL);
    CHECK_INT(atomic_load(&passed), 0);
    OK(pthread_mutex_unlock(&mine));
    join_all(threads, 8);
    CHECK_INT(atomic_load(&passed), 8);
}
static void *wait_for_go(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mine));
    atomic_fetch_add(&waiting, 1);
    while (!go)
        OK(pthread_cond_wait(&cond, &mine));
    OK(pthread_mutex_unlock(&mine));
    return NULL;
}
static void start_waiters(pthread_t *threads, int n) {
    for (int i = 0; i < n; i++)
        threads[i] = thread_start(wait_for_go, NULL);
    await(&waiting, n);
}
/* With the mutex held. */
static void let_waiters_go(pthread_t *threads, int n) {
    go = 1;
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mine));
    join_all(threads, n);
}
static void use_cond_in_child(void *unused) {
    (void)unused;
    OK(pthread_cond_signal(&cond));
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&mine));
    /* Under glibc the condition still counts the parent's waiters, so a new one serves the child's own waits. */
    pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
    struct timespec end = time_in_ms(CLOCK_REALTIME, SHORT_MS);
    OK(pthread_mutex_lock(&mine));
    CHECK_RC(pthread_cond_timedwait(&fresh, &mine, &end), ETIMEDOUT);
    OK(pthread_mutex_unlock(&mine));
}
TEST(fork__condition_waiters_stay_with_the_parent,
     "8 threads wait on a condition: signals in the child reach no thread, the "
     "parent's broadcast wakes all") {
    pthread_t threads[8];
    start_waiters(threads, 8);
    OK(pthread_mutex_lock(&mine));
    run_in_child(use_cond_in_child, NULL);
    let_waiters_go(threads, 8);
}

/* --- threads of the child ----------------------------------------------------------------------------------------- */
static void *count_often(void *unused) {
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        OK(pthread_mutex_lock(&mine));
        plain++;
        OK(pthread_mutex_unlock(&mine));
        if (i % 500 == 0)
            pthread_barrier_wait(&barrier);
    }
    return NULL;
}
static void run_threads(void *unused) {
    pthread_t threads[4];
    (void)unused;
    plain = 0;
    OK(pthread_barrier_init(&barrier, NULL, 4));
    for (int i = 0; i < 4; i++)
        threads[i] = thread_start(count_often, NULL);
    join_all(threads, 4);
    CHECK_INT(plain, 8000);
}
static void unlock_and_run_threads(void *unused) {
    OK(pthread_mutex_unlock(&mine));
    run_threads(unused);
}
TEST(fork__child_may_start_threads,
     "a child of a process with 8 blocked threads runs 4 of its own with mutex and barrier") {
    pthread_t threads[8];
    start_waiters(threads, 8);
    OK(pthread_mutex_lock(&mine));
    for (int i = 0; i < 3; i++)
        run_in_child(unlock_and_run_threads, NULL);
    let_waiters_go(threads, 8);
}
static void fork_again(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mine));
    run_in_child(unlock_mine, NULL);
    OK(pthread_mutex_unlock(&mine));
    run_threads(NULL);
    run_in_child(run_threads, NULL);
}
TEST(fork__grandchildren, "a child forks again, with locks and after having had threads") {
    run_threads(NULL);
    run_in_child(fork_again, NULL);
}
static void *fork_and_lock(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        OK(pthread_mutex_lock(&mine));
        pid_t child = fork();
        SYS(child);
        plain++;
        OK(pthread_mutex_unlock(&mine));
        if (child == 0) {
            lock_free_ones(NULL);
            _exit(0);
        }
        child_join(child);
    }
    return NULL;
}
static void *churn(void *unused) {
    (void)unused;
    while (atomic_load(&release) == 0) {
        OK(pthread_mutex_lock(&mine));
        plain++;
        OK(pthread_cond_signal(&cond));
        OK(pthread_mutex_unlock(&mine));
        struct timespec end = time_in_ms(CLOCK_REALTIME, 1);
        OK(pthread_mutex_lock(&theirs));
        int rc = pthread_cond_timedwait(&cond, &theirs, &end);
        CHECK(rc == 0 || rc == ETIMEDOUT);
        OK(pthread_mutex_unlock(&theirs));
    }
    return NULL;
}
/* Whatever internal lock another thread holds at the moment of the fork, the child must not find it taken. */
TEST(fork__while_other_threads_are_inside_calls,
     "100 forks by 5 threads that hold a mutex, against 4 that lock, signal and "
     "wait all the time") {
    pthread_t forkers[5], churners[4];
    for (int i = 0; i < 4; i++)
        churners[i] = thread_start(churn, NULL);
    for (int i = 0; i < 5; i++)
        forkers[i] = thread_start(fork_and_lock, NULL);
    join_all(forkers, 5);
    atomic_store(&release, 1);
    join_all(churners, 4);
}
static void *fork_in_thread(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mine));
    run_in_child(unlock_mine, NULL);
    OK(pthread_mutex_unlock(&mine));
    run_in_child(run_threads, NULL);
    return NULL;
}
TEST(fork__by_another_thread_than_main, "a thread that is not the main one forks with a lock; its child has threads") {
    thread_join(thread_start(fork_in_thread, NULL));
}

/* --- pthread_atfork ----------------------------------------------------------------------------------------------- */
static int n_prepare, n_parent, n_child;
static void prepare(void) {
    OK(pthread_mutex_lock(&theirs));
    n_prepare++;
}
static void in_parent(void) {
    n_parent++;
    OK(pthread_mutex_unlock(&theirs));
}
static void in_child(void) {
    n_child++;
    OK(pthread_mutex_unlock(&theirs));
}
static void check_child_side(void *unused) {
    (void)unused;
    CHECK_INT(n_prepare, 1);
    CHECK_INT(n_parent, 0);
    CHECK_INT(n_child, 1);
    OK(pthread_mutex_lock(&theirs));
    OK(pthread_mutex_unlock(&theirs));
}
TEST(fork__atfork_handlers_lock_and_unlock, "prepare locks, both sides unlock: the mutex is free in parent and child") {
    OK(pthread_atfork(prepare, in_parent, in_child));
    run_in_child(check_child_side, NULL);
    CHECK_INT(n_prepare, 1);
    CHECK_INT(n_parent, 1);
    CHECK_INT(n_child, 0);
    OK(pthread_mutex_trylock(&theirs));
}
static void *contend(void *unused) {
    (void)unused;
    while (atomic_load(&release) == 0) {
        OK(pthread_mutex_lock(&theirs));
        plain++;
        OK(pthread_mutex_unlock(&theirs));
    }
    return NULL;
}
static void check_consistent(void *unused) {
    (void)unused;
    long before = plain; /* no other thread is there to change it */
    OK(pthread_mutex_lock(&theirs));
    CHECK_INT(plain, before);
    OK(pthread_mutex_unlock(&theirs));
}
TEST(fork__atfork_lock_under_contention,
     "30 forks; prepare takes a mutex that 4 threads fight for; the child finds it free") {
    pthread_t threads[4];
    OK(pthread_atfork(prepare, in_parent, in_child));
    for (int i = 0; i < 4; i++)
        threads[i] = thread_start(contend, NULL);
    for (int i = 0; i < 30; i++)
        run_in_child(check_consistent, NULL);
    atomic_store(&release, 1);
    join_all(threads, 4);
    CHECK_INT(n_prepare, 30);
}
static void reinit_in_child(void) {
    OK(pthread_mutex_init(&theirs, NULL));
}
static void lock_theirs(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&theirs));
}
TEST(fork__atfork_handler_may_init_a_held_lock, "the child handler initialises a mutex that another thread held") {
    OK(pthread_atfork(NULL, NULL, reinit_in_child));
    pthread_t t = start_holder();
    run_in_child(lock_theirs, NULL);
    stop_holder(t);
}

/* --- vfork, posix_spawn, system ----------------------------------------------------------------------------------- */
static void check_status(pid_t child, int wanted) {
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), wanted);
}
/*
 * The library looks at what is loaded when a thread is created, and the dynamic linker has a lock around that, which no
 * fork frees. Here a look takes long.
 */
static atomic_int stop_creating, looks_take_long;
struct look {
    int (*callback)(struct dl_phdr_info *, size_t, void *);
    void *argument;
};
static int look_long(struct dl_phdr_info *info, size_t size, void *argument) {
    const struct look *look = argument;
    for (volatile int i = 0; i < 100000 && atomic_load(&looks_take_long); i++)
        ;
    return look->callback(info, size, look->argument);
}
int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *argument) {
    static int (*next)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    struct look look = {callback, argument};
    if (next == NULL)
        *(void **)(void *)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return next(look_long, &look);
}
static void *nothing(void *unused) {
    return unused;
}
static void *create_threads(void *unused) {
    (void)unused;
    while (!atomic_load(&stop_creating))
        thread_join(thread_start(nothing, NULL));
    return NULL;
}
static void create_one(void *unused) {
    atomic_store(&looks_take_long, 0);
    thread_join(thread_start(nothing, unused));
}
TEST(fork__while_other_threads_create_threads, "50 forks against 3 threads that create threads: the children do too") {
    pthread_t threads[3];
    atomic_store(&looks_take_long, 1);
    for (int i = 0; i < 3; i++)
        threads[i] = thread_start(create_threads, NULL);
    for (int i = 0; i < 50; i++)
        run_in_child(create_one, NULL);
    atomic_store(&stop_creating, 1);
    join_all(threads, 3);
}
TEST(vfork__with_held_locks, "vfork and exec while locks are held and waited for; the parent goes on") {
    pthread_t t = start_holder(), waiter;
    OK(pthread_mutex_lock(&mine));
    waiter = thread_start(wait_for_mine, NULL);
    await(&waiting, 1);
    for (int i = 0; i < 10; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
            _exit(127);
        }
        SYS(child);
        check_status(child, 7);
    }
    OK(pthread_mutex_unlock(&mine));
    thread_join(waiter);
    stop_holder(t);
}
static void *spawn_often(void *unused) {
    (void)unused;
    char *arguments[] = {"sh", "-c", "exit 3", NULL};
    for (int i = 0; i < 10; i++) {
        pid_t child;
        OK(pthread_mutex_lock(&mine));
        OK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ));
        OK(pthread_mutex_unlock(&mine));
        check_status(child, 3);
    }
    return NULL;
}
TEST(posix_spawn__by_threads_that_hold_locks, "4 threads spawn 10 programs each with a mutex held") {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = thread_start(spawn_often, NULL);
    join_all(threads, 4);
}
TEST(system__while_threads_wait, "system() returns the command's status while 4 threads wait on a condition") {
    pthread_t threads[4];
    start_waiters(threads, 4);
    int status = system("exit 5");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    OK(pthread_mutex_lock(&mine));
    let_waiters_go(threads, 4);
}

/* --- a handler that forks while its thread is on the way to its routine ------------------------------------------- */
static pid_t first_process;
static volatile pid_t forked;
static void *of_the_child(void *unused) {
    OK(pthread_mutex_lock(&theirs));
    OK(pthread_mutex_unlock(&theirs));
    return unused;
}
static void fork_before_the_routine(int number) {
    (void)number;
    forked = fork();
    if (forked == 0)
        thread_join(thread_start(of_the_child, NULL));
    else
        check_status(forked, 7);
}
static void *routine(void *argument) {
    OK(pthread_mutex_lock(&mine));
    OK(pthread_mutex_unlock(&mine));
    if (getpid() != first_process)
        _exit(argument == &plain ? 7 : 8);
    CHECK(forked > 0);
    return argument;
}
TEST(fork__by_a_handler_before_the_threads_routine,
     "parent and child run the routine with its argument, though the handler has created a thread in the child") {
    sigset_t set, none;
    pthread_attr_t attr;
    pthread_t thread;
    void *result;
    first_process = getpid();
    signal(SIGUSR1, fork_before_the_routine);
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setsigmask_np(&attr, &none));
    CHECK(kill(first_process, SIGUSR1) == 0); /* pending: the new thread is the first that accepts it */
    OK(pthread_create(&thread, &attr, routine, &plain));
    OK(pthread_join(thread, &result));
    CHECK(result == &plain && forked > 0);
}
