/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program without a run-time library, which asks for its functions: by weak references, and by name. It calls those
 * that there are.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

__attribute__((weak)) void GOMP_parallel(void (*body)(void *), void *data, unsigned n, unsigned flags);
__attribute__((weak)) void GOMP_barrier(void);
__attribute__((weak)) void omp_set_lock(void *lock);
__attribute__((weak)) void omp_unset_lock(void *lock);
__attribute__((weak)) void __kmpc_critical(void *place, int thread, void *lock);
__attribute__((weak)) void __kmpc_end_critical(void *place, int thread, void *lock);
__attribute__((weak)) void __kmpc_critical_with_hint(void *place, int thread, void *lock, uint32_t hint);

static int n_wrong;

static void body(void *data) {
    ++*(int *)data;
}

static void task(int *thread, int *in_team, int *n, int *m) {
    n_wrong += *thread != 0 || in_team == NULL;
    *n += *m;
}

static void add(void *to, void *from) {
    (void)to, (void)from;
    n_wrong++;
}

/* The function of that name, if there is one. */
static void *asked(const char *name) {
    return dlsym(RTLD_DEFAULT, name);
}
typedef void at_place(void *place, int thread);
static void call(const char *name, void *place) {
    at_place *f = NULL;
    *(void **)(void *)&f = asked(name);
    if (f != NULL)
        f(place, 0);
}

int main(void) {
    long place[8] = {0}, lock[8] = {0};
    int n = 0, m = 5;
    if (GOMP_parallel != NULL)
        GOMP_parallel(body, &n, 4, 0);
    else
        body(&n);
    if (GOMP_barrier != NULL)
        GOMP_barrier();
    if (omp_set_lock != NULL && omp_unset_lock != NULL) {
        omp_set_lock(lock);
        omp_unset_lock(lock);
    }
    if (__kmpc_critical != NULL && __kmpc_end_critical != NULL && __kmpc_critical_with_hint != NULL) {
        __kmpc_critical(place, 0, lock);
        __kmpc_end_critical(place, 0, lock);
        __kmpc_critical_with_hint(place, 0, lock, 0);
        __kmpc_end_critical(place, 0, lock);
    }
    void (*push)(void *, int, int) = NULL;
    *(void **)(void *)&push = asked("__kmpc_push_num_threads");
    if (push != NULL)
        push(place, 0, 4);
    void (*fork_call)(void *, int, void (*)(int *, int *, int *, int *), ...) = NULL;
    *(void **)(void *)&fork_call = asked("__kmpc_fork_call");
    if (fork_call != NULL)
        fork_call(place, 2, task, &n, &m);
    else
        n += m;
    call("__kmpc_serialized_parallel", place);
    call("__kmpc_end_serialized_parallel", place);
    call("__kmpc_barrier", place);
    call("__kmpc_ordered", place);
    call("__kmpc_end_ordered", place);
    int (*cancel_barrier)(void *, int) = NULL;
    *(void **)(void *)&cancel_barrier = asked("__kmpc_cancel_barrier");
    n_wrong += cancel_barrier != NULL && cancel_barrier(place, 0) != 0;
    int (*reduce)(void *, int, int, size_t, void *, void (*)(void *, void *), void *) = NULL;
    void (*end_reduce)(void *, int, void *) = NULL;
    *(void **)(void *)&reduce = asked("__kmpc_reduce");
    *(void **)(void *)&end_reduce = asked("__kmpc_end_reduce");
    if (reduce != NULL && end_reduce != NULL) {
        n_wrong += reduce(place, 0, 1, sizeof n, &n, add, lock) != 1;
        end_reduce(place, 0, lock);
    }
    printf("%d, %d wrong\n", n, n_wrong);
    return n != 6 || n_wrong != 0;
}
