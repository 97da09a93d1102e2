/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operations inside of creations: the allocator has a lock, or sleeps, and a handler forks meanwhile. */
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "ordered.h"

/* As an allocator of the program's own: jemalloc locks too. */
static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;
static bool allocator_locks, free_locks, calloc_sleeps;
static _Thread_local int allocations;

extern void *__libc_calloc(size_t n, size_t bytes);
extern void __libc_free(void *memory);

void *calloc(size_t n, size_t bytes) {
    const struct timespec second = {.tv_sec = 1};
    if (calloc_sleeps)
        syscall(SYS_nanosleep, &second, NULL);
    if (!allocator_locks)
        return __libc_calloc(n, bytes);
    pthread_mutex_lock(&allocator);
    allocations++;
    compute((uint64_t)allocations);
    void *memory = __libc_calloc(n, bytes);
    pthread_mutex_unlock(&allocator);
    return memory;
}

void free(void *memory) {
    if (free_locks)
        pthread_mutex_lock(&allocator);
    __libc_free(memory);
    if (free_locks)
        pthread_mutex_unlock(&allocator);
}

static void *allocate(void *argument) {
    for (int i = 0; i < ROUNDS / 10; i++) {
        void *volatile memory = calloc(1, (size_t)(uintptr_t)argument); /* volatile: else the compiler leaves it out */
        free(memory);
        locked_add((uintptr_t)argument);
    }
    return NULL;
}

/* The C library allocates in the main thread's creations, beside the others' allocations. */
int with_allocator(void) {
    pthread_t thread[3 * THREADS];
    allocator_locks = true;
    for (uintptr_t i = 0; i < 3 * THREADS; i++)
        if (pthread_create(&thread[i], NULL, allocate, (void *)(i + 1)) != 0)
            return 1;
    for (int i = 0; i < 3 * THREADS; i++)
        pthread_join(thread[i], NULL);
    allocator_locks = false;
    printf("%d %016llx\n", allocations > 0, (unsigned long long)sums[MUTEX]);
    return 0;
}

/* Stacks that the C library does not keep: a thread that has ended frees what belongs to them, under a lock of the C
 * library's that creations take. */
int with_large_stacks(void) {
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, (size_t)48 << 20);
    free_locks = true;
    for (int i = 0; i < ROUNDS; i++) {
        if (pthread_create(&thread, &attr, post, NULL) != 0)
            return 1;
        sem_wait(&sem);
    }
    free_locks = false;
    pthread_attr_destroy(&attr);
    puts("done");
    return 0;
}

static pid_t forked = -1;

static void fork_now(int number) {
    (void)number;
    forked = fork();
}

static void *compute_with_turn(void *argument) {
    struct timespec now, end;
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    locked_add(1); /* when the creator has been expelled */
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 2;
    do { /* serially, many readings of a clock would pass the turn */
        for (volatile int i = 0; i < 10000000; i++)
            ;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    locked_add(1);
    return argument;
}

/* In the child the mutex may be held for ever. */
static int create_some(void) {
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, post, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return 3;
}

/* A creator sleeps in its allocator, is expelled, and waits for the turn. Meanwhile a handler forks. */
int forked_in_creation(void) {
    const struct itimerval soon = {.it_value = {.tv_sec = 1, .tv_usec = 500000}};
    struct sigaction action = {.sa_handler = fork_now};
    pthread_t computing, created;
    int status = -1;
    sigaction(SIGALRM, &action, NULL);
    pthread_create(&computing, NULL, compute_with_turn, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    calloc_sleeps = true;
    pthread_create(&created, NULL, counter, (void *)1);
    calloc_sleeps = false;
    if (forked == 0)
        _exit(create_some());
    pthread_join(computing, NULL);
    pthread_join(created, NULL);
    bool has_child = forked > 0 && waitpid(forked, &status, 0) == forked;
    printf("%d %d\n", has_child, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
