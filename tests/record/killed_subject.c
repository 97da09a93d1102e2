/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that are killed while their threads wait, or record as fast as they can.
 *
 *   stuck HOW           two threads take two locks in both orders, one waits for a condition, one for a semaphore, and
 *                       the first thread joins; when all of them sleep the process is ended: kill, interrupt (of the
 *                       process group), abort, segv
 *   fast FILE USECONDS  four threads lock and unlock, and count that in FILE, until the process is killed
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

static int fast(const char *file, const char *useconds) {
    pthread_t thread;
    uint64_t *n = counters(file);
    for (int i = 0; i < N_FAST; i++)
        pthread_create(&thread, NULL, locks_for_ever, &n[8 * i]);
    usleep((useconds_t)strtoul(useconds, NULL, 10));
    kill(getpid(), SIGKILL);
    return 1;
}

static void lock(int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&first);
        pthread_mutex_unlock(&first);
    }
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
        return fast(argv[2], argv[3]);
    if (argc > 1 && strcmp(argv[1], "children") == 0)
        return children();
    if (argc > 2 && strcmp(argv[1], "many") == 0)
        return many(atoi(argv[2]));
    return 2;
}
