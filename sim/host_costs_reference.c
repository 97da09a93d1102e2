/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The costs of the reference machine: the text of reference.costs, which the build makes a string of. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_costs.h"

struct sim_host_costs sim_host_costs_reference(void) {
    struct sim_host_costs costs;
    char error[256];
    if (sim_host_costs_parse(sim_host_costs_reference_text, strlen(sim_host_costs_reference_text), &costs, error,
                             sizeof error) != 0) {
        fprintf(stderr, "subutai: the costs of the reference machine: %s\n", error);
        abort(); /* a unit test reads them: a build that has passed it does not come here */
    }
    return costs;
}
