/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One producer, many consumers, six threads: the setting of Table XI. An ordinary program; what its calls cost is for
 * the engine that serves them to say.
 *
 * A round: all meet at a barrier; the producer locks, makes an item for each consumer, broadcasts and unlocks; each
 * consumer locks, waits while there is nothing, takes an item and unlocks.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_CONSUMERS = 5 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t start;
static unsigned n_items, n_taken[N_CONSUMERS];
static unsigned long n_rounds = 200;

static void *consume(void *argument) {
    unsigned *taken = argument;
    for (unsigned long i = 0; i < n_rounds; i++) {
        pthread_barrier_wait(&start);
        pthread_mutex_lock(&mutex);
        while (n_items == 0)
            pthread_cond_wait(&filled, &mutex);
        n_items--;
        ++*taken;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *produce(void *argument) {
    for (unsigned long i = 0; i < n_rounds; i++) {
        pthread_barrier_wait(&start);
        pthread_mutex_lock(&mutex);
        n_items += N_CONSUMERS;
        pthread_cond_broadcast(&filled);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

int main(int argc, char **argv) {
    pthread_t threads[N_CONSUMERS + 1];
    if (argc > 2 || (argc == 2 && (n_rounds = strtoul(argv[1], NULL, 10)) == 0)) {
        fprintf(stderr, "usage: producer [ROUNDS]\n");
        return 2;
    }
    if (pthread_barrier_init(&start, NULL, N_CONSUMERS + 1) != 0)
        return 1;
    for (unsigned i = 0; i <= N_CONSUMERS; i++)
        if (pthread_create(&threads[i], NULL, i < N_CONSUMERS ? consume : produce,
                           i < N_CONSUMERS ? &n_taken[i] : NULL) != 0)
            return 1;
    for (unsigned i = 0; i <= N_CONSUMERS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < N_CONSUMERS; i++)
        if (n_taken[i] != n_rounds)
            return 1;
    printf("%lu rounds, %u consumers, %u left\n", n_rounds, N_CONSUMERS, n_items);
    return n_items != 0;
}
