/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* OpenMP's run-time libraries behind the recorder's functions of the same names (openmp.c, openmp_lock.c,
 * openmp_kmpc.c). */
#ifndef SBT_OBSERVE_OPENMP_H
#define SBT_OBSERVE_OPENMP_H

#include <stdbool.h>
#include <stdint.h>

#include "os/elf.h"

/* Have regions or sections been recorded? Then the futex calls of run-time libraries are no events. A relaxed read. */
bool rec_openmp_is_seen(void);
/* There is one. Wait-free. */
void rec_openmp_see(void);
/* The object where workers wait for the next region. */
const void *rec_openmp_regions(void);

#define REC_OPENMP_NAMES(X)                                                                                            \
    X(GOMP_parallel)                                                                                                   \
    X(GOMP_parallel_reductions)                                                                                        \
    X(GOMP_parallel_sections)                                                                                          \
    X(GOMP_parallel_loop_static)                                                                                       \
    X(GOMP_parallel_loop_dynamic)                                                                                      \
    X(GOMP_parallel_loop_guided)                                                                                       \
    X(GOMP_parallel_loop_nonmonotonic_dynamic)                                                                         \
    X(GOMP_parallel_loop_nonmonotonic_guided)                                                                          \
    X(GOMP_parallel_loop_runtime)                                                                                      \
    X(GOMP_parallel_loop_nonmonotonic_runtime)                                                                         \
    X(GOMP_parallel_loop_maybe_nonmonotonic_runtime)                                                                   \
    X(GOMP_barrier)                                                                                                    \
    X(GOMP_barrier_cancel)                                                                                             \
    X(GOMP_loop_end)                                                                                                   \
    X(GOMP_loop_end_cancel)                                                                                            \
    X(GOMP_sections_end)                                                                                               \
    X(GOMP_sections_end_cancel)                                                                                        \
    X(GOMP_critical_start)                                                                                             \
    X(GOMP_critical_end)                                                                                               \
    X(GOMP_critical_name_start)                                                                                        \
    X(GOMP_critical_name_end)                                                                                          \
    X(GOMP_atomic_start)                                                                                               \
    X(GOMP_atomic_end)                                                                                                 \
    X(omp_set_lock)                                                                                                    \
    X(omp_unset_lock)                                                                                                  \
    X(omp_test_lock)                                                                                                   \
    X(omp_init_lock)                                                                                                   \
    X(omp_destroy_lock)                                                                                                \
    X(omp_set_nest_lock)                                                                                               \
    X(omp_unset_nest_lock)                                                                                             \
    X(omp_test_nest_lock)                                                                                              \
    X(omp_init_nest_lock)                                                                                              \
    X(omp_destroy_nest_lock)                                                                                           \
    X(GOMP_ordered_start)                                                                                              \
    X(GOMP_ordered_end)                                                                                                \
    X(__kmpc_fork_call)                                                                                                \
    X(__kmpc_push_num_threads)                                                                                         \
    X(__kmpc_serialized_parallel)                                                                                      \
    X(__kmpc_end_serialized_parallel)                                                                                  \
    X(__kmpc_barrier)                                                                                                  \
    X(__kmpc_cancel_barrier)                                                                                           \
    X(__kmpc_reduce)                                                                                                   \
    X(__kmpc_end_reduce)                                                                                               \
    X(__kmpc_critical)                                                                                                 \
    X(__kmpc_critical_with_hint)                                                                                       \
    X(__kmpc_end_critical)                                                                                             \
    X(__kmpc_ordered)                                                                                                  \
    X(__kmpc_end_ordered)                                                                                              \
    X(GOMP_task)                                                                                                       \
    X(GOMP_taskloop)                                                                                                   \
    X(GOMP_taskloop_ull)                                                                                               \
    X(GOMP_taskwait)                                                                                                   \
    X(GOMP_taskgroup_end)                                                                                              \
    X(__kmpc_omp_task_alloc)                                                                                           \
    X(__kmpc_omp_taskwait)                                                                                             \
    X(__kmpc_end_taskgroup)                                                                                            \
    X(omp_get_num_threads)                                                                                             \
    X(omp_get_max_threads)

enum rec_openmp_name {
#define REC_OPENMP_NUMBER(name) REC_OPENMP_##name,
    REC_OPENMP_NAMES(REC_OPENMP_NUMBER) REC_OPENMP_N_NAMES
};

/* Of one run-time library, which stays loaded; NULL: it has no function of that name. */
struct rec_openmp_library {
    uintptr_t from, to; /* its addresses */
    bool has_regions;   /* or it is a program's library with a few functions of these names, as a lock of its own */
    sbt_function *functions[REC_OPENMP_N_NAMES];
};

/*
 * The run-time library of which the caller at `site` would have called the function of that name. `else_this`: the one
 * of the region that the caller is in, or NULL. It is the result if the site's object is not known and it has the name:
 * then the dynamic linker is not asked: a thread that waits for the caller may hold its lock. NULL: there is none.
 */
const struct rec_openmp_library *rec_openmp_library_of(enum rec_openmp_name name, const void *site,
                                                       const struct rec_openmp_library *else_this);

#endif
