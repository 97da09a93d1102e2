/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long a lock of a free mutex takes by the clock on the wall, one at a time: an ordinary program. With a time scale
 * the engine ni makes that the model's latency times the scale; bench/emulation compares the two.
 *
 * Usage: lock-latency [ROUNDS] [PAUSE_NS]. One line of JSON: median, first and last tenth in nanoseconds; and what a
 * lock and unlock take of as many that follow each other at once.
 *
 * The process has one thread that does not join. So with two CPUs the engine ni has a core for its NI thread.
 *
 * The second thread of the process locks, and its mutex is the first object that the process uses: on the engine ni the
 * thread sits on the second tile of the map, and the mutex lives at NI 0. Between two rounds the thread looks at the
 * clock: the unlock, for which no thread waits, has been served long before the next lock.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "json_file.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static size_t n_rounds = 2000;
static uint64_t pause_ns = 50000;
static uint64_t *took_ns, pairs_ns;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* An error ends the program at once; it has nothing to say then. */
static void must(int error, const char *call) {
    if (error != 0) {
        fprintf(stderr, "lock-latency: %s: error %d\n", call, error);
        exit(1);
    }
}

static void *lock_again_and_again(void *unused) {
    for (size_t i = 0; i <= n_rounds; i++) { /* the first allocates, and does not count */
        uint64_t from = now_ns();
        while (now_ns() - from < pause_ns)
            ;
        from = now_ns();
        must(pthread_mutex_lock(&mutex), "pthread_mutex_lock");
        uint64_t to = now_ns();
        must(pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
        if (i > 0)
            took_ns[i - 1] = to - from;
    }
    uint64_t from = now_ns();
    for (size_t i = 0; i < n_rounds; i++) {
        must(pthread_mutex_lock(&mutex), "pthread_mutex_lock");
        must(pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
    }
    pairs_ns = now_ns() - from;
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc > 3 || (argc > 1 && (n_rounds = strtoul(argv[1], NULL, 10)) == 0)) {
        fprintf(stderr, "usage: lock-latency [ROUNDS] [PAUSE_NS]\n");
        return 2;
    }
    if (argc > 2)
        pause_ns = strtoull(argv[2], NULL, 10);
    if ((took_ns = calloc(n_rounds, sizeof *took_ns)) == NULL)
        return 1;
    must(pthread_create(&thread, NULL, lock_again_and_again, NULL), "pthread_create");
    must(pthread_join(thread, NULL), "pthread_join");
    qsort(took_ns, n_rounds, sizeof *took_ns, compare);
    struct json j = json_on(stdout);
    json_open(&j, NULL, '{');
    json_uint(&j, "rounds", n_rounds);
    json_uint(&j, "median_ns", took_ns[n_rounds / 2]);
    json_uint(&j, "p10_ns", took_ns[n_rounds / 10]);
    json_uint(&j, "p90_ns", took_ns[n_rounds - 1 - n_rounds / 10]);
    json_real(&j, "pair_ns", (double)pairs_ns / (double)n_rounds, 1);
    json_close(&j, '}');
    json_end(&j);
    free(took_ns);
    return 0;
}
