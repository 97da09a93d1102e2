/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP by the entry points of LLVM's run-time library that clang's code calls: regions, barriers, reductions,
 * critical and ordered sections. (omp_set_lock and its like are in openmp_lock.c.) LLVM's library calls some of these
 * functions itself, as part of what gcc's code has called; such calls are passed on.
 *
 * A region's code is a function of as many arguments as there are variables, which the run-time library calls with
 * pointers that it has been given. It is given one: the region, which has the others.
 *
 * A reduction that waits ends with a barrier. How it waits is the run-time library's choice, and shows by what it
 * says that the thread has to do:
 *  - With few threads each adds to the variable and then calls __kmpc_end_reduce, where all threads meet.
 *  - With more of them threads meet in __kmpc_reduce. All but one have nothing more to do there. That one adds, and its
 *    call of __kmpc_end_reduce lets the others go on.
 *
 * A program may ask whether there is a run-time library by whether there are these functions. Without one they do what
 * code of one thread needs: a region's code runs once, a reduction adds, nothing waits.
 */
#include <stdarg.h>
#include <string.h>

#include "observe/openmp_inner.h"
#include "os/unwind.h"

enum { FEW_THREADS = 4, N_REGISTERS = 8 };

typedef void microtask(int *thread, int *in_team, ...);

struct call {
    struct rec_openmp_region region;
    microtask *task;
    void **args;
    int n;
    bool is_inner; /* of the run-time library's own */
};

/* The run-time library's function, by its type. */
#define REAL(type, name, site) ((type *)rec_openmp_real(REC_OPENMP_##name, site))

/* As that, of a call that begins a region: of the site's own library, in whatever region that is. */
#define REAL_AT(type, name, site) ((type *)real_at(REC_OPENMP_##name, site))

static sbt_function *real_at(enum rec_openmp_name name, const void *site) {
    const struct rec_openmp_library *library = rec_openmp_library_at(name, site);
    return library != NULL ? library->functions[name] : NULL;
}

static bool is_of_this_library(const void *site) {
    static uintptr_t bytes; /* atomic; each thread finds the same */
    uintptr_t n = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
    if (SBT_UNLIKELY(n == 0)) {
        n = sbt_find_own_code_bytes();
        __atomic_store_n(&bytes, n, __ATOMIC_RELAXED);
    }
    return (uintptr_t)site - (uintptr_t)__ehdr_start < n;
}

/*
 * A call by a run-time library itself, which is known since its function was found. Where that is a jump it seems to
 * come from this library, which has called the run-time library's function; but the program's last call of a region
 * seems to, as well.
 */
bool rec_openmp_is_inner(const void *site) {
    if (is_of_this_library(site))
        return !rec_openmp_is_jump(site);
    return rec_openmp_is_library(site);
}

bool rec_openmp_is_invoked(const void *site) {
    enum { LENGTH = 256 }; /* of the function, at least */
    return (uintptr_t)site - (uintptr_t)rec_openmp_invoke < LENGTH;
}

/* ---- regions ---- */

static void run_task(int *thread, int *in_team, struct call *c) {
    struct rec_openmp_place outer;
    if (!c->is_inner)
        rec_openmp_enter_region(&c->region, &outer);
    rec_openmp_invoke(c->task, thread, in_team, c->args, c->n);
    if (!c->is_inner)
        rec_openmp_leave_region(&c->region, &outer);
}

typedef void fork_call(void *place, int n, microtask *task, ...);
SBT_EXPORT fork_call __kmpc_fork_call;
void __kmpc_fork_call(void *place, int n, microtask *task, ...) {
    const void *site = REC_SITE_HERE;
    const struct rec_openmp_library *library = rec_openmp_library_at(REC_OPENMP___kmpc_fork_call, site);
    struct call c = {.task = task, .n = n, .is_inner = rec_openmp_is_inner(site), .region.library = library};
    va_list args;
    c.args = __builtin_alloca((size_t)(n + N_REGISTERS) * sizeof *c.args);
    va_start(args, task);
    for (int i = 0; i < n; i++)
        c.args[i] = va_arg(args, void *);
    va_end(args);
    memset(&c.args[n], 0, N_REGISTERS * sizeof *c.args);
    if (library == NULL) {
        int zero = 0;
        rec_openmp_invoke(task, &zero, &zero, c.args, n);
        return;
    }
    if (!c.is_inner) {
        memcpy(&c.region.body, &task, sizeof task);
        rec_openmp_begin_region(&c.region, rec_openmp_self.n_asked, site);
        rec_openmp_self.n_asked = 0;
    }
    ((fork_call *)library->functions[REC_OPENMP___kmpc_fork_call])(place, 1, (microtask *)(sbt_function *)run_task, &c);
    rec_openmp_end_region(&c.region);
}

typedef void push_number(void *place, int thread, int n);
SBT_EXPORT push_number __kmpc_push_num_threads;
void __kmpc_push_num_threads(void *place, int thread, int n) {
    const void *site = REC_SITE_HERE;
    push_number *real = REAL_AT(push_number, __kmpc_push_num_threads, site);
    rec_openmp_self.n_asked = n > 0 && real != NULL && !rec_openmp_is_inner(site) ? (unsigned)n : 0;
    if (real != NULL)
        real(place, thread, n);
}

/* A region of one thread, which the thread runs itself. Its barriers are not those of the region around it. */
typedef void at_place(void *place, int thread);
SBT_EXPORT at_place __kmpc_serialized_parallel, __kmpc_end_serialized_parallel;
void __kmpc_serialized_parallel(void *place, int thread) {
    const void *site = REC_SITE_HERE;
    at_place *real = REAL_AT(at_place, __kmpc_serialized_parallel, site);
    rec_openmp_self.in.n_serial += !rec_openmp_is_inner(site);
    rec_openmp_self.n_asked = 0; /* it was asked for this one */
    if (real != NULL)
        real(place, thread);
}

void __kmpc_end_serialized_parallel(void *place, int thread) {
    const void *site = REC_SITE_HERE;
    at_place *real = REAL_AT(at_place, __kmpc_end_serialized_parallel, site);
    rec_openmp_self.in.n_serial -= rec_openmp_self.in.n_serial > 0 && !rec_openmp_is_inner(site);
    if (real != NULL)
        real(place, thread);
}

/* ---- barriers ---- */

static void meet(struct rec_call *c, const void *site) {
    c->thread = NULL;
    c->said_to_wait_for = NULL;
    if (!rec_openmp_is_inner(site))
        rec_openmp_meet(c, site);
}

SBT_EXPORT at_place __kmpc_barrier;
void __kmpc_barrier(void *place, int thread) {
    const void *site = REC_SITE_HERE;
    at_place *real = REAL(at_place, __kmpc_barrier, site);
    struct rec_call c;
    meet(&c, site);
    if (real != NULL)
        real(place, thread);
    rec_openmp_met(&c);
}

typedef int cancel_barrier(void *place, int thread);
SBT_EXPORT cancel_barrier __kmpc_cancel_barrier;
int __kmpc_cancel_barrier(void *place, int thread) {
    const void *site = REC_SITE_HERE;
    cancel_barrier *real = REAL(cancel_barrier, __kmpc_cancel_barrier, site);
    struct rec_call c;
    meet(&c, site);
    int cancelled = real != NULL ? real(place, thread) : 0;
    rec_openmp_met(&c);
    return cancelled;
}

typedef int reduce(void *place, int thread, int n, size_t size, void *data, void (*add)(void *, void *), void *lock);
SBT_EXPORT reduce __kmpc_reduce;
int __kmpc_reduce(void *place, int thread, int n, size_t size, void *data, void (*add)(void *, void *), void *lock) {
    const void *site = REC_SITE_HERE;
    reduce *real = REAL(reduce, __kmpc_reduce, site);
    struct rec_openmp_place *in = &rec_openmp_self.in;
    bool is_recorded = !rec_openmp_is_inner(site), meets = is_recorded && in->n_threads > FEW_THREADS;
    if (meets)
        meet(&in->reduction, site);
    int result = real != NULL ? real(place, thread, n, size, data, add, lock) : 1;
    if (is_recorded && result == 0) {
        if (!meets)
            meet(&in->reduction, site);
        rec_openmp_met(&in->reduction);
    }
    in->reduces = meets && result != 0;
    return result;
}

typedef void end_reduce(void *place, int thread, void *lock);
SBT_EXPORT end_reduce __kmpc_end_reduce;
void __kmpc_end_reduce(void *place, int thread, void *lock) {
    const void *site = REC_SITE_HERE;
    end_reduce *real = REAL(end_reduce, __kmpc_end_reduce, site);
    struct rec_openmp_place *in = &rec_openmp_self.in;
    if (!in->reduces)
        meet(&in->reduction, site);
    in->reduces = false;
    if (real != NULL)
        real(place, thread, lock);
    rec_openmp_met(&in->reduction);
}

/* ---- sections ---- */

static void pass_or(void (*record)(const struct rec_openmp_section *), const struct rec_openmp_section *s) {
    sbt_function *real = rec_openmp_real(s->name, s->site);
    if (real == NULL)
        return;
    if (!rec_openmp_is_inner(s->site))
        record(s);
    else if (s->form == REC_OPENMP_AT_PLACE)
        ((at_place *)real)(s->place, s->thread);
    else
        ((end_reduce *)real)(s->place, s->thread, s->object);
}

#define SECTION(name, record)                                                                                          \
    SBT_EXPORT end_reduce name;                                                                                        \
    void name(void *place, int thread, void *lock) {                                                                   \
        const struct rec_openmp_section s = {                                                                          \
            lock, REC_SITE_HERE, REC_OPENMP_##name, REC_OPENMP_AT_PLACE_OF_OBJECT, place, thread, 0};                  \
        pass_or(record, &s);                                                                                           \
    }
#define ORDERED(name, record)                                                                                          \
    SBT_EXPORT at_place name;                                                                                          \
    void name(void *place, int thread) {                                                                               \
        const struct rec_openmp_section s = {                                                                          \
            rec_openmp_ordered(), REC_SITE_HERE, REC_OPENMP_##name, REC_OPENMP_AT_PLACE, place, thread, 0};            \
        pass_or(record, &s);                                                                                           \
    }
SECTION(__kmpc_critical, rec_openmp_enter_section)
SECTION(__kmpc_end_critical, rec_openmp_leave_section)
ORDERED(__kmpc_ordered, rec_openmp_enter_section)
ORDERED(__kmpc_end_ordered, rec_openmp_leave_section)

SBT_EXPORT void __kmpc_critical_with_hint(void *place, int thread, void *lock, uint32_t hint);
void __kmpc_critical_with_hint(void *place, int thread, void *lock, uint32_t hint) {
    const struct rec_openmp_section s = {
        lock, REC_SITE_HERE, REC_OPENMP___kmpc_critical_with_hint, REC_OPENMP_WITH_HINT, place, thread, hint};
    rec_openmp_enter_section(&s);
}
