/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_LIB_CPUS_H
#define TESTS_LIB_CPUS_H

/* The caller and the threads it creates from now on: a woken thread does not run until another one waits. */
void stay_on_one_cpu(void);

#endif
