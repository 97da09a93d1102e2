/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two ways in which a simulation fails: the run stops, or the chip cannot be made. */
#include "chip.h"

#include <stdarg.h>

void sim_fail(struct sim *sim, enum sim_status status, const char *format, ...) {
    if (sim->status != SIM_OK)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(sim->error.text, sizeof sim->error.text, format, list);
    va_end(list);
    sim->status = status;
}

enum sim_status sim_refuse(struct sim_error *error, enum sim_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    return status;
}
