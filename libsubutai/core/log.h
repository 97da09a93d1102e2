/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages: one write(2) of one line, built on the stack, to stderr or to the file of option `log`; never to stdout. */
#ifndef SBT_CORE_LOG_H
#define SBT_CORE_LOG_H

/* Write the strings up to NULL as one line, with "subutai: " before them. Longer lines are cut. Async-signal-safe. */
void sbt_log(unsigned verbosity, const char *first, ...) __attribute__((sentinel));

#endif
