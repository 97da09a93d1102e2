/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gains from the simulator. In a file without text/json.h, since jansson has a function of a name that is there too. */
#ifndef CMD_REPORT_PREDICT_H
#define CMD_REPORT_PREDICT_H

#include <stdbool.h>

/* Of the trace's time, the part (0 to 1) that waiting by switching would save. False: it could not be simulated; a line
 * on stderr says why. */
bool report_simulate(const char *path, double *gain);

#endif
