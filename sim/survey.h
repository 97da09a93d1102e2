/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a walk through a trace has found. */
#ifndef SIM_SURVEY_H
#define SIM_SURVEY_H

#include "earliest.h"
#include "ranges.h"
#include "sim.h"

struct sim_survey {
    struct sim_bounds bounds;
    uint64_t *begins; /* when each thread without a creation in the trace begins; UINT64_MAX: it is created, or does
                         nothing */
    struct sim_ranges broadcasts; /* of conditions, by their numbers */
    struct sim_earliest earliest; /* the signals for which threads have waited in the walk */
};

#endif
