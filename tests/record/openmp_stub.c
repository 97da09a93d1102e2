/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library for programs that are built without OpenMP: it has locks by OpenMP's names, and futexes. */
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "openmp_stub.h"

static uint32_t word;

void stub_wait(void) {
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

void stub_wake(void) {
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void omp_set_lock(int *lock) {
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0)
        continue;
}

void omp_unset_lock(int *lock) {
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
