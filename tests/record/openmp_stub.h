/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See openmp_stub.c. */
#ifndef TESTS_RECORD_OPENMP_STUB_H
#define TESTS_RECORD_OPENMP_STUB_H

void omp_set_lock(int *lock);
void omp_unset_lock(int *lock);
void stub_wait(void);
void stub_wake(void);

#endif
