/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Out of memory (argument "memory": RLIMIT_AS a little above what is in use) and out of threads ("threads":
 * RLIMIT_NPROC for a user of its own). pthread_create and thrd_create then return an error, never hang or crash, and
 * what the program has goes on working: the threads that exist contend for locks, wait on conditions and pass a
 * barrier while no memory can be had, and later the limit is lifted and threads can be made again.
 */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <threads.h>
#include <unistd.h>

#include "lib/proc.h"
#include "lib/report.h"

enum { MAX_THREADS = 200, N_ROUNDS = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER, turned = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int open_gate;
static long counter, turn, n_threads;

static void *work(void *arg) {
    long me = (long)arg;
    pthread_mutex_lock(&gate_lock);
    while (!open_gate)
        pthread_cond_wait(&gate, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
    for (int i = 0; i < N_ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        sem_wait(&semaphore);
        sem_post(&semaphore);
        if (i % 50 == 0) {
            pthread_mutex_lock(&lock);
            while (turn % n_threads != me)
                pthread_cond_wait(&turned, &lock);
            turn++;
            pthread_cond_broadcast(&turned);
            pthread_mutex_unlock(&lock);
            pthread_barrier_wait(&barrier);
        }
    }
    return arg;
}

static int c11_work(void *arg) {
    (void)arg;
    return 0;
}

/* What is in use now and so much more. */
static int limit_memory(size_t more) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = (size_t)proc_kib("VmSize:") * 1024 + more;
    return setrlimit(RLIMIT_AS, &limit);
}

/* Root is not limited, so become a user of its own; another may have no further thread at all. */
static int limit_threads(void) {
    struct rlimit limit = {12, 1000};
    if (geteuid() == 0) {
        uid_t uid = 100000000u + (uid_t)getpid();
        if (setgroups(0, NULL) != 0 || setgid(uid) != 0 || setuid(uid) != 0)
            return -1;
    } else
        limit.rlim_cur = 0;
    return setrlimit(RLIMIT_NPROC, &limit);
}

int main(int argc, char **argv) {
    static pthread_t thread[MAX_THREADS];
    int memory = argc == 2 && strcmp(argv[1], "memory") == 0;
    if (!memory && !(argc == 2 && strcmp(argv[1], "threads") == 0))
        return 2;
    int may_have_some = geteuid() == 0; /* see limit_threads */
    sem_init(&semaphore, 0, 2);
    report((memory ? limit_memory(72u << 20) : limit_threads()) == 0, "limit set");

    int error = 0, again = 0;
    while (n_threads < MAX_THREADS && (error = pthread_create(&thread[n_threads], NULL, work, (void *)n_threads)) == 0)
        n_threads++;
    report(error == EAGAIN, "pthread_create at the limit returns EAGAIN");
    for (int i = 0; i < 50; i++) {
        pthread_t one;
        again += pthread_create(&one, NULL, work, NULL) == EAGAIN;
    }
    report(again == 50, "fifty times over");
    thrd_t c11;
    int result = thrd_create(&c11, c11_work, NULL);
    report(result == thrd_nomem || result == thrd_error, "thrd_create returns an error");
    void *blocks = NULL;
    if (memory) {
        for (void **block; (block = malloc(4000)) != NULL;) {
            *block = blocks;
            blocks = block;
        }
        report(errno == ENOMEM, "malloc is at its end too");
    }
    report(n_threads >= (memory ? 4 : may_have_some ? 8 : 0), "threads there are enough to contend");

    if (n_threads > 0)
        report(pthread_barrier_init(&barrier, NULL, (unsigned)n_threads) == 0, "barrier for all of them");
    else
        printf("barrier for all of them: yes\n");
    pthread_mutex_lock(&gate_lock);
    open_gate = 1;
    pthread_cond_broadcast(&gate);
    pthread_mutex_unlock(&gate_lock);
    for (long i = 0; i < n_threads; i++)
        error |= pthread_join(thread[i], NULL) != 0 ? 1 << 20 : 0;
    report(error == EAGAIN && counter == n_threads * N_ROUNDS && turn == n_threads * (N_ROUNDS / 50),
           "they locked, waited and met as told");
    while (blocks != NULL) {
        void *next = *(void **)blocks;
        free(blocks);
        blocks = next;
    }
    struct rlimit limit;
    getrlimit(memory ? RLIMIT_AS : RLIMIT_NPROC, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(memory ? RLIMIT_AS : RLIMIT_NPROC, &limit);
    pthread_t one;
    long end = 0;
    void *value = &end;
    n_threads = 1;
    pthread_barrier_destroy(&barrier);
    pthread_barrier_init(&barrier, NULL, 1);
    report(pthread_create(&one, NULL, work, NULL) == 0 && pthread_join(one, &value) == 0 && value == NULL,
           "with the limit lifted a thread can be made and works");
    return report_end();
}
