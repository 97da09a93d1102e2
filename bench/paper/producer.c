/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One producer, many consumers, six threads: the setting of Table XI. An ordinary program; what its calls cost is for
 * the engine that serves them to say.
 *
 *   producer [--piece NS] [ROUNDS]
 *
 * A round: all meet at a barrier; the producer locks, makes an item for each consumer, broadcasts and unlocks; each
 * consumer works on the item it has, locks, waits while there is nothing, takes an item and unlocks. An item is none to
 * four pieces of work, NS nanoseconds each (default 0); the consumers take turns at the largest item. After ROUNDS
 * rounds (default 15) it starts again with another mutex, condition and barrier, N_SETS times, since what a call costs
 * on a chip depends on where its primitive is.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { N_CONSUMERS = 5, N_SETS = 32 };

static struct set {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    pthread_barrier_t start;
    unsigned n_items;
} sets[N_SETS];
static unsigned long n_rounds = 15, piece_ns;

struct consumer {
    pthread_t thread;
    unsigned number;
    unsigned long n_taken;
};

/* As if it had a core of its own, which six threads need not have. */
static void work(unsigned long ns) {
    struct timespec t;
    if (ns == 0)
        return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    ns += (unsigned long)t.tv_nsec;
    t.tv_sec += (time_t)(ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        ;
}

static void *consume(void *argument) {
    struct consumer *c = argument;
    prctl(PR_SET_TIMERSLACK, 1);
    for (struct set *s = sets; s < sets + N_SETS; s++)
        for (unsigned long i = 0; i < n_rounds; i++) {
            pthread_barrier_wait(&s->start);
            work((c->number + i) % N_CONSUMERS * piece_ns);
            pthread_mutex_lock(&s->mutex);
            while (s->n_items == 0)
                pthread_cond_wait(&s->filled, &s->mutex);
            s->n_items--;
            c->n_taken++;
            pthread_mutex_unlock(&s->mutex);
        }
    return NULL;
}

static void *produce(void *argument) {
    for (struct set *s = sets; s < sets + N_SETS; s++)
        for (unsigned long i = 0; i < n_rounds; i++) {
            pthread_barrier_wait(&s->start);
            pthread_mutex_lock(&s->mutex);
            s->n_items += N_CONSUMERS;
            pthread_cond_broadcast(&s->filled);
            pthread_mutex_unlock(&s->mutex);
        }
    return argument;
}

static unsigned long number(const char *text) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0 || n > 1000000000) {
        fprintf(stderr, "usage: producer [--piece NS] [ROUNDS]\n");
        exit(2);
    }
    return n;
}

int main(int argc, char **argv) {
    static struct consumer consumers[N_CONSUMERS];
    pthread_t producer;
    unsigned n_left = 0;
    if (argc > 2 && strcmp(argv[1], "--piece") == 0) {
        piece_ns = number(argv[2]);
        argc -= 2, argv += 2;
    }
    if (argc > 2 || (argc == 2 && (n_rounds = number(argv[1])) == 0))
        return number("");
    for (struct set *s = sets; s < sets + N_SETS; s++)
        if (pthread_mutex_init(&s->mutex, NULL) != 0 || pthread_cond_init(&s->filled, NULL) != 0 ||
            pthread_barrier_init(&s->start, NULL, N_CONSUMERS + 1) != 0)
            return 1;
    for (unsigned i = 0; i < N_CONSUMERS; i++) {
        consumers[i].number = i;
        if (pthread_create(&consumers[i].thread, NULL, consume, &consumers[i]) != 0)
            return 1;
    }
    if (pthread_create(&producer, NULL, produce, NULL) != 0)
        return 1;
    for (unsigned i = 0; i < N_CONSUMERS; i++)
        pthread_join(consumers[i].thread, NULL);
    pthread_join(producer, NULL);
    for (unsigned i = 0; i < N_CONSUMERS; i++)
        if (consumers[i].n_taken != n_rounds * N_SETS)
            return 1;
    for (struct set *s = sets; s < sets + N_SETS; s++)
        n_left += s->n_items;
    printf("%d times %lu rounds, %d consumers, %u left\n", N_SETS, n_rounds, N_CONSUMERS, n_left);
    return n_left != 0;
}
