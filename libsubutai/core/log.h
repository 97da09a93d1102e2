/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages: one write(2) of one line, built on the stack, to stderr or to the file of option `log`; never to stdout. */
#ifndef SBT_CORE_LOG_H
#define SBT_CORE_LOG_H

#include <stdbool.h>

/* Write the strings up to NULL as one line, with "subutai: " before them. Longer lines are cut. Async-signal-safe. */
void sbt_log(unsigned verbosity, const char *first, ...) __attribute__((sentinel));

/* The process is about to forbid itself to open files: the file of option `log` is opened now, and stays open. */
void sbt_log_keep(void);

/*
 * The same at verbosity 1, for what need not be said more than once in a process tree: only the first process that says
 * such a line does. At verbosity 2 and more each process says it. The tree is what one call of the command has started:
 * it gives the tree a name (SBT_TREE, core/options.h). Without a name a process and those that it forks are a tree.
 * That the line was said is kept in an empty file, which the tree's first process removes when it ends; and for forked
 * processes, which may be in a sandbox without files, in memory that they share. sbt_log_may_say_in_tree, called once
 * at start where such lines may come, makes that memory. Without it the file alone counts.
 */
void sbt_log_may_say_in_tree(void);
void sbt_log_in_tree(const char *subject, const char *what, const char *why);
void sbt_log_process_ends(void);

/* Are messages of that verbosity written? */
bool sbt_log_is_on(unsigned verbosity);

#endif
