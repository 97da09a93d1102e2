/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For switch-walk, in place of libsubutai/switch/tuning.h. Where it does not say otherwise it takes that file's
 * numbers. A schedule must be short and reach every decision: so a search is a look or two, and what is counted is soon
 * many.
 */
#ifndef SWITCH_WALK_TUNING_H
#define SWITCH_WALK_TUNING_H

#include "../../../../libsubutai/switch/tuning.h"

#undef SEARCH_NS
#define SEARCH_NS 1
#undef LOOKS_PER_CLOCK
#define LOOKS_PER_CLOCK 1
#undef LOOK_GAP_PAUSES
#define LOOK_GAP_PAUSES 0
#undef PATIENCE
#define PATIENCE 2
#undef VAIN_NS
#define VAIN_NS 100000000 /* longer than any schedule: every find was in vain */
#undef VAIN_MANY
#define VAIN_MANY 1
#undef POPS_PER_COUNT
#define POPS_PER_COUNT 2
#undef FRESH_MOST
#define FRESH_MOST 1
#undef OWN_AFTER
#define OWN_AFTER 0
#undef OWN_LOOKS
#define OWN_LOOKS 0
#undef BATCH_MOST
#define BATCH_MOST 1
#undef QUIET_TICKS
#define QUIET_TICKS 2
#undef SHORT_RUNS
#define SHORT_RUNS 2

#endif
