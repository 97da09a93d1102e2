/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long short work between two calls takes: `overlap`. The work is that of `workalike fluid`. A processor overlaps
 * it with the calls around it, and with the next work, as far as it does not depend on that. A recorder that reads the
 * time at each call keeps it from doing so. Prints the nanoseconds of CPU time of one work:
 *
 *   overlapped  one after another, none depends on another
 *   dependent   each needs the result of the one before
 *   fenced      none depends on another, but all of it is done before the next one begins; without the fence's own time
 *   mutex       as overlapped, with a lock and an unlock behind each, and their time
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { N = 1000000, N_RUNS = 5, ROUNDS = 20 };
enum kind { OVERLAPPED, DEPENDENT, FENCED, MUTEX, FENCE, N_KINDS };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) uint64_t compute(uint64_t seed) {
    for (unsigned i = 0; i < ROUNDS; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    __asm__ volatile("" : "+r"(seed));
    return seed;
}

static void fence(void) {
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#else
    __asm__ volatile("isb" ::: "memory");
#endif
}

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double run(enum kind kind) {
    uint64_t last = 1;
    double from = cpu_ns();
    for (unsigned i = 1; i <= N; i++) {
        if (kind != FENCE)
            last = compute(kind == DEPENDENT ? last : i);
        if (kind == FENCED || kind == FENCE)
            fence();
        if (kind == MUTEX) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
    }
    return (cpu_ns() - from) / N;
}

int main(void) {
    double least[N_KINDS];
    for (int k = 0; k < N_KINDS; k++)
        for (int i = 0; i < N_RUNS; i++) {
            double ns = run((enum kind)k);
            least[k] = i == 0 || ns < least[k] ? ns : least[k];
        }
    printf("overlapped %.1f ns, dependent %.1f ns, fenced %.1f ns, with a mutex %.1f ns\n", least[OVERLAPPED],
           least[DEPENDENT], least[FENCED] - least[FENCE], least[MUTEX]);
    return 0;
}
