/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that are killed while their threads wait, or record as fast as they can.
 *
 *   stuck HOW           two threads take two locks in both orders, one waits for a condition, one for a semaphore, and
 *                       the first thread joins; when all of them sleep the process is ended: kill, interrupt (of the
 *                       process group), abort, segv
 *   fast FILE USECONDS  four threads lock and unlock, and count that in FILE, until the process is killed
 *   wide FILE USECONDS  the same of many locks, each within another one: the tables of a profile grow, and fill up
 *   leave FILE USECONDS as fast; then a signal's handler in each of the threads calls _exit
 *   holds               a thread holds a lock 20 times for 2 ms, then it and the first thread take two
 *                       others, in both orders, and the process is killed
 *   cloned              a process that has locked 1000 times makes a child by _Fork, with a lock held, that gives the
 *                       lock back, locks 3000 times and is killed; then it locks 7 times and is killed
 *   children            a process that has locked 1000 times forks a child that locks 5000 times and is killed in a
 *                       deadlock, and is killed itself
 *   many N              N threads wait for a condition at once, and the process ends as it should
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_STUCK = 5, N_FAST = 4 };

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t never_posted;
static pthread_barrier_t both;
static int tids[N_STUCK]; /* 0: the thread has not come to its last call */

static void comes_to_its_end(int number) {
    __atomic_store_n(&tids[number], (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

static void *forwards(void *unused) {
    pthread_mutex_lock(&first);
    pthread_barrier_wait(&both);
    comes_to_its_end(1);
    pthread_mutex_lock(&second);
    return unused;
}

static void *backwards(void *unused) {
    pthread_mutex_lock(&second);
    pthread_barrier_wait(&both);
    comes_to_its_end(2);
    pthread_mutex_lock(&first);
    return unused;
}

static void *waits(void *unused) {
    pthread_mutex_lock(&guard);
    comes_to_its_end(3);
    for (;;)
        pthread_cond_wait(&never, &guard);
    return unused;
}

static void *asks(void *unused) {
    comes_to_its_end(4);
    sem_wait(&never_posted);
    return unused;
}

static int sleeps(int number) {
    char path[64], text[256] = "";
    int tid = __atomic_load_n(&tids[number], __ATOMIC_ACQUIRE);
    if (tid == 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    const char *end = n > 0 ? strrchr(text, ')') : NULL;
    return end != NULL && end[2] == 'S';
}

static void end_by(const char *how) {
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "interrupt") == 0)
        kill(0, SIGINT);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    pause();
}

/* A thread that sleeps, looked at ten times in a row, does so in its last call. */
static void *ends(void *how) {
    for (int n = 0; n < 10; n++) {
        usleep(10000);
        for (int i = 0; i < N_STUCK; i++)
            if (!sleeps(i))
                n = 0;
    }
    end_by(how);
    return NULL;
}

__attribute__((noinline)) static int stuck(char *how) {
    void *(*const routines[N_STUCK])(void *) = {ends, forwards, backwards, waits, asks};
    pthread_t threads[N_STUCK];
    pthread_barrier_init(&both, NULL, 2);
    sem_init(&never_posted, 0, 0);
    for (int i = 0; i < N_STUCK; i++)
        pthread_create(&threads[i], NULL, routines[i], how);
    comes_to_its_end(0);
    pthread_join(threads[1], NULL);
    return 1;
}

static uint64_t *counters(const char *file) {
    int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        exit(2);
    uint64_t *n = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return n != MAP_FAILED ? n : NULL;
}

/* Each thread has its own lock, so that none of them waits long. */
static void *locks_for_ever(void *counter) {
    uint64_t *n = counter;
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    for (;;) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
        __atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

enum { N_WIDE = 3000 };

/* Counted are the locks within. The same ones are taken more often than others, so that others lose their places. */
static void *locks_many_for_ever(void *counter) {
    uint64_t *n = counter;
    pthread_mutex_t around = PTHREAD_MUTEX_INITIALIZER, *locks = calloc(N_WIDE, sizeof *locks);
    for (uint32_t i = 1;; i = i * 1664525 + 1013904223) {
        pthread_mutex_t *within = &locks[(i >> 8) % ((i & 64) != 0 ? N_WIDE : 64)];
        pthread_mutex_lock(&around);
        pthread_mutex_lock(within);
        __atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(within);
        pthread_mutex_unlock(&around);
    }
    return NULL;
}

static void begin(const char *file, const char *useconds, void *(*routine)(void *), pthread_t *threads) {
    uint64_t *n = counters(file);
    for (int i = 0; i < N_FAST; i++)
        pthread_create(&threads[i], NULL, routine, &n[8 * i]);
    usleep((useconds_t)strtoul(useconds, NULL, 10));
}

static int fast(const char *file, const char *useconds, void *(*routine)(void *)) {
    pthread_t threads[N_FAST];
    begin(file, useconds, routine, threads);
    kill(getpid(), SIGKILL);
    return 1;
}

/* All of them are in the handler before one leaves. */
static void leaves(int unused) {
    static int n_leaving;
    (void)unused;
    __atomic_add_fetch(&n_leaving, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&n_leaving, __ATOMIC_SEQ_CST) < N_FAST)
        ;
    _exit(0);
}

static int leave(const char *file, const char *useconds) {
    pthread_t threads[N_FAST];
    signal(SIGUSR1, leaves);
    begin(file, useconds, locks_for_ever, threads);
    for (int i = 0; i < N_FAST; i++)
        pthread_kill(threads[i], SIGUSR1);
    pause();
    return 1;
}

static void lock(int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&first);
        pthread_mutex_unlock(&first);
    }
}

static void *holds_long(void *unused) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&second);
        usleep(2000);
        pthread_mutex_unlock(&second);
    }
    pthread_mutex_lock(&guard);
    pthread_mutex_lock(&first);
    pthread_mutex_unlock(&first);
    pthread_mutex_unlock(&guard);
    return unused;
}

static int holds(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, holds_long, NULL);
    pthread_join(thread, NULL);
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&guard);
    kill(getpid(), SIGKILL);
    return 1;
}

__attribute__((noinline)) static int cloned(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, holds_long, NULL); /* so that the file is there */
    pthread_join(thread, NULL);
    lock(1000);
    pthread_mutex_lock(&guard);
    pid_t pid = _Fork();
    if (pid == 0) {
        pthread_mutex_unlock(&guard);
        lock(3000);
        kill(getpid(), SIGKILL);
    }
    waitpid(pid, NULL, 0);
    pthread_mutex_unlock(&guard);
    lock(7);
    kill(getpid(), SIGKILL);
    return 1;
}

static void *ends_when_all_sleep(void *unused) {
    (void)unused;
    for (int n = 0; n < 10; n++) {
        usleep(10000);
        if (!sleeps(0))
            n = 0;
    }
    kill(getpid(), SIGKILL);
    return NULL;
}

__attribute__((noinline)) static int children(void) {
    pthread_t thread;
    lock(1000);
    pid_t pid = fork();
    if (pid == 0) {
        lock(5000);
        pthread_create(&thread, NULL, ends_when_all_sleep, NULL);
        pthread_mutex_lock(&second);
        comes_to_its_end(0);
        pthread_mutex_lock(&second);
    }
    waitpid(pid, NULL, 0);
    lock(7);
    kill(getpid(), SIGKILL);
    return 1;
}

static int n_come, go;
static pthread_cond_t all_come = PTHREAD_COND_INITIALIZER;

static void *comes(void *unused) {
    pthread_mutex_lock(&guard);
    n_come++;
    pthread_cond_signal(&all_come);
    while (!go)
        pthread_cond_wait(&never, &guard);
    pthread_mutex_unlock(&guard);
    return unused;
}

static int many(int n) {
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, comes, NULL);
    pthread_mutex_lock(&guard);
    while (n_come < n)
        pthread_cond_wait(&all_come, &guard);
    go = 1;
    pthread_cond_broadcast(&never);
    pthread_mutex_unlock(&guard);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    puts("done");
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "stuck") == 0)
        return stuck(argv[2]);
    if (argc > 3 && strcmp(argv[1], "fast") == 0)
        return fast(argv[2], argv[3], locks_for_ever);
    if (argc > 3 && strcmp(argv[1], "wide") == 0)
        return fast(argv[2], argv[3], locks_many_for_ever);
    if (argc > 3 && strcmp(argv[1], "leave") == 0)
        return leave(argv[2], argv[3]);
    if (argc > 1 && strcmp(argv[1], "holds") == 0)
        return holds();
    if (argc > 1 && strcmp(argv[1], "cloned") == 0)
        return cloned();
    if (argc > 1 && strcmp(argv[1], "children") == 0)
        return children();
    if (argc > 2 && strcmp(argv[1], "many") == 0)
        return many(atoi(argv[2]));
    return 2;
}
