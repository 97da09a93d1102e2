/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gains from the simulator. In a file without text/json.h, since jansson has a function of a name that is there too. */
#ifndef CMD_REPORT_PREDICT_H
#define CMD_REPORT_PREDICT_H

struct sbt_trace;
struct rep_report;

/*
 * For each advice of the trace at `path` what it would save, from the simulator, or why that cannot be said. Of what
 * cannot be simulated although it should be, a line on stderr says why.
 */
void report_simulate(const char *path, const struct sbt_trace *trace, struct rep_report *report);

#endif
