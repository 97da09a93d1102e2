/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a trace would be if the program followed an advice: for the simulator, which says how long each takes. The
 * changed trace has no times of day, and what bound its threads but the change stays as it was. docs/report.md says
 * what each change is.
 */
#ifndef REP_CHANGE_H
#define REP_CHANGE_H

#include "report.h"

enum { REP_SPLIT = 4, REP_BATCH = 10 }; /* a lock becomes so many; so many locks become one */

/* NULL: rep_change_write can change the trace as the advice says. Else why it cannot, in a few words. */
const char *rep_change_refused(const struct rep_report *report, const struct rep_advice *advice);

/* Is the advice about sleeps, so that both traces have those outside of calls as events? */
bool rep_change_has_sleeps(const struct rep_advice *advice);

/*
 * Writes the trace to `path`: as it is, or `changed` as the advice says. 0 or an errno value; EILSEQ: the trace is
 * damaged. May block on the file. `progress` may be NULL.
 */
int rep_change_write(const struct sbt_trace *trace, const struct rep_report *report, const struct rep_advice *advice,
                     bool changed, const char *path, rep_progress *progress, void *to);

#endif
