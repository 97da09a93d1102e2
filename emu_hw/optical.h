/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The optical broadcast network of ATAC with virtual channels, in virtual time.
 *
 * Each core has a wavelength of its own, so senders never wait for each other. A message goes to all other cores. It is
 * in a receiver's lambda queue after transport_cycles, and in its message buffer after another controller_cycles if no
 * other message is in the way; a look into the buffer takes check_cycles of the core (the driver's to add). Messages of
 * one sender keep their order everywhere. optical_receiver.h has the receiver's side.
 *
 * Source: optical_message.h names the thesis; sections 3.1 and 4.1. Ours: subscriptions are looked at where the filter
 * is, so a core's controller has no work with channels that the core does not read; limits of queues; and what passes a
 * filter.
 *
 * Limits. lambda_limit: the sender has a credit for each place of each receiver's lambda queue of its wavelength. A
 * message is under way, or in the queue, or being transferred, for as long as it has a place. Without a place at one
 * receiver nothing is sent to any: the sender tries again. buffer_limit: the first channel that gets more is remembered
 * in `overflowed`; the message is kept, and what to do is the driver's decision.
 *
 * The driver sends in the order of time: a message is not sent before one that was sent already, and a core's side is
 * not advanced beyond the present. A driver that does not hold the data of a message in the network holds it by the
 * number of its slot, which is free for another message only when no core can receive the message any more.
 *
 * Nothing here blocks; one thread at a time. All memory is the caller's.
 */
#ifndef HW_OPTICAL_H
#define HW_OPTICAL_H

#include "optical_receiver.h"

/*
 * Bytes of the memory of a network, without nodes and slots: a multiple of 64. The configuration is possible
 * (hw_optical_refusal).
 */
size_t hw_optical_bytes(const struct hw_optical_config *config);

/*
 * `memory` is zeroed, and begins at a multiple of 64. The network has no nodes and no slots yet. No core has subscribed
 * to a channel; all filters are open. False, and nothing done: there can be no such network.
 */
bool hw_optical_init(struct hw_optical *net, const struct hw_optical_config *config, void *memory);

/* Nodes and slots that all messages need which are sent while there are as many nodes and slots free. */
static inline uint32_t hw_optical_nodes_for(const struct hw_optical *net, uint32_t n_messages) {
    return n_messages * (net->config.n_cores - 1);
}

/*
 * More memory: the first n_nodes and n_slots of before are where they were, or were copied to the new places. The
 * numbers do not become smaller.
 */
void hw_optical_extend(struct hw_optical *net, struct hw_optical_node *nodes, uint32_t n_nodes,
                       struct hw_optical_slot *slots, uint32_t n_slots);

enum hw_optical_status {
    HW_OPTICAL_OK,
    HW_OPTICAL_FULL,      /* a lambda queue has no room: hw_optical_retry says when to try again */
    HW_OPTICAL_NO_MEMORY, /* no free slot, or too few free nodes: hw_optical_extend */

    /* Such a message, filter or subscription is out of range in this network. */
    HW_OPTICAL_BAD_CORE,
    HW_OPTICAL_BAD_CHANNEL,
    HW_OPTICAL_BAD_SIZE,
    HW_OPTICAL_BAD_FILTER,

    HW_OPTICAL_PAST, /* before a message that was sent already */
    HW_N_OPTICAL_STATUSES
};
const char *hw_optical_status_name(enum hw_optical_status status);

/*
 * Sends message->size bytes from core message->wavelength at `at`. *slot: the message's. On another status than
 * HW_OPTICAL_OK nothing was sent.
 */
enum hw_optical_status hw_optical_send(struct hw_optical *net, const struct hw_optical_message *message, uint64_t at,
                                       uint32_t *slot);

/* After HW_OPTICAL_FULL at `now`: before this time the core cannot send. */
uint64_t hw_optical_retry(const struct hw_optical *net, uint32_t from, uint64_t now);

/* The core takes messages of the channel that arrive later than `now`. */
enum hw_optical_status hw_optical_subscribe(struct hw_optical *net, uint32_t core, uint32_t channel, uint64_t now);
/* It does not any longer. What has arrived stays. */
enum hw_optical_status hw_optical_unsubscribe(struct hw_optical *net, uint32_t core, uint32_t channel, uint64_t now);
/* For messages that arrive later than `now`, on all wavelengths. */
enum hw_optical_status hw_optical_set_filter(struct hw_optical *net, uint32_t core, const struct hw_filter *filter,
                                             uint64_t now);

struct hw_optical_received {
    struct hw_optical_message message;
    uint32_t slot; /* the driver's data is valid until the next call that sends */
    uint64_t sent_cycles, available_cycles;
};

/*
 * Takes the first message of the channel that is in the core's message buffer at `now`. False: there is none. The core
 * and the channel are the network's.
 */
bool hw_optical_receive(struct hw_optical *net, uint32_t core, uint32_t channel, uint64_t now,
                        struct hw_optical_received *received);
/* The same, whatever time it is available at: hw_optical_first says that there is one. */
void hw_optical_take(struct hw_optical *net, uint32_t core, uint32_t channel, struct hw_optical_received *received);

/* The sums, and the maxima, of all cores. */
struct hw_optical_counts hw_optical_sum(const struct hw_optical *net);

/*
 * Is each node in exactly one list, each slot counted by its nodes, each list in the order of its times and
 * wavelengths, and does each count agree? On false *why says what is wrong. For tests: it looks at everything.
 */
bool hw_optical_is_valid(const struct hw_optical *net, const char **why);

#endif
