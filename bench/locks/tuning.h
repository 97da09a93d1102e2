/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Constants of the locks. The model checker has a file of its own in place of this one. */
#ifndef LOCKS_TUNING_H
#define LOCKS_TUNING_H

/* MCS-TP: a waiter that has published no time for so long is taken for preempted (the paper's UPDATE_DELAY). */
#define LOCK_TP_STALE_NS 20000
/* MCS-TP: an owner that has the lock for so long is taken for preempted: waiters give way (MAX_CS_TIME). */
#define LOCK_TP_SECTION_NS 50000
/* MCS-TP: so many waiters a release passes over before it lets none of them queue again (MAX_THREADS). */
#define LOCK_TP_SCAN_MOST 64
/* Flat combining: passes over the publication list by one combiner. */
#define LOCK_FLAT_PASSES 8
/* Flat combining: one combiner in so many looks for records to take out of the list. */
#define LOCK_FLAT_CLEAN_EVERY 1000
/* Flat combining: so many combiners have come and gone without a request of a record that is taken out. */
#define LOCK_FLAT_IDLE 2000

#endif
