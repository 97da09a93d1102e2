/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages: one write(2) of one line, built on the stack, to stderr or to the file of option `log`; never to stdout. */
#ifndef SBT_CORE_LOG_H
#define SBT_CORE_LOG_H

/* The strings up to NULL, joined, with "subutai: " before and a newline after. Longer lines are cut. Async-signal-safe.
 */
void sbt_log(unsigned verbosity, const char *first, ...) __attribute__((sentinel));

#endif
