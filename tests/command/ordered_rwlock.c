/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parts of `ordered`: which threads an unlock of a read-write lock wakes. */
#include "ordered.h"

enum { WRITERS = 200 };

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t go, met;

static void *writes(void *unused) {
    (void)unused;
    pthread_rwlock_wrlock(&rwlock);
    add_to(RWLOCK, 1);
    pthread_rwlock_unlock(&rwlock);
    return NULL;
}

int many_writers(void) {
    pthread_t threads[WRITERS];
    pthread_rwlock_wrlock(&rwlock);
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, writes, NULL);
    pthread_rwlock_unlock(&rwlock);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}

static void *reads_at_once(void *unused) {
    (void)unused;
    sem_wait(&go);
    pthread_rwlock_rdlock(&rwlock);
    sem_wait(&met); /* with the lock: another reader comes */
    pthread_rwlock_unlock(&rwlock);
    return NULL;
}

static void *reads_late(void *unused) {
    (void)unused;
    pthread_rwlock_rdlock(&rwlock);
    sem_post(&met);
    pthread_rwlock_unlock(&rwlock);
    return NULL;
}

/* The reader is created first: it has its turn before the writer that the unlock wakes. */
int reader_before_writer(void) {
    void *(*const routines[])(void *) = {reads_at_once, writes, reads_late};
    pthread_t threads[3];
    sem_init(&go, 0, 0);
    sem_init(&met, 0, 0);
    pthread_rwlock_wrlock(&rwlock);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, routines[i], NULL), sched_yield(), sched_yield();
    sem_post(&go);
    pthread_rwlock_unlock(&rwlock);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}

static atomic_int is_held_up;

static void holds_up(int number) {
    (void)number;
    while (atomic_load(&flag) == 0) {
        usleep(1000);
        atomic_store(&is_held_up, 1);
    }
}

static void *reads(void *unused) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    return unused;
}

/* A reader waits, and a writer behind it. The reader is in a handler until the writer has had the lock. */
int held_up_reader(void) {
    struct sigaction action = {.sa_handler = holds_up};
    pthread_t reader, writer;
    sigaction(SIGUSR1, &action, NULL);
    pthread_rwlock_wrlock(&rwlock);
    pthread_create(&reader, NULL, reads, NULL);
    sched_yield(), sched_yield();
    pthread_create(&writer, NULL, writes, NULL);
    sched_yield(), sched_yield();
    pthread_kill(reader, SIGUSR1);
    while (atomic_load(&is_held_up) == 0)
        usleep(1000);
    pthread_rwlock_unlock(&rwlock);
    pthread_join(writer, NULL);
    atomic_store(&flag, 1);
    pthread_join(reader, NULL);
    puts("done");
    return 0;
}
