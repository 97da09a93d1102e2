/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For own-lock-walk, in place of libsubutai/switch/tuning.h. Each visit comes soon. */
#ifndef OWN_WALK_TUNING_H
#define OWN_WALK_TUNING_H

#include <stdint.h>

extern uint16_t own_walk_after; /* of the scenario */

#define OWN_AFTER own_walk_after
#define OWN_AFTER_MOST own_walk_after
#define OWN_SOON_IN_ALL_US 1
#define OWN_REST_US 0
#define OWN_LOOKS 0
#define OWN_GAP_NS 0

#endif
