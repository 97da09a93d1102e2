/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The costs of the reference machine: the text of reference.costs, which the build makes a string of. */
#include <stdio.h>
#include <stdlib.h>

#include "host_costs.h"

static const char reference[] =
#include "reference_costs.inc"
    ;

struct sim_host_costs sim_host_costs_reference(void) {
    struct sim_host_costs costs;
    char error[256];
    if (sim_host_costs_parse(reference, sizeof reference - 1, &costs, error, sizeof error) != 0) {
        fprintf(stderr, "subutai: the costs of the reference machine: %s\n", error);
        abort(); /* a unit test reads them: a build that has passed it does not come here */
    }
    return costs;
}
