/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of an optical network. optical.h is the interface.
 *
 * A message has one slot, and a copy for each receiver that may still take it. A copy is in one place at a time, in
 * this order: among the messages that are coming to the core, in the order of their arrivals; in the lambda queue of
 * its wavelength; in the message buffer of its channel. The slot is free again when there are no copies. Links are
 * numbers, so a driver may move nodes and slots when it needs more of them.
 *
 * In clusters each core has a list of what is coming, for messages arrive at each cluster at another time. In the flat
 * network a message arrives everywhere at the same time, and messages arrive as they were sent. So there is one list
 * for all cores: the log, of slots in the order of sending. A core has its place there, and passes its own messages
 * too, without their arriving. The place of a core that has passed all is the end of the log, which has no slot: the
 * next message is found from the last one backward, since what is not passed keeps its slot.
 *
 * Lists of each core are, with many cores, more than the host's caches hold. So a message that is in the log has no
 * node, nor has the first one of a lambda queue, which seldom has two.
 */
#ifndef HW_OPTICAL_STATE_H
#define HW_OPTICAL_STATE_H

#include "optical_clusters.h"
#include "optical_message.h"

#define HW_OPTICAL_NONE UINT32_MAX

/* In a list, or free. */
struct hw_optical_node {
    uint64_t at; /* coming: its arrival at the filter. Buffer: from then on it can be retrieved */
    uint32_t next, slot;
};

struct hw_optical_slot {
    struct hw_optical_message message;
    uint32_t n_copies; /* in the flat network the sender has one too, until it has passed it; 0: free */
    uint32_t next_free;
    uint64_t sent_cycles;
    uint32_t earlier, later; /* in the log; HW_OPTICAL_NONE: no later one. `earlier` may be free again */
};

struct hw_optical_list {
    uint32_t first, last; /* HW_OPTICAL_NONE: it is empty */
    uint32_t n;
};

/* A lambda queue. All-zero is empty. */
struct hw_optical_queue {
    uint32_t n;
    uint32_t slot;        /* of the first message, if there is one; */
    uint32_t first, last; /* nodes of the others, if there are any */
};

/* What has become of messages, at one core or summed up. Each arrived message is counted in one of the next three at
 * last. */
struct hw_optical_counts {
    uint64_t n_sent;         /* by this core */
    uint64_t n_arrived;      /* at the filter */
    uint64_t n_filtered;     /* refused by the filter */
    uint64_t n_unsubscribed; /* for a channel to which the core has not subscribed */
    uint64_t n_transferred;  /* through the controller */
    uint64_t n_received;     /* retrieved */
    uint64_t delay_cycles;   /* from sending to the end of the transfer, of all that were transferred */
    uint64_t n_refused;      /* attempts to send for which a lambda queue had no room */
    uint32_t max_lambda;     /* messages that a lambda queue has held at once, */
    uint32_t max_buffer;     /* and one channel of the message buffer */
};

enum { HW_OPTICAL_CORE_WORDS = HW_OPTICAL_MAX_CORES / 64, HW_OPTICAL_CHANNEL_WORDS = HW_OPTICAL_MAX_CHANNELS / 64 };

/*
 * The last transfers of a controller that were of one wavelength after the other, without a pause. For max_lambda: an
 * arrival that is looked at after transfers that begin later than it (hw_optical_is_certain) still finds them queued.
 */
struct hw_optical_run {
    uint32_t wavelength, n; /* of the first transfer; transfers, fewer than there are cores */
    uint64_t start_cycles;  /* of the first */
};

struct hw_optical_core {
    struct hw_filter filter;
    struct hw_optical_list coming; /* in clusters */
    uint64_t n_passed;             /* in the flat network: messages of the log that are not coming any more; */
    uint32_t next;                 /* the next one; HW_OPTICAL_NONE: it has not been looked for */
    uint64_t free_cycles;          /* the controller has ended its last transfer */
    uint64_t ready_cycles;         /* since then a lambda queue has had a message */
    uint32_t position;             /* the wavelength at which the controller looks next */
    uint32_t moving;               /* the wavelength of the last transfer */
    uint32_t n_waiting;            /* messages in lambda queues */
    struct hw_optical_run run;
    uint64_t waiting[HW_OPTICAL_CORE_WORDS]; /* a bit for each lambda queue that is not empty */
    uint64_t subscribed[HW_OPTICAL_CHANNEL_WORDS];
    struct hw_optical_counts counts;
};

struct hw_optical {
    struct hw_optical_config config;
    struct hw_clusters clusters;
    struct hw_optical_core *cores;   /* [n_cores] */
    struct hw_optical_queue *lambda; /* [receiver * n_cores + wavelength] */
    struct hw_optical_list *buffers; /* [core * n_channels + channel] */
    uint32_t *held; /* [receiver * n_cores + wavelength]: coming or in the lambda queue; NULL: no limit */
    struct hw_optical_node *nodes;
    struct hw_optical_slot *slots;
    uint32_t n_nodes, n_slots; /* in all */
    uint32_t free_node, free_slot;
    uint32_t n_free_nodes; /* without those that copies may need: one for each */
    uint32_t n_free_slots;
    uint64_t n_logged;
    uint32_t last_logged; /* it may be free again */
    uint64_t last_sent_cycles;
    bool overflowed; /* a channel of a message buffer got more than buffer_limit: the first one is */
    uint32_t overflowed_core, overflowed_channel;
};

static inline bool hw_optical_is_flat(const struct hw_optical *net) {
    return net->config.shape == HW_OPTICAL_FLAT;
}

static inline bool hw_optical_bit(const uint64_t *words, uint32_t bit) {
    return (words[bit / 64] >> bit % 64 & 1) != 0;
}

static inline void hw_optical_append(struct hw_optical *net, struct hw_optical_list *list, uint32_t node) {
    net->nodes[node].next = HW_OPTICAL_NONE;
    if (list->last != HW_OPTICAL_NONE)
        net->nodes[list->last].next = node;
    else
        list->first = node;
    list->last = node;
    list->n++;
}

/*
 * From then on the first message that the channel's buffer has, or is being given, can be retrieved. UINT64_MAX: none
 */
static inline uint64_t hw_optical_first(const struct hw_optical *net, uint32_t core, uint32_t channel) {
    uint32_t node = net->buffers[(size_t)core * net->config.n_channels + channel].first;
    return node != HW_OPTICAL_NONE ? net->nodes[node].at : UINT64_MAX;
}

/* The list is not empty. */
static inline uint32_t hw_optical_shift(const struct hw_optical *net, struct hw_optical_list *list) {
    uint32_t node = list->first;
    list->first = net->nodes[node].next;
    if (list->first == HW_OPTICAL_NONE)
        list->last = HW_OPTICAL_NONE;
    list->n--;
    return node;
}

/* ---- nodes ---- */

static inline uint32_t hw_optical_take_node(struct hw_optical *net, uint32_t slot, uint64_t at) {
    uint32_t node = net->free_node;
    net->free_node = net->nodes[node].next;
    net->nodes[node].slot = slot;
    net->nodes[node].at = at;
    return node;
}

static inline void hw_optical_give_node(struct hw_optical *net, uint32_t node) {
    net->nodes[node].next = net->free_node;
    net->free_node = node;
}

/* ---- slots ---- */

static inline void hw_optical_drop(struct hw_optical *net, uint32_t number) {
    struct hw_optical_slot *slot = &net->slots[number];
    if (--slot->n_copies == 0) {
        slot->next_free = net->free_slot;
        net->free_slot = number;
        net->n_free_slots++;
    }
}

/* A receiver's copy of the message is no longer needed. */
static inline void hw_optical_drop_copy(struct hw_optical *net, uint32_t slot) {
    net->n_free_nodes++;
    hw_optical_drop(net, slot);
}

/* ---- lambda queues ---- */

static inline void hw_optical_enqueue(struct hw_optical *net, struct hw_optical_queue *queue, uint32_t slot) {
    if (queue->n++ == 0) {
        queue->slot = slot;
        return;
    }
    uint32_t node = hw_optical_take_node(net, slot, 0);
    if (queue->n == 2)
        queue->first = node;
    else
        net->nodes[queue->last].next = node;
    queue->last = node;
}

/* The queue is not empty. The slot of its first message. */
static inline uint32_t hw_optical_dequeue(struct hw_optical *net, struct hw_optical_queue *queue) {
    uint32_t slot = queue->slot, node = queue->first;
    if (--queue->n == 0)
        return slot;
    queue->slot = net->nodes[node].slot;
    queue->first = net->nodes[node].next;
    hw_optical_give_node(net, node);
    return slot;
}

#endif
