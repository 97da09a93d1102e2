/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPython's interpreter lock (GIL) in a trace. */
#ifndef CMD_PYTHON_LOCK_H
#define CMD_PYTHON_LOCK_H

#include "report.h"

/*
 * The interpreter's variable _PyRuntime. Of pthread's objects it has the lock's two conditions, with a mutex each, and
 * no others, since 3.7, the first version with that variable: all other locks of CPython's are elsewhere, or of its own
 * making. Size 0: the program has none.
 */
#define PYTHON_LOCK_IN "_PyRuntime"
struct rep_region python_lock_of(const struct sbt_trace *trace);

#endif
