/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP's sections and locks that threads have to wait for: an owner keeps them until the others have come. The
 * run-time library waits at the very address of the lock. usage: openmp-contended sections|alone
 * Each prints OK if what it has computed is right.
 */
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N_THREADS = 4, N_ROUNDS = 20 };

static long n_in_section, n_under_lock;
static int n_come; /* atomic: threads that are at the section of this round, or were */
static omp_lock_t lock;
static pthread_barrier_t rounds;

/* An owner waits until all others have come, and a moment until they sleep. */
static void stay(int round) {
    const struct timespec moment = {.tv_nsec = 200000};
    while (__atomic_load_n(&n_come, __ATOMIC_RELAXED) < N_THREADS * (round + 1))
        nanosleep(&moment, NULL);
    nanosleep(&moment, NULL);
}

static bool sections(void) {
#pragma omp parallel num_threads(N_THREADS)
    for (int round = 0; round < N_ROUNDS; round++) {
        __atomic_fetch_add(&n_come, 1, __ATOMIC_RELAXED);
#pragma omp critical(of_the_sum)
        {
            stay(round);
            n_in_section++;
        }
        omp_set_lock(&lock);
        n_under_lock++;
        omp_unset_lock(&lock);
#pragma omp barrier
    }
    return n_in_section == N_THREADS * N_ROUNDS && n_under_lock == n_in_section;
}

static void *contend(void *unused) {
    for (int round = 0; round < N_ROUNDS; round++) {
        __atomic_fetch_add(&n_come, 1, __ATOMIC_RELAXED);
        omp_set_lock(&lock);
        stay(round);
        n_under_lock++;
        omp_unset_lock(&lock);
        pthread_barrier_wait(&rounds);
    }
    return unused;
}

/* Threads of the program's own, and no region. */
static bool alone(void) {
    pthread_t threads[N_THREADS];
    pthread_barrier_init(&rounds, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, contend, NULL) != 0)
            return false;
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    return n_under_lock == N_THREADS * N_ROUNDS;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    omp_init_lock(&lock);
    bool right = strcmp(what, "sections") == 0 ? sections() : strcmp(what, "alone") == 0 && alone();
    omp_destroy_lock(&lock);
    puts(right ? "OK" : "wrong");
    return !right;
}
