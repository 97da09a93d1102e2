/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tasks of openmp-subject, in known numbers. */
#include "openmp_subject.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Works for so long at least. */
static void work(uint64_t us) {
    uint64_t begin_ns = now_ns();
    while (now_ns() - begin_ns < us * 1000)
        ;
}

/* Tasks run in threads that wait at barriers, and take locks there. */
bool tasks(void) {
    long n = 0;
#pragma omp parallel num_threads(N_THREADS)
#pragma omp single
    for (int i = 0; i < 1000; i++)
#pragma omp task
#pragma omp critical
        n++;
    return n == 1000;
}

struct aligned {
    _Alignas(64) long of[8];
};

#ifdef __clang__ /* knows no such array in a task */
#define LENGTH_OF_VARIABLE 5
#else /* for which the compiler writes a function that copies the task's data */
#pragma GCC diagnostic ignored "-Wvla"
#define LENGTH_OF_VARIABLE n_long
#endif

/* Tasks of which the run-time library copies the data in different ways: tasks of all sorts, and loops of tasks. */
static bool kinds_of_tasks(int n_long) {
    enum { N = 40 };
    long sum = 0, ordered_sum = 0, reduced = 0, in_loop = 0, in_big_loop = 0, several = 0, at_once = 0;
    long variable[LENGTH_OF_VARIABLE];
    struct aligned big = {{0}};
    bool right = true;
    for (int i = 0; i < n_long; i++)
        variable[i] = i;
    big.of[7] = 7;
#pragma omp parallel num_threads(N_THREADS)
#pragma omp single
    {
        for (int i = 0; i < N; i++) {
#pragma omp task firstprivate(variable, big, i) untied
            {
                if ((uintptr_t)&big % 64 != 0 || big.of[7] != 7 || variable[n_long - 1] != n_long - 1)
#pragma omp atomic write
                    right = false;
                variable[i % n_long] = big.of[i % 8] = -1; /* its own */
#pragma omp atomic
                sum += i;
            }
            /* Not with `if` too: LLVM's library before 19 then keeps a node on the stack that another thread uses after
             * the task (llvm-project issue 85963), which may end the program by an assertion. */
#pragma omp task final(i % 3 == 0) priority(i % 2) depend(out : ordered_sum)
            ordered_sum = ordered_sum == i ? i + 1 : -N;
#pragma omp task if (i % 2 == 0)
#pragma omp atomic
            at_once++;
        }
#pragma omp taskgroup task_reduction(+ : reduced)
        for (int i = 0; i < N; i++)
#pragma omp task in_reduction(+ : reduced)
            reduced += i;
#pragma omp taskloop grainsize(3) firstprivate(variable) shared(in_loop)
        for (int i = 0; i < N; i++)
#pragma omp atomic
            in_loop += i + variable[n_long - 1] - (n_long - 1);
#pragma omp taskloop num_tasks(7) nogroup shared(in_big_loop)
        for (unsigned long long i = 0; i < N; i++)
#pragma omp atomic
            in_big_loop += (long)i;
#pragma omp taskloop if (n_long < 0) reduction(+ : several)
        for (long i = 0; i < N; i++)
            several += i;
    }
    const long all = N * (N - 1) / 2;
    return right && sum == all && ordered_sum == N && reduced == all && in_loop == all && in_big_loop == all &&
           several == all && at_once == N;
}

/* A task that is over when an event has come. LLVM's library knows no such tasks of gcc's, and not that name. */
bool detached(void) {
    void (*fulfill)(omp_event_handle_t);
    int n = 0;
    *(void **)(void *)&fulfill = dlsym(RTLD_DEFAULT, "omp_fulfill_event");
#pragma omp parallel num_threads(N_THREADS)
#pragma omp single
    for (int i = 0; i < N_ROUNDS; i++) {
        omp_event_handle_t event;
#pragma omp task detach(event) firstprivate(i) shared(n)
        {
            n += n == i;
            fulfill(event);
        }
#pragma omp taskwait
    }
    return n == N_ROUNDS;
}

/* More tasks than there is room for on a stack, run at once: the data of each is made when its turn comes. */
static bool many_in_a_loop(void) {
    enum { MANY = 100000 };
    long n = 0, n_in_team = 0;
#pragma omp taskloop grainsize(1) shared(n)
    for (int i = 0; i < MANY; i++)
        n++;
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp taskloop grainsize(1) shared(n_in_team)
    for (int i = 0; i < MANY; i++)
#pragma omp atomic
        n_in_team++;
    return n == MANY && n_in_team == MANY;
}

bool kinds(void) {
    return kinds_of_tasks(5) && many_in_a_loop();
}

/* Does the thread sleep? */
static bool sleeps(long tid) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", tid);
    FILE *f = fopen(path, "r");
    const char *end = f != NULL && fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
    if (f != NULL)
        fclose(f);
    return end != NULL && strncmp(end, ") S", 3) == 0;
}

/* In each round one thread sleeps at a barrier until it gets a task, and the other one then sleeps until that is over.
 */
bool task_waits(void) {
    enum { N_WAITS = 5 };
    int n = 0;
    for (int round = 0; round < N_WAITS; round++) {
        long tids[2] = {0};
#pragma omp parallel num_threads(2)
        {
            const long tid = syscall(SYS_gettid);
            __atomic_store_n(&tids[omp_get_thread_num()], tid, __ATOMIC_RELEASE);
#pragma omp single
            {
                const long *other = &tids[1 - omp_get_thread_num()];
                int begun = 0;
                for (int n_asleep = 0; n_asleep < 5; usleep(100)) /* and not in a short sleep of the recorder's */
                    n_asleep = sleeps(__atomic_load_n(other, __ATOMIC_ACQUIRE)) ? n_asleep + 1 : 0;
#pragma omp task shared(begun, n)
                {
                    __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
                    while (!sleeps(tid))
                        usleep(100);
                    n++;
                }
                while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) == 0)
                    __asm__ volatile("" : : : "memory");
#pragma omp taskwait
            }
        }
    }
    return n == N_WAITS;
}

/* Undeferred tasks in a task that a thread runs while it waits. It does not wait in between. */
bool tasks_at_once(void) {
    int n = 0;
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(2)
#pragma omp single
        for (int i = 0; i < 4; i++)
#pragma omp task shared(n)
            for (int k = 0; k < 20; k++) {
                work(5);
#pragma omp task if (k < 0) shared(n)
#pragma omp atomic
                n++;
            }
    return n == N_ROUNDS * 80;
}

static void add_since(uint64_t *sum_ns, uint64_t begin_ns) {
    __atomic_fetch_add(sum_ns, now_ns() - begin_ns, __ATOMIC_RELAXED);
}

/* Tasks within each other, which work around the others' time. How long: on standard error. */
bool task_times(void) {
    uint64_t inner_ns = 0, outer_ns = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 6; i++)
#pragma omp task shared(inner_ns, outer_ns)
    {
        uint64_t begin_ns = now_ns();
        work(2000);
        for (int k = 0; k < 5; k++)
#pragma omp task shared(inner_ns)
        {
            uint64_t inner_begin_ns = now_ns();
            work(1000);
            add_since(&inner_ns, inner_begin_ns);
        }
        add_since(&outer_ns, begin_ns);
#pragma omp taskwait
        begin_ns = now_ns();
        work(2000);
        add_since(&outer_ns, begin_ns);
    }
    fprintf(stderr, "%ju %ju\n", (uintmax_t)outer_ns, (uintmax_t)inner_ns);
    return inner_ns != 0;
}

/* Many tasks of no length in a task that waits for some at a time: its own time, to which the waits do not belong. */
bool short_tasks(void) {
    uint64_t outer_ns = 0;
    int n = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
#pragma omp task shared(outer_ns, n)
    for (int round = 0; round < 1500; round++) {
        uint64_t begin_ns = now_ns();
        work(5);
        for (int k = 0; k < 100; k++)
#pragma omp task shared(n)
        {
#pragma omp atomic
            n++;
        }
        add_since(&outer_ns, begin_ns);
#pragma omp taskwait
    }
    fprintf(stderr, "%ju 0\n", (uintmax_t)outer_ns);
    return n == 150000;
}

/* Tasks that have one task each: deeper than there is room for if each takes a good deal more of the stack. */
static void descend(int depth, bool at_once, bool waits, int *n) {
    if (depth == 0)
        return;
#pragma omp task if (!at_once) firstprivate(depth, at_once, waits)
    {
#pragma omp atomic
        ++*n;
        descend(depth - 1, at_once, waits, n);
    }
    if (waits) {
#pragma omp taskwait
    }
}

bool deep(void) {
    enum { DEPTH = 10000 };
    int n = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        descend(DEPTH, true, false, &n);
        descend(DEPTH, true, true, &n);
        descend(DEPTH, false, true, &n);
    }
    return n == 3 * DEPTH;
}

/* A task that runs in a thread at the end of a region has a region of its own. */
bool in_tasks(void) {
    long n = 0, n_tasks = 0;
    omp_set_max_active_levels(2);
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(N_THREADS)
    {
#pragma omp single nowait
        for (int i = 0; i < 40; i++)
#pragma omp task
        {
            if (i % 10 == 0) {
#pragma omp parallel num_threads(2)
                {
#pragma omp barrier
#pragma omp atomic
                    n++;
                }
            }
#pragma omp critical
            n_tasks++;
        }
    }
    return n == N_ROUNDS * 8 && n_tasks == N_ROUNDS * 40;
}

/* Tasks that threads run while they wait at the end of a reduction have regions with reductions of their own. */
bool reductions_in_tasks(void) {
    long n = 0, inner = 0;
    omp_set_max_active_levels(2);
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == round % 2)
            for (int task = 0; task < 4; task++)
#pragma omp task shared(inner)
            {
                long mine = 0;
#pragma omp parallel num_threads(3) shared(mine)
                {
#pragma omp for reduction(+ : mine)
                    for (int i = 0; i < 20; i++)
                        mine += i;
                }
#pragma omp atomic
                inner += mine;
            }
#pragma omp for reduction(+ : n)
        for (int i = 0; i < 20; i++)
            n += i;
    }
    return n == N_ROUNDS * 190 && inner == 4 * n;
}
