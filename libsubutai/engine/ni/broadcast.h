/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * With --network atac: the optical broadcast network beside the mesh. Barriers and broadcasts of conditions are
 * messages there, everything else is the mesh's.
 *
 * A barrier is a counter in memory (engine/direct). The network says how long its threads' waits last: each arrival is
 * a message, and a thread goes on when its core has retrieved those of all others, as in the barrier of the ATAC thesis
 * (sim/vc_barrier.c is the same in virtual time). So without statistics and without a time scale nothing is sent.
 *
 * A condition's broadcast is a request that comes to its NI over this network. What its waiters' cores have of it is a
 * time: a waiter has retrieved the message by then, and is back when its mutex is granted (ni_broadcast_resume).
 *
 * A barrier has a virtual channel. Its object's word says which: a serial number, of which the channel's number is the
 * remainder. The channel of a barrier at rest may be given to another barrier. Without a channel the word counts the
 * arrivals of the episode: a barrier gets its channel between two episodes.
 *
 * The network has one lock, a leaf: no other lock of the engine is taken under it. Handlers are deferred meanwhile.
 */
#ifndef SBT_ENGINE_NI_BROADCAST_H
#define SBT_ENGINE_NI_BROADCAST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/options.h"
#include "engine/ni/machine.h"

/* A thread's arrival at a barrier. Zero: it was not sent, because no channel was free. */
struct ni_arrival {
    uint32_t serial; /* of the channel; 0: none */
    uint32_t of;     /* the barrier's threads */
    uint64_t episode;
    uint64_t called_cycles, sent_cycles;
};

struct ni_broadcast_counts {
    uint64_t n_messages, n_retrieved, n_transferred, delay_cycles, max_lambda, max_buffer, n_without_channel;
};

/* 0 or ENOMEM. Nothing with --network mesh. */
int ni_broadcast_start(const struct sbt_options *options);
void ni_broadcast_fork_child(void);

/*
 * A thread on this tile comes to the barrier of so many threads, at that time; `word` is its object's. Then, when all
 * have come: when does it go on? Only if the machine is timed. The caller is inside (thread.h).
 */
struct ni_arrival ni_broadcast_arrive(uint32_t tile, uint32_t *word, uint32_t of, uint64_t called_cycles);
uint64_t ni_broadcast_leave(uint32_t tile, const struct ni_arrival *arrival);
/* The barrier goes. */
void ni_broadcast_forget(uint32_t *word);

/*
 * A request for a condition's broadcast that was made then: when it arrives at its NI. `from` is another tile. Under
 * the lock of any tile.
 */
uint64_t ni_broadcast_request(uint32_t from, uint32_t to, uint64_t issued_cycles);
/* The broadcast that was made then has been stepped, at the condition's NI. Under the lock of its tile, as the next. */
void ni_broadcast_stepped(uint32_t condition, uint64_t issued_cycles, uint64_t stepped_cycles);
/* The thread waits at the condition from then on; 0: at none. */
void ni_broadcast_waits(uint32_t thread, uint32_t condition, uint64_t began_cycles);
/*
 * The way back of a thread that is granted its mutex then: resume_cycles, or less if it has waited at a condition, and
 * was told of a broadcast.
 */
uint32_t ni_broadcast_resume(uint32_t thread, uint64_t granted_cycles, uint32_t resume_cycles);

/*
 * At the end of the process. Take and drop: what the network has, and barriers' latencies (stats.h), stay as they are
 * in between; threads may still come to barriers, and wait. `taken`: the caller has taken it, so the counts cover all
 * messages. Otherwise the interrupted code may hold the lock, and the counts are as they are.
 */
void ni_broadcast_take(void);
void ni_broadcast_drop(void);
struct ni_broadcast_counts ni_broadcast_sum(bool taken);
#endif
