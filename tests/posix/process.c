/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks at the odd moments of a process's and a thread's life: before main (also before any library's constructor), in
 * exit handlers, in destructors of thread-specific data and of thread-local objects, in modules that come and go.
 * Source: POSIX.1-2017 atexit, pthread_key_create, dlclose; ELF's .preinit_array; __cxa_thread_atexit_impl is what C++
 * compilers emit for thread_local objects.
 */
#include "module.h"
#include "topic.h"

#include <dlfcn.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static atomic_int waiting;
static long plain;

/* --- before main -------------------------------------------------------------------------------------------------- */
static struct early {
    pthread_mutex_t normal, recursive, errorcheck;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_once_t once;
    pthread_barrier_t barrier;
    sem_t sem;
    int n_once, n_steps, first_error; /* of the steps below; checked in main's tests */
} preinit = {.recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
             .errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP},
  constructor = {.recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                 .errorcheck = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

static struct early *current;
static void early_once(void) {
    current->n_once++;
}
static void step(int got, int wanted) {
    current->n_steps++;
    if (got != wanted && current->first_error == 0)
        current->first_error = current->n_steps;
}
static void use_everything(struct early *e) {
    current = e;
    step(pthread_mutex_lock(&e->normal), 0); /* held until main's tests, with a second one taken inside */
    step(pthread_mutex_trylock(&e->normal), EBUSY);
    step(pthread_mutex_lock(&e->recursive), 0);
    step(pthread_mutex_lock(&e->recursive), 0);
    step(pthread_mutex_unlock(&e->recursive), 0);
    step(pthread_mutex_unlock(&e->recursive), 0);
    step(pthread_mutex_unlock(&e->recursive), EPERM);
    step(pthread_mutex_lock(&e->errorcheck), 0);
    step(pthread_mutex_lock(&e->errorcheck), EDEADLK);
    step(pthread_cond_timedwait(&e->cond, &e->errorcheck, &time_epoch), ETIMEDOUT);
    step(pthread_mutex_unlock(&e->errorcheck), 0);
    step(pthread_cond_signal(&e->cond), 0);
    step(pthread_cond_broadcast(&e->cond), 0);
    step(pthread_rwlock_rdlock(&e->rwlock), 0);
    step(pthread_rwlock_trywrlock(&e->rwlock), EBUSY);
    step(pthread_rwlock_unlock(&e->rwlock), 0);
    step(pthread_once(&e->once, early_once), 0);
    step(sem_init(&e->sem, 0, 1), 0);
    step(sem_wait(&e->sem), 0);
    step(sem_post(&e->sem), 0);
    step(pthread_barrier_init(&e->barrier, NULL, 1), 0);
    step(pthread_barrier_wait(&e->barrier), PTHREAD_BARRIER_SERIAL_THREAD);
}
static void before_all_constructors(int argc, char **argv, char **envp) {
    (void)argc;
    (void)argv;
    (void)envp;
    use_everything(&preinit);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit_entry)(int, char **,
                                                                                    char **) = before_all_constructors;

static pthread_t early_thread;
static int early_thread_rc, early_sections;
static void *wait_for_constructor_lock(void *unused) {
    (void)unused;
    pthread_mutex_lock(&constructor.normal);
    early_sections++;
    pthread_mutex_unlock(&constructor.normal);
    return NULL;
}
__attribute__((constructor(101))) static void first_constructor(void) {
    use_everything(&constructor);
    early_thread_rc = pthread_create(&early_thread, NULL, wait_for_constructor_lock, NULL);
}
/* Check forks each test from the main program; a thread does not survive that, so it ends before main. */
__attribute__((constructor(102))) static void second_constructor(void) {
    pthread_mutex_unlock(&constructor.normal);
    if (early_thread_rc == 0)
        early_thread_rc = pthread_join(early_thread, NULL);
    pthread_mutex_lock(&constructor.normal);
}

static void check_early(struct early *e) {
    CHECK_INT(e->n_steps, 22);
    if (e->first_error != 0)
        FAIL("step %d of the early calls went wrong", e->first_error);
    CHECK_INT(e->n_once, 1);
    CHECK_RC(pthread_mutex_trylock(&e->normal), EBUSY);
    OK(pthread_mutex_unlock(&e->normal));
    OK(pthread_mutex_lock(&e->normal));
    OK(pthread_once(&e->once, early_once));
    CHECK_INT(e->n_once, 1);
    SYS(sem_trywait(&e->sem));
    CHECK_ERRNO(sem_trywait(&e->sem), EAGAIN);
}
TEST(early__preinit_array,
     "22 calls on every kind of object before any constructor: results, held mutex, token remain") {
    check_early(&preinit);
}
TEST(early__constructor, "22 calls on every kind of object in a constructor: results, held mutex, token remain") {
    check_early(&constructor);
}
TEST(early__thread_in_a_constructor,
     "a thread started in a constructor blocks at a mutex that main's thread holds, gets "
     "it and is joined before main") {
    OK(early_thread_rc);
    CHECK_INT(early_sections, 1);
}

/* --- exit --------------------------------------------------------------------------------------------------------- */
static int report_pipe[2];
/* Locks, waits and tells the parent, so that a handler that does not run fails the test. */
static void use_at_exit(void) {
    struct timespec end = time_in_ms(CLOCK_REALTIME, 5);
    OK(pthread_mutex_lock(&mutex));
    CHECK_RC(pthread_cond_timedwait(&cond, &mutex, &end), ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    SYS(sem_post(&sem));
    SYS(sem_wait(&sem));
    if (write(report_pipe[1], "x", 1) != 1)
        _exit(3);
}
static void check_exit(void (*routine)(void *), int handlers) {
    char bytes[16];
    ssize_t n = 0, got;
    SYS(sem_init(&sem, 0, 0));
    SYS(pipe(report_pipe));
    pid_t child = child_start(routine, NULL);
    SYS(close(report_pipe[1]));
    while ((got = read(report_pipe[0], bytes + n, sizeof bytes - (size_t)n)) > 0)
        n += got;
    CHECK_INT(n, handlers);
    child_join(child);
}
static void exit_with_handlers(void *unused) {
    (void)unused;
    CHECK_INT(atexit(use_at_exit), 0);
    CHECK_INT(atexit(use_at_exit), 0);
    exit(0);
}
TEST(exit__handlers_may_lock_and_wait,
     "2 atexit handlers lock, wait with a deadline, post and wait; the process ends") {
    check_exit(exit_with_handlers, 2);
}
static void quick_exit_with_handler(void *unused) {
    (void)unused;
    CHECK_INT(at_quick_exit(use_at_exit), 0);
    quick_exit(0);
}
TEST(quick_exit__handler_may_lock_and_wait, "an at_quick_exit handler locks and waits; the process ends") {
    check_exit(quick_exit_with_handler, 1);
}
static void *lock_for_ever(void *unused) {
    for (;;) {
        OK(pthread_mutex_lock(&mutex));
        plain++;
        OK(pthread_mutex_unlock(&mutex));
        pthread_testcancel();
    }
    return unused;
}
static void *wait_for_ever(void *unused) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&own));
    atomic_fetch_add(&waiting, 1);
    for (;;)
        OK(pthread_cond_wait(&cond, &own));
    return unused;
}
static void *block_for_ever(void *unused) {
    (void)unused;
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&own));
    atomic_fetch_add(&waiting, 1);
    pthread_mutex_lock(&own);
    FAIL("a deadlock ended");
}
static void exit_beside_threads(void *unused) {
    (void)unused;
    for (int i = 0; i < 3; i++) {
        thread_start(lock_for_ever, NULL);
        thread_start(wait_for_ever, NULL);
        thread_start(block_for_ever, NULL);
    }
    await(&waiting, 6);
    CHECK_INT(atexit(use_at_exit), 0);
    exit(0);
}
TEST(exit__beside_running_and_blocked_threads,
     "exit while threads lock, wait and are deadlocked: the handler runs, the "
     "process ends") {
    check_exit(exit_beside_threads, 1);
}
static void *call_exit(void *unused) {
    exit_with_handlers(unused);
    return NULL;
}
static void exit_in_thread(void *unused) {
    (void)unused;
    thread_join(thread_start(call_exit, NULL));
}
TEST(exit__from_another_thread,
     "a thread calls exit while main waits to join it: both handlers run, the process ends") {
    check_exit(exit_in_thread, 2);
}

/* --- thread-specific data and thread-local objects ---------------------------------------------------------------- */
static pthread_key_t keys[3];
static void lock_and_count(void) {
    struct timespec end = time_in_ms(CLOCK_REALTIME, 1);
    OK(pthread_mutex_lock(&mutex));
    plain++;
    CHECK_RC(pthread_cond_timedwait(&cond, &mutex, &end), ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
}
/* A value n > 1 is set again as n - 1: the destructors run in as many rounds as POSIX grants, after all others'. */
static void destroy_key(void *value) {
    long n = (long)value;
    lock_and_count();
    if (n > 1)
        OK(pthread_setspecific(keys[0], (void *)(n - 1)));
}
static void *set_keys(void *rounds) {
    OK(pthread_setspecific(keys[0], rounds));
    OK(pthread_setspecific(keys[1], (void *)1));
    OK(pthread_setspecific(keys[2], (void *)1));
    return NULL;
}
static void create_keys(void) {
    for (int i = 0; i < 3; i++)
        OK(pthread_key_create(&keys[i], destroy_key));
}
TEST(tsd_destructor__may_lock_and_wait, "20 threads, 3 keys: each destructor locks and waits, 60 in all") {
    pthread_t threads[20];
    create_keys();
    for (int i = 0; i < 20; i++)
        threads[i] = thread_start(set_keys, (void *)1);
    for (int i = 0; i < 20; i++)
        thread_join(threads[i]);
    CHECK_INT(plain, 60);
}
TEST(tsd_destructor__may_lock_in_the_last_round, "a key set again by its destructor: locks work in all 4 rounds") {
    create_keys();
    for (int i = 0; i < 10; i++)
        thread_join(thread_start(set_keys, (void *)(long)PTHREAD_DESTRUCTOR_ITERATIONS));
    CHECK_INT(plain, 10 * (PTHREAD_DESTRUCTOR_ITERATIONS + 2));
}
static void *set_one_key(void *unused) {
    (void)unused;
    OK(pthread_setspecific(keys[0], (void *)1));
    return NULL;
}
TEST(tsd_destructor__first_lock_of_the_thread, "a thread makes its first blocking wait in a destructor") {
    create_keys();
    for (int i = 0; i < 20; i++)
        thread_join(thread_start(set_one_key, NULL));
    CHECK_INT(plain, 20);
}
static void main_exits_with_keys(void *unused) {
    (void)unused;
    create_keys();
    set_keys((void *)1);
    CHECK_INT(atexit(use_at_exit), 0);
    pthread_exit(NULL);
}
TEST(tsd_destructor__of_the_main_thread, "main sets keys and calls pthread_exit: destructors and atexit handler lock") {
    check_exit(main_exits_with_keys, 1);
}

int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *module);
static char module_handle;
static void destroy_local(void *object) {
    CHECK(object == &plain);
    lock_and_count();
}
static void *with_thread_local(void *unused) {
    set_keys((void *)2);
    CHECK_INT(__cxa_thread_atexit_impl(destroy_local, &plain, &module_handle), 0);
    CHECK_INT(__cxa_thread_atexit_impl(destroy_local, &plain, &module_handle), 0);
    return unused;
}
TEST(tls_destructor__may_lock_and_wait,
     "20 threads: 2 thread_local destructors and 4 key destructors each lock and wait") {
    create_keys();
    for (int i = 0; i < 20; i++)
        thread_join(thread_start(with_thread_local, NULL));
    CHECK_INT(plain, 120);
}
static void *cancelled_with_thread_local(void *unused) {
    with_thread_local(unused);
    atomic_fetch_add(&waiting, 1);
    SYS(sem_wait(&sem));
    return NULL;
}
TEST(tls_destructor__of_a_cancelled_thread, "20 threads cancelled in sem_wait: all their destructors lock and wait") {
    create_keys();
    SYS(sem_init(&sem, 0, 0));
    for (int i = 0; i < 20; i++) {
        pthread_t t = thread_start(cancelled_with_thread_local, NULL);
        await(&waiting, i + 1);
        OK(pthread_cancel(t));
        thread_join_cancelled(t);
    }
    CHECK_INT(plain, 120);
}
static void exit_with_thread_local(void *unused) {
    with_thread_local(unused);
    exit_with_handlers(NULL);
}
TEST(tls_destructor__of_the_main_thread_at_exit, "main's thread_local destructors lock before the exit handlers do") {
    create_keys();
    check_exit(exit_with_thread_local, 2);
}

/* --- modules ------------------------------------------------------------------------------------------------------ */
static void module_path(char *path, size_t size) {
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    SYS(n);
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    CHECK(slash != NULL);
    snprintf(slash, size - (size_t)(slash - path), "/posix_module.so");
}
static void *load(module_run_function **run) {
    char path[PATH_MAX];
    module_path(path, sizeof path);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL)
        FAIL("dlopen: %s", dlerror());
    *(void **)run = dlsym(module, "module_run");
    CHECK(*run != NULL);
    return module;
}
TEST(dlopen__module_with_locks,
     "50 times a module is loaded, locks, lets 8 threads meet, and is unloaded with a lock held") {
    int unloads = 0;
    for (int i = 0; i < 50; i++) {
        module_run_function *run;
        void *module = load(&run);
        CHECK_INT(run(8, &unloads), 8);
        CHECK_INT(dlclose(module), 0);
        CHECK_INT(unloads, i + 1);
    }
}
static void *load_in_thread(void *unused) {
    module_run_function *run;
    int unloads = 0;
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    void *module = load(&run);
    OK(pthread_mutex_unlock(&mutex));
    CHECK_INT(dlclose(module), 0);
    CHECK_INT(unloads, 0);
    return NULL;
}
TEST(dlopen__by_threads_that_hold_locks,
     "4 threads load and unload the module under a mutex, 5 times, while others lock") {
    pthread_t busy = thread_start(lock_for_ever, NULL);
    for (int round = 0; round < 5; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            threads[i] = thread_start(load_in_thread, NULL);
        for (int i = 0; i < 4; i++)
            thread_join(threads[i]);
    }
    OK(pthread_cancel(busy));
    thread_join_cancelled(busy);
}
static void load_in_child(void *unused) {
    (void)unused;
    int unloads = 0;
    module_run_function *run;
    void *module = load(&run);
    CHECK_INT(run(4, &unloads), 4);
    CHECK_INT(dlclose(module), 0);
    CHECK_INT(unloads, 1);
}
TEST(dlopen__in_a_forked_child,
     "a child of a process with threads loads the module, lets 4 threads meet and unloads it") {
    pthread_t waiter = thread_start(wait_for_ever, NULL);
    await(&waiting, 1);
    run_in_child(load_in_child, NULL);
    OK(pthread_cancel(waiter));
    thread_join_cancelled(waiter);
}
TEST(dlsym__default_finds_one_implementation, "the timedwait that dlsym finds works on the program's own objects") {
    int (*timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    *(void **)&timedwait = dlsym(RTLD_DEFAULT, "pthread_cond_timedwait");
    CHECK(timedwait != NULL);
    OK(pthread_mutex_lock(&mutex));
    CHECK_RC(timedwait(&cond, &mutex, &time_epoch), ETIMEDOUT);
    OK(pthread_mutex_unlock(&mutex));
}
TEST(dlopen__constructor_waits_for_a_thread, "a constructor joins a thread that makes the first call of recvmsg") {
    module_run_function *run;
    int unloads = 0;
    CHECK_INT(setenv(MODULE_CALLS_OUTSIDE, "1", 1), 0);
    void *module = load(&run);
    CHECK_INT(run(2, &unloads), 2);
    CHECK_INT(dlclose(module), 0);
}
TEST(dlerror__stays,
     "the message of a failed dlopen stays whatever the program calls for the first time before dlerror") {
    struct iovec none = {NULL, 0};
    siginfo_t info;
    CHECK(dlopen("/nonexistent.so", RTLD_NOW) == NULL);
    CHECK_INT(readv(-1, &none, 1), -1);
    CHECK_INT(writev(-1, &none, 1), -1);
    CHECK_INT(sendto(-1, "", 0, 0, NULL, 0), -1);
    CHECK_INT(connect(-1, NULL, 0), -1);
    CHECK_INT(accept(-1, NULL, NULL), -1);
    CHECK_INT(waitid(P_PID, 0, &info, WEXITED), -1);
    CHECK_INT(thrd_sleep(&(struct timespec){0, 1}, NULL), 0);
    CHECK(dlerror() != NULL);
}

/* --- the highest signal --- */
static void *does_nothing(void *unused) {
    return unused;
}
TEST(sigrtmax__stays, "SIGRTMAX is the same before there are threads, and after all threads change their group") {
    int highest = SIGRTMAX;
    pthread_t t;
    OK(pthread_create(&t, NULL, does_nothing, NULL));
    OK(pthread_join(t, NULL));
    OK(setegid(getegid()));
    ck_assert_int_eq(SIGRTMAX, highest);
}
