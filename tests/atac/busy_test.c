/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A machine on which other processes have the cores most of the time: a thread that yields is without one for as long
 * as their turns take. Here each yield takes that long, whatever else runs.
 */
#include <sched.h>
#include <time.h>

#include "programs.h"

int sched_yield(void) {
    struct timespec turns = {.tv_nsec = 5000000};
    return nanosleep(&turns, NULL);
}

TEST_EACH(each_task_is_run_once, ATAC_N_PILES, "with the model's delays, nine threads on two cores") {
    int kind = number;
    ATAC_options o = options_of(2, 2);
    o.number_of_threads = n = 9;
    passes_stealing(&o, &kind);
}
