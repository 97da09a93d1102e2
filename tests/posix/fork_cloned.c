/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The owner of a lock in a process that was made by a system call, past the C library. glibc keeps a copy of each
 * thread's id, writes it as the owner into mutexes and read-write locks, and renews it in a child of fork and _Fork
 * only. After a raw clone the child goes on under its parent's id, until the program itself writes the right one into
 * glibc's copy. Sandboxes read the owner back to find out which of the two is the case (Chromium's
 * namespace_sandbox.cc).
 */
#include "topic.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

static pid_t kernel_tid(void) {
    return (pid_t)syscall(SYS_gettid);
}

/* The owner that a mutex names while the caller holds it. */
static pid_t owner_of(pthread_mutex_t *m) {
    OK(pthread_mutex_lock(m));
    pid_t owner = m->__data.__owner;
    OK(pthread_mutex_unlock(m));
    return owner;
}

static void run_cloned(void (*routine)(pid_t parent)) {
    pid_t parent = kernel_tid();
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        routine(parent);
        syscall(SYS_exit_group, 0);
    }
    CHECK(child > 0);
    child_join((pid_t)child);
}

static void keeps_id(pid_t parent) {
    CHECK(kernel_tid() != parent);
    CHECK_INT(owner_of(&checking), parent);
    CHECK_INT(owner_of(&recursive), parent);
}
TEST(cloned__child_owns_by_the_id_it_inherited, "error-checking and recursive mutex: the owner is the parent's id") {
    CHECK_INT(owner_of(&checking), kernel_tid());
    run_cloned(keeps_id);
    CHECK_INT(owner_of(&checking), kernel_tid());
}

static void unlocks(pid_t parent) {
    (void)parent;
    CHECK_RC(pthread_mutex_lock(&checking), EDEADLK);
    OK(pthread_mutex_unlock(&checking));
    CHECK_RC(pthread_mutex_unlock(&checking), EPERM);
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_unlock(&recursive));
    OK(pthread_mutex_unlock(&recursive));
    CHECK_RC(pthread_mutex_unlock(&recursive), EPERM);
}
TEST(cloned__child_owns_what_its_parent_held, "held mutexes: the child is their owner, relocks and unlocks them") {
    OK(pthread_mutex_lock(&checking));
    OK(pthread_mutex_lock(&recursive));
    run_cloned(unlocks);
    OK(pthread_mutex_unlock(&checking));
    OK(pthread_mutex_unlock(&recursive));
}

static void relocks(pid_t parent) {
    (void)parent;
    CHECK_RC(pthread_rwlock_rdlock(&rw), EDEADLK);
    CHECK_RC(pthread_rwlock_wrlock(&rw), EDEADLK);
    OK(pthread_rwlock_unlock(&rw));
    OK(pthread_rwlock_wrlock(&rw));
    CHECK_RC(pthread_rwlock_wrlock(&rw), EDEADLK);
    OK(pthread_rwlock_unlock(&rw));
}
TEST(cloned__child_is_the_writer_that_its_parent_was,
     "a lock held for writing: the child is told EDEADLK, and unlocks") {
    OK(pthread_rwlock_wrlock(&rw));
    run_cloned(relocks);
    OK(pthread_rwlock_unlock(&rw));
}

static void *is_itself(void *unused) {
    (void)unused;
    CHECK_RC(pthread_mutex_trylock(&checking), EBUSY);
    CHECK_RC(pthread_mutex_unlock(&checking), EPERM);
    CHECK_INT(owner_of(&recursive), kernel_tid());
    return NULL;
}
static void starts_a_thread(pid_t parent) {
    OK(pthread_mutex_lock(&checking));
    thread_join(thread_start(is_itself, NULL));
    CHECK_INT(checking.__data.__owner, parent);
    OK(pthread_mutex_unlock(&checking));
}
TEST(cloned__threads_of_the_child_have_their_own_ids,
     "a thread of the child is a stranger to what its first one holds") {
    run_cloned(starts_a_thread);
}

static void forks(pid_t parent) {
    (void)parent;
    pid_t child = fork();
    if (child == 0) {
        CHECK_INT(owner_of(&checking), kernel_tid());
        _exit(0);
    }
    child_join(child);
    child = _Fork();
    if (child == 0) {
        CHECK_INT(owner_of(&checking), kernel_tid());
        _exit(0);
    }
    child_join(child);
}
TEST(cloned__forks_of_the_child_have_their_own_ids, "fork and _Fork in the child: their children own by their ids") {
    run_cloned(forks);
}
TEST(fork__children_own_by_their_own_ids, "fork and _Fork in a process that was not cloned") {
    forks(0);
}

static void clones_again(pid_t parent) {
    CHECK_INT(owner_of(&checking), parent);
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        CHECK_INT(owner_of(&checking), parent);
        syscall(SYS_exit_group, 0);
    }
    child_join((pid_t)child);
}
static void *clone_here(void *unused) {
    (void)unused;
    run_cloned(clones_again);
    CHECK_INT(owner_of(&checking), kernel_tid());
    return NULL;
}
TEST(cloned__by_another_thread_than_main, "a thread clones, its child clones again: both own by the thread's id") {
    thread_join(thread_start(clone_here, NULL));
}

static void fork_in_handler(int signo) {
    (void)signo;
    pid_t child = fork();
    if (child == 0) {
        CHECK_INT(owner_of(&checking), kernel_tid());
        _exit(0);
    }
    child_join(child);
}
TEST(fork__in_a_handler_makes_an_owner_of_its_own, "a handler forks: the child owns by its id, the parent by its own") {
    struct sigaction action = {.sa_handler = fork_in_handler};
    CHECK_INT(owner_of(&checking), kernel_tid());
    SYS(sigaction(SIGUSR1, &action, NULL));
    raise(SIGUSR1);
    CHECK_INT(owner_of(&checking), kernel_tid());
}

/* ---- threads of the child ---- */
enum { N_MEET = 4, N_ROUNDS = 20, N_CHILDREN = 20 };

static pthread_barrier_t barrier;
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int n_met;

static void *meet(void *unused) {
    for (int i = 0; i < N_ROUNDS; i++)
        pthread_barrier_wait(&barrier);
    OK(pthread_mutex_lock(&plain));
    n_met++;
    OK(pthread_cond_broadcast(&cond));
    while (n_met < N_MEET)
        OK(pthread_cond_wait(&cond, &plain));
    OK(pthread_mutex_unlock(&plain));
    return unused;
}
static void threads_meet(pid_t parent) {
    pthread_t threads[N_MEET];
    (void)parent;
    OK(pthread_barrier_init(&barrier, NULL, N_MEET));
    for (int i = 0; i < N_MEET; i++)
        threads[i] = thread_start(meet, NULL);
    for (int i = 0; i < N_MEET; i++)
        thread_join(threads[i]);
    CHECK_INT(n_met, N_MEET);
}
TEST(cloned__child_may_have_threads, "20 children: the first thing that each does is to create 4 threads, which meet") {
    for (int i = 0; i < N_CHILDREN; i++)
        run_cloned(threads_meet);
}
TEST(fork__child_of__Fork_may_have_threads, "the same by _Fork") {
    for (int i = 0; i < N_CHILDREN; i++) {
        pid_t child = _Fork();
        if (child == 0) {
            threads_meet(0);
            _exit(0);
        }
        child_join(child);
    }
}

/* Where glibc keeps its copy: the only word of a thread's record that is its id. */
static pid_t *their_copy(pid_t id) {
    pid_t *record = (pid_t *)pthread_self(), *found = NULL;
    for (size_t i = 0; i < 1024 / sizeof *record; i++) {
        if (record[i] != id)
            continue;
        CHECK(found == NULL);
        found = record + i;
    }
    return found;
}
static void renews(pid_t parent) {
    CHECK_INT(owner_of(&checking), parent);
    pid_t *copy = their_copy(parent);
    CHECK(copy != NULL);
    *copy = kernel_tid();
    CHECK_INT(owner_of(&checking), kernel_tid());
}
TEST(cloned__child_may_renew_the_id, "the child writes its id into glibc's copy: it is the owner's from then on") {
    run_cloned(renews);
}
