/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Process-shared objects between a process that is served by the library and one that is not: this program starts
 * itself with `LIST` (argument 1, "none" for nothing) as LD_PRELOAD, and the two take turns with every kind of object.
 * Both must agree on each object's format. The second process dies holding a robust mutex: the first must be told.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/processes.h"

enum { N_ROUNDS = 1000, BARRIER_EVERY = 10 };

struct shared {
    pthread_mutex_t mutex, robust, inheriting;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    sem_t to_first, to_second;
    pthread_spinlock_t spin;
    int turn;
    long n_mutex, n_inheriting, n_rwlock, n_spin;
};

static void work(struct shared *s, int me) {
    for (int i = 0; i < N_ROUNDS; i++) {
        OK(pthread_mutex_lock(&s->mutex));
        while (s->turn != me)
            OK(pthread_cond_wait(&s->cond, &s->mutex));
        s->n_mutex++;
        s->turn = !me;
        OK(pthread_cond_broadcast(&s->cond));
        OK(pthread_mutex_unlock(&s->mutex));

        OK(pthread_mutex_lock(&s->inheriting));
        s->n_inheriting++;
        OK(pthread_mutex_unlock(&s->inheriting));

        OK(pthread_rwlock_wrlock(&s->rwlock));
        s->n_rwlock++;
        OK(pthread_rwlock_unlock(&s->rwlock));
        OK(pthread_rwlock_rdlock(&s->rwlock));
        OK(pthread_rwlock_unlock(&s->rwlock));

        OK(pthread_spin_lock(&s->spin));
        s->n_spin++;
        OK(pthread_spin_unlock(&s->spin));

        OK_ERRNO(sem_post(me ? &s->to_first : &s->to_second));
        OK_ERRNO(sem_wait(me ? &s->to_second : &s->to_first));
        if (i % BARRIER_EVERY == 0)
            pthread_barrier_wait(&s->barrier);
    }
}

static void make(struct shared *s) {
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;
    pthread_rwlockattr_t rwlock;
    pthread_barrierattr_t barrier;
    pthread_mutexattr_init(&mutex);
    pthread_condattr_init(&cond);
    pthread_rwlockattr_init(&rwlock);
    pthread_barrierattr_init(&barrier);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);

    OK(pthread_mutex_init(&s->mutex, &mutex));
    pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);
    OK(pthread_mutex_init(&s->inheriting, &mutex));
    pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_NONE);
    pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
    OK(pthread_mutex_init(&s->robust, &mutex));
    OK(pthread_cond_init(&s->cond, &cond));
    OK(pthread_rwlock_init(&s->rwlock, &rwlock));
    OK(pthread_barrier_init(&s->barrier, &barrier, 2));
    OK_ERRNO(sem_init(&s->to_first, 1, 0));
    OK_ERRNO(sem_init(&s->to_second, 1, 0));
    OK(pthread_spin_init(&s->spin, PTHREAD_PROCESS_SHARED));
}

static struct shared *map(int fd) {
    void *s = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(s != MAP_FAILED);
    return s;
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    if (argc > 2) {
        struct shared *s = map(atoi(argv[2]));
        work(s, 1);
        OK(pthread_mutex_lock(&s->robust));
        _exit(0);
    }
    int fd = memfd_create("shared", 0);
    SYS(fd);
    OK_ERRNO(ftruncate(fd, sizeof(struct shared)));
    struct shared *s = map(fd);
    make(s);
    pid_t pid = fork();
    if (pid == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", fd);
        if (strcmp(argv[1], "none") == 0)
            unsetenv("LD_PRELOAD");
        else
            setenv("LD_PRELOAD", argv[1], 1);
        execl("/proc/self/exe", argv[0], argv[1], number, (char *)NULL);
        _exit(9);
    }
    work(s, 0);
    child_join(pid);
    CHECK_RC(pthread_mutex_lock(&s->robust), EOWNERDEAD);
    OK(pthread_mutex_consistent(&s->robust));
    OK(pthread_mutex_unlock(&s->robust));
    printf("of %d: mutex %ld, inheriting %ld, rwlock %ld, spin %ld\n", 2 * N_ROUNDS, s->n_mutex, s->n_inheriting,
           s->n_rwlock, s->n_spin);
    return s->n_mutex != 2 * N_ROUNDS || s->n_inheriting != 2 * N_ROUNDS || s->n_rwlock != 2 * N_ROUNDS ||
           s->n_spin != 2 * N_ROUNDS;
}
