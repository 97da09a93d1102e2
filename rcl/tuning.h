/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Constants of the runtime. */
#ifndef RCL_TUNING_H
#define RCL_TUNING_H

/* So many passes without a request, and the server's thread sleeps; some before, it yields. */
#define RCL_IDLE_PASSES 2000
#define RCL_YIELD_PASSES 100
/* So many looks of a client, or of a section that waits for a lock, and from then on it yields between two. */
#define RCL_WAIT_SPINS 200
/* So many in all, and it sleeps. */
#define RCL_WAIT_LOOKS 400
/* If a yield lasts for longer, several others compute, and threads sleep in place of a yield for so long. */
#define RCL_YIELD_NS 10000000
#define RCL_BUSY_NS 1000000000
/* The management thread's period: a section that lasts longer is taken for blocked. */
#define RCL_TICK_NS 1000000

#endif
