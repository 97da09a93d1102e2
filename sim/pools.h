/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of an optical network for messages under way: for its drivers that allocate. */
#ifndef SIM_POOLS_H
#define SIM_POOLS_H

#include "optical.h"

/* For programs: messages that have been sent and not received, each as often as it has receivers. */
#define SIM_POOLS_MOST (1u << 24)

enum sim_pools_status { SIM_POOLS_OK, SIM_POOLS_FULL, SIM_POOLS_NO_MEMORY };

/*
 * Room for another message of a core. Brings all cores to `now` first: those that no thread asks for have not dropped
 * their messages yet. If that does not give back half of a pool, that pool becomes twice as large: the slots, or the
 * nodes, which a slow receiver of many messages needs less of.
 *
 * *beside is the driver's array beside the slots, of elements of so many bytes; new ones are 0. SIM_POOLS_FULL: there
 * would be more than `most` nodes, or a 64th of that of slots. Pools are allocated by malloc, and the driver's to free.
 */
enum sim_pools_status sim_pools_grow(struct hw_optical *net, uint64_t now, uint32_t most, void **beside,
                                     size_t beside_bytes);

#endif
