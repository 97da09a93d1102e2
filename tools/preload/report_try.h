/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Advice tried out: the program run by `subutai compare`. Without text/json.h, as report_predict.h. */
#ifndef CMD_REPORT_TRY_H
#define CMD_REPORT_TRY_H

#include "report_print.h"

/*
 * Runs the command line (words.h) under REPORT_TRY_ENGINES, and with the lock of that name delegated if it is not NULL,
 * which takes as long as the program does, many times. False: it was not measured; a line on stderr says why.
 */
bool report_try(const char *command, const char *lock, struct report_tried *tried);

#endif
