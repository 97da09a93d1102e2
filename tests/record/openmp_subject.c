/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP programs with regions, barriers and sections in known numbers. usage: openmp-subject WHAT
 * Each prints OK if what it has computed is right: a barrier or section of the run-time library that did not get
 * through would show.
 */
#include "openmp_subject.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long plain[4]; /* under critical sections and a lock */

/* One explicit barrier, a loop and sections with barriers at their ends, two critical sections and a lock. */
bool regions(void) {
    omp_lock_t lock;
    int met[N_ROUNDS] = {0}, together = 0;
    long in_loop = 0, in_sections = 0;
    omp_init_lock(&lock);
    for (int round = 0; round < N_ROUNDS; round++) {
#pragma omp parallel num_threads(N_THREADS)
        {
#pragma omp atomic
            met[round]++;
#pragma omp barrier
            int seen;
#pragma omp atomic read
            seen = met[round];
#pragma omp critical
            plain[0] += seen == N_THREADS;
#pragma omp critical(of_the_sum)
            plain[1]++;
            omp_set_lock(&lock);
            plain[2]++;
            omp_unset_lock(&lock);
#pragma omp for schedule(dynamic, 3) reduction(+ : in_loop)
            for (int i = 0; i < 20; i++)
                in_loop += i;
#pragma omp sections reduction(+ : in_sections)
            {
#pragma omp section
                in_sections++;
#pragma omp section
                in_sections++;
            }
        }
#pragma omp atomic
        together++;
    }
    if (omp_test_lock(&lock) == 0 || omp_test_lock(&lock) != 0)
        return false;
    omp_unset_lock(&lock);
    omp_destroy_lock(&lock);
    return plain[0] == N_ROUNDS * N_THREADS && plain[1] == plain[0] && plain[2] == plain[0] &&
           in_loop == N_ROUNDS * 190 && in_sections == 2 * N_ROUNDS && together == N_ROUNDS;
}

/* A nested lock is taken twice by a thread, or tried when it is held. */
static bool nest(void) {
    omp_nest_lock_t lock;
    long n = 0, n_tried = 0;
    bool right = true;
    omp_init_nest_lock(&lock);
#pragma omp parallel num_threads(N_THREADS) reduction(+ : n_tried) reduction(&& : right)
    for (int i = 0; i < N_ROUNDS; i++) {
        omp_set_nest_lock(&lock);
        omp_set_nest_lock(&lock);
        n++;
        right = right && omp_test_nest_lock(&lock) == 3;
        for (int k = 0; k < 3; k++)
            omp_unset_nest_lock(&lock);
        if (omp_test_nest_lock(&lock) == 1) {
            omp_set_nest_lock(&lock);
            n_tried++;
            omp_unset_nest_lock(&lock);
            omp_unset_nest_lock(&lock);
        }
    }
    right = right && omp_test_nest_lock(&lock) == 1 && n == (long)N_THREADS * N_ROUNDS && n_tried >= 0;
    omp_unset_nest_lock(&lock);
    omp_destroy_nest_lock(&lock);
    fprintf(stderr, "%ld\n", n + n_tried + 1);
    return right;
}

/* Sections of a loop in the order of its rounds. */
static bool ordered(void) {
    long n = 0;
    bool right = true;
#pragma omp parallel for ordered schedule(dynamic) num_threads(N_THREADS)
    for (int i = 0; i < 2 * N_ROUNDS; i++)
#pragma omp ordered
        right = right && n++ == i;
    return right && n == 2 * N_ROUNDS;
}

/* Two teams are in ordered sections at once: the first section of each waits for the other's. */
static bool ordered_teams(void) {
    int n[2] = {0}, n_within = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        int *mine = &n[omp_get_thread_num()];
#pragma omp parallel for ordered schedule(static, 1) num_threads(2)
        for (int i = 0; i < N_ROUNDS; i++)
#pragma omp ordered
        {
            *mine += *mine == i;
            __atomic_fetch_add(&n_within, i == 0, __ATOMIC_RELAXED);
            while (__atomic_load_n(&n_within, __ATOMIC_RELAXED) < 2)
                usleep(100);
        }
    }
    return n[0] == N_ROUNDS && n[1] == N_ROUNDS;
}

/* Reductions in loops of teams that clang's run-time library reduces in different ways. */
static bool reductions(void) {
    long n = 0, most = 0;
    for (int round = 0; round < 2 * N_ROUNDS; round++)
#pragma omp parallel num_threads(2 + 4 * (round % 2))
    {
#pragma omp for reduction(+ : n) reduction(max : most)
        for (int i = 0; i < 20; i++) {
            n += i;
            most = most > i ? most : i;
        }
    }
    return n == 2 * N_ROUNDS * 190 && most == 19;
}

/* More variables than there are registers for arguments, and regions of one thread with barriers. */
static bool many(void) {
    long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, k = 10, sum = 0;
    double x = 0.5, y = 0.25;
#pragma omp parallel num_threads(N_THREADS) firstprivate(a, b, c, d, e, f, g, x) reduction(+ : sum)
    {
        a += omp_get_thread_num();
        sum += a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * k + (long)(x + 3 * y);
        if (omp_get_thread_num() == 1) {
#pragma omp parallel if (sum < 0)
            {
#pragma omp barrier
#pragma omp atomic
                h += 0;
            }
        }
#pragma omp barrier
    }
    return sum == N_THREADS * 386 + 6;
}

/* Teams of three sizes at one place. */
static bool sizes(void) {
    int n = 0;
    for (int round = 0; round < 3 * N_ROUNDS; round++)
#pragma omp parallel num_threads(2 + round % 3)
    {
#pragma omp atomic
        n++;
#pragma omp barrier
    }
    return n == N_ROUNDS * (2 + 3 + 4);
}

/* Each thread of a team has a team of its own. */
static bool nested(void) {
    int n = 0;
    omp_set_max_active_levels(2);
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(2)
        {
#pragma omp barrier
#pragma omp atomic
            n++;
        }
#pragma omp barrier
#pragma omp atomic
        n++;
    }
    return n == 6 * N_ROUNDS;
}

/* One region. At its end the workers wait until the program ends. */
bool once(void) {
    int n = 0;
#pragma omp parallel num_threads(N_THREADS)
    {
#pragma omp atomic
        n++;
    }
    return n == N_THREADS;
}

/* Regions of one thread wait for no other. */
static bool alone(void) {
    int n = 0;
    for (int i = 0; i < N_ROUNDS; i++)
#pragma omp parallel num_threads(1)
    {
#pragma omp barrier
#pragma omp critical
        n++;
    }
    return n == N_ROUNDS;
}

/* The compiler may call the run-time library at two places for one barrier. */
extern void GOMP_barrier(void);
static bool doubled(void) {
    int n = 0;
#pragma omp parallel num_threads(2)
    for (int round = 0; round < N_ROUNDS; round++) {
        if (omp_get_thread_num() == round % 2) {
            GOMP_barrier();
#pragma omp atomic
            n += 2;
        } else {
            __asm__ volatile("" : : : "memory"); /* or the compiler makes one call of the two */
            GOMP_barrier();
            __asm__ volatile("" : : : "memory");
#pragma omp atomic
            n++;
        }
    }
    return n == 3 * N_ROUNDS;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        bool (*run)(void);
    } all[] = {{"regions", regions},
               {"sizes", sizes},
               {"nested", nested},
               {"once", once},
               {"tasks", tasks},
               {"kinds", kinds},
               {"detached", detached},
               {"task_waits", task_waits},
               {"tasks_at_once", tasks_at_once},
               {"task_times", task_times},
               {"short_tasks", short_tasks},
               {"deep", deep},
               {"alone", alone},
               {"doubled", doubled},
               {"handlers", handlers},
               {"in_tasks", in_tasks},
               {"threads", threads},
               {"forks", forks},
               {"ends", ends},
               {"errors", errors},
               {"errors_end", errors_end},
               {"nest", nest},
               {"ordered", ordered},
               {"reductions", reductions},
               {"many", many},
               {"ordered_teams", ordered_teams},
               {"reductions_in_tasks", reductions_in_tasks}};
    omp_set_dynamic(0);
    for (size_t i = 0; argc == 2 && i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].name) == 0) {
            bool right = all[i].run();
            puts(right ? "OK" : "wrong");
            return right ? 0 : 1;
        }
    return 2;
}
