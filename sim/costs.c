/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The constants of the software-only model (section III-C of the paper).
 */
#include "costs.h"

struct sim_costs sim_costs_default(void) {
    return (struct sim_costs){.attempt_ns = 1500,
                              .futex_ns = 3000,
                              .kernel_ns = 0,
                              .wake_ns = 4000,
                              .resume_ns = 10000,
                              .line_flits = 18,
                              .switch_ns = 1000,
                              .patience_ns = 1000};
}
