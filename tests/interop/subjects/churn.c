/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Allocation from many threads, blocks freed by another thread than the one that took them: the program that runs
 * with jemalloc or tcmalloc preloaded beside the library. Those take pthread mutexes inside malloc, before any
 * constructor has run; the library's own locks are taken from threads that are inside malloc. Every block carries a
 * pattern that is checked before it is freed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_THREADS = 8, N_SLOTS = 64 };

static int n_rounds = 30000; /* of each thread; the argument, if there is one */

static struct {
    pthread_mutex_t lock;
    unsigned char *block;
    size_t size;
} slot[N_SLOTS];

static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t total_changed = PTHREAD_COND_INITIALIZER;
static long n_freed, n_broken, n_finished;

static unsigned char pattern(const unsigned char *block, size_t size) {
    return (unsigned char)((uintptr_t)block / 16 + size);
}

static void *churn(void *arg) {
    uint32_t random = (uint32_t)(uintptr_t)arg * 2654435761u + 1;
    long freed = 0, broken = 0;
    for (int i = 0; i < n_rounds; i++) {
        random = random * 1664525 + 1013904223;
        size_t size = 1 + (random >> 8) % (i % 50 == 0 ? 200000 : 600);
        unsigned char *mine = malloc(size);
        if (mine == NULL)
            abort();
        memset(mine, pattern(mine, size), size);
        unsigned at = (random >> 4) % N_SLOTS;
        pthread_mutex_lock(&slot[at].lock);
        unsigned char *theirs = slot[at].block;
        size_t their_size = slot[at].size;
        slot[at].block = mine;
        slot[at].size = size;
        pthread_mutex_unlock(&slot[at].lock);
        if (theirs == NULL)
            continue;
        unsigned char expected = pattern(theirs, their_size);
        for (size_t b = 0; b < their_size; b += 1 + b / 8)
            broken += theirs[b] != expected;
        free(theirs);
        freed++;
    }
    pthread_mutex_lock(&total_lock);
    n_freed += freed;
    n_broken += broken;
    n_finished++;
    pthread_cond_signal(&total_changed);
    pthread_mutex_unlock(&total_lock);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 2)
        n_rounds = atoi(argv[1]);
    for (int i = 0; i < N_SLOTS; i++)
        pthread_mutex_init(&slot[i].lock, NULL);
    pthread_t thread[N_THREADS];
    for (uintptr_t i = 0; i < N_THREADS; i++)
        if (pthread_create(&thread[i], NULL, churn, (void *)i) != 0)
            return 2;
    pthread_mutex_lock(&total_lock);
    while (n_finished < N_THREADS)
        pthread_cond_wait(&total_changed, &total_lock);
    pthread_mutex_unlock(&total_lock);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < N_SLOTS; i++)
        if (slot[i].block != NULL) {
            free(slot[i].block);
            n_freed++;
        }
    printf("freed %ld of %ld, broken %ld\n", n_freed, (long)N_THREADS * n_rounds, n_broken);
    return !(n_freed == (long)N_THREADS * n_rounds && n_broken == 0);
}
