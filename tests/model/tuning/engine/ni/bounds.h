/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For ni-walk, in place of libsubutai/engine/ni/bounds.h: a mailbox is full, and a server's arrays too, after a few
 * requests.
 */
#ifndef SBT_ENGINE_NI_BOUNDS_H
#define SBT_ENGINE_NI_BOUNDS_H

#define NI_RING 4

enum { NI_MAX_WAKES = 1, NI_MAX_TOUCHED = 2, NI_MAX_TODO = 1 };

#endif
