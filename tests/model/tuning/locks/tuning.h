/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For locks-walk, in place of bench/locks/tuning.h: small systems must come to every decision. */
#ifndef LOCKS_TUNING_H
#define LOCKS_TUNING_H

#define LOCK_TP_STALE_NS 1
#define LOCK_TP_SECTION_NS 1
#define LOCK_TP_SCAN_MOST 2
#define LOCK_FLAT_PASSES 2
#define LOCK_FLAT_CLEAN_EVERY 1
#define LOCK_FLAT_IDLE 1

#endif
