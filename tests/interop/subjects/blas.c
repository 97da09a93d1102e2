/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Products of matrices by OpenBLAS, called from one thread and from several at once. Its threads wait for each other by
 * loops of sched_yield. Argument: number of threads. The numbers are small integers, so a product is exact in whatever
 * order it is added up.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111, CALLERS = 3, ROUNDS = 40, SIZES = 4 };
static const int sizes[SIZES] = {24, 64, 128, 193};

typedef void gemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a, int lda,
                  const double *b, int ldb, double beta, double *c, int ldc);
static gemm *multiply;

static double *matrix(int n, int modulus) {
    double *m = malloc(sizeof *m * (size_t)n * (size_t)n);
    for (int i = 0; i < n * n; i++)
        m[i] = i % modulus - modulus / 2;
    return m;
}

static double products(int n, int rounds) {
    double *a = matrix(n, 7), *b = matrix(n, 11), *c = matrix(n, 3), sum = 0;
    for (int round = 0; round < rounds; round++) {
        multiply(ROW_MAJOR, NO_TRANS, NO_TRANS, n, n, n, 1, a, n, b, n, 0, c, n);
        for (int i = 0; i < n * n; i++)
            sum += c[i] * (i % 13);
    }
    free(a);
    free(b);
    free(c);
    return sum;
}

static void *call(void *result) {
    *(double *)result = products(96, ROUNDS);
    return NULL;
}

int main(int argc, char **argv) {
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (library == NULL)
        return 77;
    int (*parallel)(void), (*threads)(void);
    void (*set_threads)(int);
    *(void **)(void *)&parallel = dlsym(library, "openblas_get_parallel");
    *(void **)(void *)&threads = dlsym(library, "openblas_get_num_threads");
    *(void **)(void *)&multiply = dlsym(library, "cblas_dgemm");
    *(void **)(void *)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (parallel == NULL || threads == NULL || set_threads == NULL || multiply == NULL ||
        parallel() != 1 /* threads of its own */)
        return 77;
    if (argc > 1)
        set_threads(atoi(argv[1])); /* the variable can only ask for as many as there are CPUs */
    printf("%d threads\n", threads());
    for (int i = 0; i < SIZES; i++)
        printf("%d: %.0f\n", sizes[i], products(sizes[i], ROUNDS));
    pthread_t thread[CALLERS];
    double sum[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        if (pthread_create(&thread[i], NULL, call, &sum[i]) != 0)
            return 1;
    for (int i = 0; i < CALLERS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < CALLERS; i++)
        printf("caller %d: %.0f\n", i, sum[i]);
    return 0;
}
