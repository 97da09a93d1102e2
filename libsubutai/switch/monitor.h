/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor: the kernel thread that looks whether carriers make progress. */
#ifndef SBT_SWITCH_MONITOR_H
#define SBT_SWITCH_MONITOR_H

/* The main function of the monitor's kernel thread (monitor.c). */
void *sbt_monitor_main(void *unused);

/* The process is about to ask for a notification of a message queue: the monitor closes no descriptor any more. */
void sbt_monitor_keep_descriptors(void);

#endif
