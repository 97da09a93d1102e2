/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "mutex.h"

#include "machine.h"

/* On a copy of its own, until the lock is free. */
static void spin(uint32_t word) {
    do
        while (atac_machine->load(word) != 0)
            atac_machine->spin_while(word, 1);
    while (atac_machine->compare_and_swap(word, 0, 1) != 0);
}

void atac_mutex_lock(uint32_t word) {
    if (atac_machine->compare_and_swap(word, 0, 1) == 0)
        return;
    if (atac_running.mutexes_spin)
        spin(word);
    else
        while (atac_machine->swap(word, 2) != 0)
            atac_machine->futex_wait(word, 2);
}

void atac_mutex_unlock(uint32_t word) {
    if (atac_machine->swap(word, 0) == 2)
        atac_machine->futex_wake(word, 1);
}
