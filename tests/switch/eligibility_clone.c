/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Children and threads that a program makes by fork, vfork, clone and its system call while it is switched. */
#include "eligibility_dynamic.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>

/* ---- children, without the handlers of fork ---- */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The child shares the memory and does what its thread goes home for. */
static __attribute__((noinline)) pid_t vforked(void) {
    pid_t child = vfork();
    if (child == 0) {
        if (syscall(SYS_setsid) > 0 && nice(0) != -1 && setegid(getegid()) == 0)
            execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL); /* which the parent must not become */
        _exit(1);
    }
    return child;
}

static void *have_children(void *number) {
    pid_t child;
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        if (i % 50 == (int)(long)number + 25) /* where it came from the barrier: on a carrier */
            child_join_with(vforked(), 3);
        if (i % 50 != (int)(long)number)
            continue;
        OK(pthread_mutex_lock(&mutex));
        if ((child = _Fork()) == 0) {
            bool good = pthread_mutex_unlock(&mutex) == 0 && pthread_mutex_lock(&mutex) == 0;
            _exit(good ? 0 : 1);
        }
        OK(pthread_mutex_unlock(&mutex));
        child_join(child);
    }
    return number;
}

void children(void) {
    run(N, have_children);
}

/* ---- children and threads by clone, and by its system call ---- */
#define STACK_BYTES ((size_t)64 << 10)

static void *meet_often(void *unused) {
    for (int i = 0; i < ROUNDS / 4; i++)
        meet();
    return unused;
}

/* A process of its own: it locks what its parent held, and meets threads of its own. */
static int be_a_process(void *parent) {
    CHECK(getppid() == (pid_t)(long)parent);
    OK(pthread_mutex_unlock(&mutex));
    OK(pthread_barrier_init(&barrier, NULL, 4));
    for (int i = 0; i < 3; i++)
        OK(pthread_create(&threads[i], NULL, meet_often, NULL));
    meet_often(NULL);
    for (int i = 0; i < 3; i++)
        OK(pthread_join(threads[i], NULL));
    OK(pthread_mutex_lock(&mutex));
    return 5;
}

static int execute(void *path) {
    execl(path, "sh", "-c", "exit 3", (char *)NULL);
    return 1;
}

static void clone_processes(void) {
    char *stack = malloc(STACK_BYTES);
    CHECK(stack != NULL);
    CHECK(clone(NULL, stack + STACK_BYTES, SIGCHLD, NULL) == -1 && errno == EINVAL);
    for (int i = 0; i < 10; i++) {
        OK(pthread_mutex_lock(&mutex));
        child_join_with(clone(be_a_process, stack + STACK_BYTES, SIGCHLD, (void *)(long)getpid()), 5);
        pid_t tid = 0;
        pid_t child = clone(be_a_process, stack + STACK_BYTES, SIGCHLD | CLONE_PARENT_SETTID, (void *)(long)getpid(),
                            &tid, NULL, NULL);
        CHECK(tid == child);
        child_join_with(child, 5);
        OK(pthread_mutex_unlock(&mutex));
    }
    free(stack);
}

void clones_processes(void) {
    all_meet(clone_processes, false);
}

static void clone_by_number(void) {
    OK(pthread_mutex_lock(&mutex));
    long parent = getpid(), child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(be_a_process((void *)parent));
    child_join_with((pid_t)child, 5);
    uint64_t arguments[8] = {[4] = SIGCHLD};
    child = syscall(SYS_clone3, arguments, sizeof arguments);
    if (child == 0)
        _exit(be_a_process((void *)parent));
    child_join_with((pid_t)child, 5);
    OK(pthread_mutex_unlock(&mutex));
    CHECK(syscall(SYS_clone3, NULL, sizeof arguments) == -1 && errno == EFAULT);
}

void clones_by_number(void) {
    all_meet(clone_by_number, false);
}

/* In the same memory, while its creator stands still. */
static void clone_as_vfork(void) {
    char *stack = malloc(STACK_BYTES);
    CHECK(stack != NULL);
    for (int i = 0; i < 2; i++) {
        int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
        child_join_with(clone(execute, stack + STACK_BYTES, flags, (void *)(uintptr_t) "/bin/sh"), 3);
        meet();
    }
    free(stack);
}

static void *meet_or_vfork(void *number) {
    long first = proc_kernel_thread();
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        moved = moved || proc_kernel_thread() != first;
    }
    if ((long)number == 0)
        clone_as_vfork();
    else
        for (int i = 0; i < 2; i++)
            meet();
    for (int i = 0; i < 4 * ROUNDS; i++) {
        meet();
        CHECK((long)number != 0 || getenv("SWITCHED") == NULL || proc_kernel_thread() == first);
    }
    atomic_fetch_add(&n_moved, moved);
    return number;
}

void clones_as_vfork(void) {
    run(N, meet_or_vfork);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 1);
}

/*
 * In the same memory and with the same thread-local storage, beside its creator: both wait, and each is woken for
 * itself.
 */
static sem_t for_child;
static atomic_int child_stage;

static int wait_beside(void *unused) {
    (void)unused;
    child_stage = 1;
    while (sem_wait(&for_child) != 0)
        ;
    child_stage = 2;
    return 7;
}

static void *meet_or_clone(void *number) {
    static char *stack;
    long first = proc_kernel_thread();
    pid_t child = 0;
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 0) {
        stack = malloc(STACK_BYTES);
        CHECK(stack != NULL);
        child = clone(wait_beside, stack + STACK_BYTES, CLONE_VM | SIGCHLD, NULL);
        CHECK(child > 0);
        meet();
    } else {
        if ((long)number == 1) {
            while (child_stage != 1)
                sched_yield();
            sleep_ms(20); /* the child sleeps, and so does its creator, at the barrier */
            OK_ERRNO(sem_post(&for_child));
            while (child_stage != 2)
                sched_yield();
        }
        meet();
    }
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        CHECK((long)number != 0 || proc_kernel_thread() == first);
    }
    if ((long)number == 0) {
        child_join_with(child, 7);
        free(stack);
    }
    return number;
}

void clones_beside(void) {
    OK_ERRNO(sem_init(&for_child, 0, 0));
    run(N, meet_or_clone);
}

/* A thread that the C library does not know. */
static int be_a_thread(void *done) {
    atomic_store((atomic_int *)done, 1);
    return 0; /* to clone, which ends the thread */
}

static void clone_a_thread(void) {
    static atomic_int done;
    static pid_t left = 1; /* the kernel clears it when the thread has ended, and wakes by the same word */
    char *stack = malloc(STACK_BYTES);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    CHECK(stack != NULL);
    CHECK(clone(be_a_thread, stack + STACK_BYTES, flags, &done, NULL, NULL, &left) > 0);
    while (__atomic_load_n(&left, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
    CHECK(done == 1);
    free(stack);
}

void ends_for_a_thread_of_clone(void) {
    all_meet(clone_a_thread, true);
}
