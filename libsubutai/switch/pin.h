/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a fiber leaves its home thread and comes back (pin.c). What pins it there is in switch.h. */
#ifndef SBT_SWITCH_PIN_H
#define SBT_SWITCH_PIN_H

#include "switch/fiber.h"

/* Let the fiber's home thread run it. The caller owns the fiber, and the fiber does not run. */
void sbt_pin_send_home(struct sbt_fiber *f);

/* Leave the home thread. Returns on a carrier, which is the result; NULL: it returns on the home thread. */
struct sbt_carrier *sbt_pin_leave_home(struct sbt_fiber *f, enum sbt_leaving why);

/* The fiber runs on its home thread again. Signals that are pending there are handled within the call. */
void sbt_pin_arrived(struct sbt_fiber *f);

#endif
