/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mutex.h"

#include "run.h"

/* On a copy of its own, until the lock is free. */
static void spin(struct sim_program *p, uint32_t word) {
    do
        while (sim_load(p, word) != 0)
            sim_spin_while(p, word, 1);
    while (sim_compare_and_swap(p, word, 0, 1) != 0);
}

void atac_mutex_lock(uint32_t word) {
    struct sim_program *p = atac_chip();
    if (sim_compare_and_swap(p, word, 0, 1) == 0)
        return;
    if (atac_running()->mutexes_spin)
        spin(p, word);
    else
        while (sim_swap(p, word, 2) != 0)
            sim_futex_wait(p, word, 2);
}

void atac_mutex_unlock(uint32_t word) {
    if (sim_swap(atac_chip(), word, 0) == 2)
        sim_futex_wake(atac_chip(), word, 1);
}
