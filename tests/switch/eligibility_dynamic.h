/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of one program share. It plays what a program does when it has been waiting by switching for a while:
 * it loads code, looks functions up, changes its kernel threads or asks the kernel for something. One scene per run.
 */
#ifndef SWITCH_ELIGIBILITY_DYNAMIC_H
#define SWITCH_ELIGIBILITY_DYNAMIC_H

#include "scene.h"

#define ROUNDS 200

static atomic_int n_moved, n_strays;
static void (*deed)(void); /* of thread 0, while the others are away */

/* ---- one does it, and the others go on: do they still move, or are they all at home? ---- */
static inline void *meet_and_watch(void *number) {
    long first = proc_kernel_thread();
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 0)
        deed();
    meet();
    for (int i = 0; i < ROUNDS; i++) {
        bool away = proc_kernel_thread() != first;
        moved = moved || away;
        if (away && (long)number != 0)
            atomic_fetch_add(&n_strays, 1);
        meet();
    }
    atomic_fetch_add(&n_moved, moved);
    return number;
}

static inline void all_meet(void (*what)(void), bool ends) {
    deed = what;
    run(N, meet_and_watch);
    printf("%d threads ran on another's kernel thread afterwards, %d times\n", n_moved, n_strays);
    CHECK(getenv("SWITCHED") == NULL || (n_strays == 0) == ends);
}

/* ---- scenes of eligibility_clone.c ---- */

void children(void);
void clones_processes(void);
void clones_by_number(void);
void clones_as_vfork(void);
void clones_beside(void);
void ends_for_a_thread_of_clone(void);

/* ---- scenes of eligibility_filter.c ---- */

void ends_for_a_filter(void);
void filters_single_threads(void);
void filtered_one_wakes(void);
void asks_for_filters(void);
void filtered(void);
void filtered_by_number(void);
void filtered_from_the_start(void);

/* ---- scenes of eligibility_credentials.c ---- */

void ends_for_credentials(void);
void ends_for_credentials_in_a_handler(void);
void credentials_in_a_child(void);

#endif
