/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Process-shared and robust objects in a file that two processes map: the other process is started anew, once as this
 * one was and once with nothing preloaded, so that a served and an unaware process share every kind of object. Then
 * the other one is killed with SIGKILL while it holds or waits; the survivor gets what glibc gives: EOWNERDEAD from a
 * robust mutex, and everything else goes on without the dead.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/await.h"
#include "lib/clock.h"
#include "lib/report.h"

enum { N_TURNS = 400 };

struct shared {
    pthread_mutex_t mutex, robust;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    pthread_spinlock_t spin;
    sem_t semaphore, arrived;
    long turn, counter;
};

extern char **environ;
static struct shared *shared;

static struct shared *map(const char *path, int flags) {
    int fd = open(path, O_RDWR | flags, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *shared) != 0)
        exit(2);
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        exit(2);
    return memory;
}

static void make(void) {
    pthread_mutexattr_t m;
    pthread_condattr_t c;
    pthread_rwlockattr_t r;
    pthread_barrierattr_t b;
    pthread_mutexattr_init(&m);
    pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &m);
    pthread_mutexattr_setrobust(&m, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->robust, &m);
    pthread_condattr_init(&c);
    pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&shared->cond, &c);
    pthread_rwlockattr_init(&r);
    pthread_rwlockattr_setpshared(&r, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(&shared->rwlock, &r);
    pthread_barrierattr_init(&b);
    pthread_barrierattr_setpshared(&b, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &b, 2);
    pthread_spin_init(&shared->spin, PTHREAD_PROCESS_SHARED);
    sem_init(&shared->semaphore, 1, 0);
    sem_init(&shared->arrived, 1, 0);
    shared->turn = shared->counter = 0;
}

/* Both sides: strict alternation by mutex and condition, exclusion by spin lock and rwlock, barriers in between. */
static int alternate(int me) {
    for (int i = 0; i < N_TURNS; i++) {
        struct timespec late = time_in_ms(CLOCK_REALTIME, 60000);
        pthread_mutex_lock(&shared->mutex);
        while (shared->turn % 2 != me)
            if (pthread_cond_timedwait(&shared->cond, &shared->mutex, &late) != 0)
                return 0;
        shared->turn++;
        pthread_cond_signal(&shared->cond);
        pthread_mutex_unlock(&shared->mutex);
        pthread_spin_lock(&shared->spin);
        shared->counter++;
        pthread_spin_unlock(&shared->spin);
        if (i % 20 == 0)
            pthread_barrier_wait(&shared->barrier);
        pthread_rwlock_wrlock(&shared->rwlock);
        pthread_spin_lock(&shared->spin);
        shared->counter++;
        pthread_spin_unlock(&shared->spin);
        pthread_rwlock_unlock(&shared->rwlock);
        if (me == 0)
            sem_post(&shared->semaphore);
        else
            while (sem_timedwait(&shared->semaphore, &late) != 0)
                if (errno != EINTR)
                    return 0;
    }
    return 1;
}

static void arrive_and_block(void) {
    sem_post(&shared->arrived);
    for (;;)
        pause();
}

static int other(const char *role) {
    if (strcmp(role, "alternate") == 0)
        return !alternate(1);
    if (strcmp(role, "robust") == 0) {
        pthread_mutex_lock(&shared->robust);
        arrive_and_block();
    }
    if (strcmp(role, "cond") == 0) {
        pthread_mutex_lock(&shared->mutex);
        sem_post(&shared->arrived);
        for (;;)
            pthread_cond_wait(&shared->cond, &shared->mutex);
    }
    if (strcmp(role, "sem") == 0) {
        sem_post(&shared->arrived);
        sem_wait(&shared->semaphore);
    }
    if (strcmp(role, "reader") == 0) {
        sem_post(&shared->arrived);
        for (;;) {
            pthread_mutex_lock(&shared->mutex);
            pthread_mutex_unlock(&shared->mutex);
        }
    }
    return 2;
}

static pid_t start(const char *self, const char *path, const char *role, int served) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (!served) {
        unsetenv("LD_PRELOAD");
        unsetenv("SUBUTAI_ENGINE");
    }
    execl(self, self, path, role, (char *)NULL);
    _exit(127);
}

static int kill_it(pid_t pid) {
    int status;
    kill(pid, SIGKILL);
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void wait_until_it_blocks(void) {
    while (sem_wait(&shared->arrived) != 0)
        ;
    let_threads_block();
}

static void scenario(const char *self, const char *path, int served) {
    int status = -1;
    printf("other process %s\n", served ? "started as this one" : "with nothing preloaded");
    make();
    pid_t pid = start(self, path, "alternate", served);
    int ok = alternate(0);
    report(ok && waitpid(pid, &status, 0) == pid && status == 0, "two processes alternated");
    report(shared->turn == 2 * N_TURNS && shared->counter == 4 * N_TURNS, "every turn and section counted");

    pid = start(self, path, "robust", served);
    wait_until_it_blocks();
    report(pthread_mutex_trylock(&shared->robust) == EBUSY, "robust mutex held by the other is busy");
    report(kill_it(pid), "killed while it holds the robust mutex");
    struct timespec late = time_in_ms(CLOCK_REALTIME, 30000);
    report(pthread_mutex_timedlock(&shared->robust, &late) == EOWNERDEAD, "EOWNERDEAD for the survivor");
    report(pthread_mutex_consistent(&shared->robust) == 0 && pthread_mutex_unlock(&shared->robust) == 0 &&
               pthread_mutex_lock(&shared->robust) == 0 && pthread_mutex_unlock(&shared->robust) == 0,
           "consistent again, locks and unlocks");
    pid = start(self, path, "robust", served);
    wait_until_it_blocks();
    kill_it(pid);
    report(pthread_mutex_lock(&shared->robust) == EOWNERDEAD && pthread_mutex_unlock(&shared->robust) == 0 &&
               pthread_mutex_lock(&shared->robust) == ENOTRECOVERABLE,
           "ENOTRECOVERABLE when no owner repaired it");

    make();
    pid = start(self, path, "sem", served);
    wait_until_it_blocks();
    report(kill_it(pid), "killed while it waits for a semaphore");
    late = time_in_ms(CLOCK_REALTIME, 30000);
    report(sem_post(&shared->semaphore) == 0 && sem_timedwait(&shared->semaphore, &late) == 0,
           "the token is there for the survivor");
    pid = start(self, path, "cond", served);
    wait_until_it_blocks();
    report(kill_it(pid), "killed while it waits on a condition");
    /* A dead waiter may swallow one signal with glibc too; a broadcast must not hang, and the mutex was released. */
    late = time_in_ms(CLOCK_REALTIME, 30000);
    report(pthread_mutex_timedlock(&shared->mutex, &late) == 0 && pthread_cond_broadcast(&shared->cond) == 0 &&
               pthread_mutex_unlock(&shared->mutex) == 0,
           "mutex free, broadcast returns");
    /* It dies with the mutex held or not; a plain shared mutex stays locked then. Never an error, never a crash. */
    pid = start(self, path, "reader", served);
    wait_until_it_blocks();
    report(kill_it(pid), "killed in the middle of locking");
    late = time_in_ms(CLOCK_REALTIME, 0);
    int error = pthread_mutex_timedlock(&shared->mutex, &late);
    report(error == 0 || error == ETIMEDOUT, "plain mutex: free or still held, never an error");
}

int main(int argc, char **argv) {
    if (argc == 3) {
        shared = map(argv[1], 0);
        return other(argv[2]);
    }
    char path[] = "fault-shared.XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return 2;
    close(fd);
    shared = map(path, O_CREAT);
    scenario("/proc/self/exe", path, 1);
    scenario("/proc/self/exe", path, 0);
    unlink(path);
    return report_end();
}
