/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Traces become applications. sim_add is in sim.h. */
#ifndef SIM_APPLICATION_H
#define SIM_APPLICATION_H

#include "chip.h"

/* Give everything back but the application's results. */
void sim_application_trim(struct sim_app *app);
void sim_application_free(struct sim_app *app);

#endif
