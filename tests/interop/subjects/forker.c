/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Forks from a thread while others hold locks, allocate and print. What the child may do with glibc it must be able
 * to do here: malloc, stdio, locks that its own thread holds or that were free, new threads of its own (barrier,
 * condition, semaphore). A lock that another thread held stays held in the child: trylock says EBUSY. Threads that
 * waited in the parent's queues do not exist in the child, so its unlocks and broadcasts must not find them.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_BUSY = 3, N_FORKS = 60, N_CHILD_THREADS = 3 };

static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;     /* held by the forking thread */
static pthread_mutex_t waited_lock = PTHREAD_MUTEX_INITIALIZER;  /* held by it too, others wait for it */
static pthread_mutex_t foreign_lock = PTHREAD_MUTEX_INITIALIZER; /* held by another thread all the time */
static pthread_mutex_t cond_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER; /* others wait on it */
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER; /* taken by the fork handlers */
static pthread_barrier_t barrier;
static sem_t foreign_taken, semaphore;
static int stop, waiting, released;
static long n_busy;
static FILE *sink;
static int n_prepare, n_parent, n_child;

static void prepare(void) {
    pthread_mutex_lock(&fork_lock);
    n_prepare++;
}
static void in_parent(void) {
    n_parent++;
    pthread_mutex_unlock(&fork_lock);
}
static void in_child(void) {
    n_child++;
    pthread_mutex_unlock(&fork_lock);
}

static void *be_busy(void *arg) {
    for (int done = 0; !done;) {
        char *block = malloc(100 + (size_t)(n_busy % 4000));
        pthread_mutex_lock(&busy_lock);
        n_busy++;
        done = stop;
        pthread_mutex_unlock(&busy_lock);
        pthread_rwlock_rdlock(&rwlock);
        fprintf(sink, "%p\n", (void *)block);
        pthread_rwlock_unlock(&rwlock);
        pthread_mutex_lock(&fork_lock);
        pthread_mutex_unlock(&fork_lock);
        free(block);
    }
    return arg;
}

static void *hold(void *arg) {
    pthread_mutex_lock(&foreign_lock);
    sem_post(&foreign_taken);
    pthread_mutex_lock(&waited_lock);
    pthread_mutex_unlock(&waited_lock);
    pthread_mutex_unlock(&foreign_lock);
    return arg;
}

static void *wait_on_cond(void *arg) {
    pthread_mutex_lock(&cond_lock);
    waiting++;
    while (!released)
        pthread_cond_wait(&cond, &cond_lock);
    waiting--;
    pthread_mutex_unlock(&cond_lock);
    return arg;
}

static void *child_thread(void *arg) {
    long *sum = arg;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&own_lock);
        ++*sum;
        pthread_mutex_unlock(&own_lock);
    }
    pthread_mutex_lock(&waited_lock);
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&waited_lock);
    sem_post(&semaphore);
    return NULL;
}

/* The exit status says which expectation failed; 0: none. */
static int child(int round) {
    char *block = malloc(5000);
    if (block == NULL)
        return 1;
    memset(block, round, 5000);
    free(block);
    FILE *null = fopen("/dev/null", "w");
    if (null == NULL || fprintf(null, "child %d\n", round) < 0 || fclose(null) != 0)
        return 2;
    if (pthread_mutex_trylock(&foreign_lock) != EBUSY)
        return 3;
    if (pthread_mutex_trylock(&own_lock) != EBUSY || pthread_mutex_unlock(&own_lock) != 0)
        return 4;
    if (pthread_mutex_unlock(&waited_lock) != 0 || pthread_mutex_trylock(&waited_lock) != 0 ||
        pthread_mutex_unlock(&waited_lock) != 0)
        return 5;
    if (pthread_cond_signal(&cond) != 0 || pthread_cond_broadcast(&cond) != 0)
        return 6;
    if (pthread_mutex_trylock(&fork_lock) != 0 || pthread_mutex_unlock(&fork_lock) != 0)
        return 7;
    if (n_child != 1 || n_prepare != round + 1)
        return 8;
    pthread_t thread[N_CHILD_THREADS];
    long sum = 0;
    for (int i = 0; i < N_CHILD_THREADS; i++)
        if (pthread_create(&thread[i], NULL, child_thread, &sum) != 0)
            return 9;
    for (int i = 0; i < N_CHILD_THREADS; i++)
        sem_wait(&semaphore);
    for (int i = 0; i < N_CHILD_THREADS; i++)
        if (pthread_join(thread[i], NULL) != 0)
            return 10;
    return sum == 200 * N_CHILD_THREADS ? 0 : 11;
}

int main(void) {
    pthread_barrier_init(&barrier, NULL, N_CHILD_THREADS);
    sem_init(&foreign_taken, 0, 0);
    sem_init(&semaphore, 0, 0);
    sink = fopen("/dev/null", "w");
    if (sink == NULL || pthread_atfork(prepare, in_parent, in_child) != 0)
        return 1;
    pthread_mutex_lock(&own_lock);
    pthread_mutex_lock(&waited_lock);

    pthread_t busy[N_BUSY], holder, waiter[2];
    int failed = pthread_create(&holder, NULL, hold, NULL);
    for (int i = 0; i < 2; i++)
        failed |= pthread_create(&waiter[i], NULL, wait_on_cond, NULL);
    for (int i = 0; i < N_BUSY; i++)
        failed |= pthread_create(&busy[i], NULL, be_busy, NULL);
    if (failed)
        return 1;
    sem_wait(&foreign_taken);
    for (int n = 0; n < 2;) {
        pthread_mutex_lock(&cond_lock);
        n = waiting;
        pthread_mutex_unlock(&cond_lock);
        usleep(1000);
    }

    int n_wrong = 0;
    for (int round = 0; round < N_FORKS; round++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(round));
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            status = -1;
        if (status != 0) {
            printf("fork %d: child ended with exit %d, signal %d\n", round, WEXITSTATUS(status), WTERMSIG(status));
            n_wrong++;
        }
    }
    pthread_mutex_unlock(&waited_lock);
    pthread_mutex_unlock(&own_lock);
    pthread_mutex_lock(&busy_lock);
    stop = 1;
    pthread_mutex_unlock(&busy_lock);
    pthread_mutex_lock(&cond_lock);
    released = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&cond_lock);
    pthread_join(holder, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(waiter[i], NULL);
    for (int i = 0; i < N_BUSY; i++)
        pthread_join(busy[i], NULL);
    printf("%d forks, %d wrong, handlers %d %d %d, waiters left %d\n", N_FORKS, n_wrong, n_prepare, n_parent, n_child,
           waiting);
    return n_wrong != 0;
}
