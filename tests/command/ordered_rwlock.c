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
