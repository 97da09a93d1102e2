/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the module of futex_unseen_module.c offers to futex_unseen.c, which finds it by dlsym. */
#ifndef TESTS_POSIX_FUTEX_UNSEEN_H
#define TESTS_POSIX_FUTEX_UNSEEN_H

#include <stdint.h>

/* futex(2) by an instruction of the module's own: the kernel's result; `val2` is a number or a timeout. */
typedef long unseen_function(uint32_t *word, int op, uint32_t val, unsigned long val2, uint32_t *word2, uint32_t val3);
unseen_function unseen_futex;
/* The same by syscall(), called by the module. */
unseen_function unseen_futex_by_syscall;

#endif
