/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions of which the last call is one of the run-time library's, so that the compiler makes it a jump: the library
 * then seems to be called from elsewhere. And a region in a constructor, under the dynamic linker's lock.
 */
#include <omp.h>

static omp_lock_t lock;
static long sum;

__attribute__((noinline)) static void ends_in_section(void) {
#pragma omp parallel num_threads(4)
    {
#pragma omp critical
        sum += omp_get_num_threads();
    }
}

__attribute__((noinline)) static void ends_in_lock(void) {
    omp_set_lock(&lock);
}

__attribute__((constructor)) static void early(void) {
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1) {
#pragma omp critical(of_a_worker)
            sum++;
        }
#pragma omp barrier
#pragma omp atomic
        sum++;
    }
}

/* As the other library's, for the same loader. */
long omp_library_work(int n_threads, int rounds);
long omp_library_work(int n_threads, int rounds) {
    for (int round = 0; round < rounds; round++)
        ends_in_section();
    ends_in_lock();
    sum += 1000 * (omp_test_lock(&lock) != 0);
    omp_unset_lock(&lock);
    return sum + n_threads;
}
