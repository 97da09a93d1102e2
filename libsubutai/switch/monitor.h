/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The monitor: the kernel thread that looks whether carriers make progress. */
#ifndef SBT_SWITCH_MONITOR_H
#define SBT_SWITCH_MONITOR_H

/* The main function of the monitor's kernel thread (monitor.c). */
void *sbt_monitor_main(void *unused);

#endif
