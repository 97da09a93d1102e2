/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * many THREADS MUTEXES ROUNDS [alone]: each thread locks every mutex in turn, each beginning elsewhere, ROUNDS times
 * over.
 * Every now and then, but not with `alone`, two at once, in the order of their addresses.
 */
#include "subject.h"

static struct guarded {
    pthread_mutex_t mutex;
    struct inside inside;
} * all;
static unsigned n_threads, n_mutexes, n_rounds;
static bool alone;

static void *locker(void *which) {
    unsigned first = (unsigned)((uintptr_t)which * n_mutexes / n_threads);
    for (unsigned round = 0; round < n_rounds; round++)
        for (unsigned i = 0; i < n_mutexes; i++) {
            unsigned at = (first + i) % n_mutexes;
            bool two = !alone && i % 16 == 0 && at + 1 < n_mutexes;
            OK(pthread_mutex_lock(&all[at].mutex));
            if (two)
                OK(pthread_mutex_lock(&all[at + 1].mutex));
            go_in(&all[at].inside);
            go_out(&all[at].inside);
            if (two)
                OK(pthread_mutex_unlock(&all[at + 1].mutex));
            OK(pthread_mutex_unlock(&all[at].mutex));
        }
    return NULL;
}

int main(int argc, char **argv) {
    n_threads = argument(argc, argv, 1, 8);
    n_mutexes = argument(argc, argv, 2, 10000);
    n_rounds = argument(argc, argv, 3, 1);
    alone = argc > 4;
    all = calloc(n_mutexes, sizeof *all);
    CHECK(all != NULL && n_threads > 0 && n_mutexes > 0);
    run_threads(n_threads, locker);
    for (unsigned i = 0; i < n_mutexes; i++) {
        CHECK(all[i].inside.entered == (uint64_t)n_threads * n_rounds);
        OK(pthread_mutex_destroy(&all[i].mutex));
    }
    free(all);
    return 0;
}
