/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Buckets of the futex table of fibers (table.c), which is used through sbt_switch_wait and sbt_switch_wake. */
#ifndef SBT_SWITCH_TABLE_H
#define SBT_SWITCH_TABLE_H

#include <stdint.h>

#include "os/lock.h"

#define SBT_TABLE_BUCKETS 256

struct sbt_table_node;

struct sbt_table_bucket {
    struct sbt_lock lock; /* of the list */
    uint32_t unused;
    struct sbt_table_node *head, *tail;
} __attribute__((aligned(64)));

#endif
