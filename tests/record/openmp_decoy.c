/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run-time library of another package's: its functions must not be called by a library that does not depend on it. */
#include <stdlib.h>

#define DECOY(name)                                                                                                    \
    void name(void);                                                                                                   \
    void name(void) {                                                                                                  \
        abort();                                                                                                       \
    }
DECOY(GOMP_parallel)
DECOY(GOMP_barrier)
DECOY(GOMP_loop_end)
DECOY(GOMP_critical_start)
DECOY(GOMP_critical_end)
DECOY(omp_get_num_threads)
DECOY(omp_get_max_threads)
