/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Is the state of a network consistent? For tests. */
#include "optical.h"

struct check {
    const struct hw_optical *net;
    const char **why;
    uint64_t n_nodes;                /* in lists */
    uint64_t n_copies, n_of_senders; /* found; of them, of senders that have not passed their messages */
};

static bool wrong(const struct check *check, const char *what) {
    *check->why = what;
    return false;
}

/* A list's nodes: as many as it says, in the order of their times, of one channel if that is given. */
static bool list_is_valid(struct check *check, const struct hw_optical_list *list, uint32_t channel) {
    const struct hw_optical *net = check->net;
    uint32_t n = 0, last = HW_OPTICAL_NONE;
    uint64_t at = 0;
    for (uint32_t node = list->first; node != HW_OPTICAL_NONE; node = net->nodes[node].next) {
        if (node >= net->n_nodes || n++ == list->n)
            return wrong(check, "a list is longer than it says");
        const struct hw_optical_node *own = &net->nodes[node];
        if (own->slot >= net->n_slots || net->slots[own->slot].n_copies == 0)
            return wrong(check, "a node has a free slot");
        const struct hw_optical_message *message = &net->slots[own->slot].message;
        if (own->at < at)
            return wrong(check, "a list is not in the order of its times");
        if (channel != HW_OPTICAL_NONE && message->channel != channel)
            return wrong(check, "a message is in another's queue");
        at = own->at;
        last = node;
    }
    check->n_nodes += n;
    check->n_copies += n;
    return (n == list->n && last == list->last) || wrong(check, "a list ends where it does not say");
}

/* A core's part of the log. */
static bool place_is_valid(struct check *check, uint32_t number) {
    const struct hw_optical *net = check->net;
    const struct hw_optical_core *core = &net->cores[number];
    if (core->n_passed > net->n_logged)
        return wrong(check, "a core has passed more than was sent");
    uint64_t n = net->n_logged - core->n_passed, at = net->last_sent_cycles;
    if (n == 0)
        return core->next == HW_OPTICAL_NONE || wrong(check, "a core's place in the log is another one");
    uint32_t slot = net->last_logged, later = HW_OPTICAL_NONE;
    for (uint64_t i = 0; i < n; i++, later = slot, slot = net->slots[slot].earlier) {
        if (slot >= net->n_slots || net->slots[slot].n_copies == 0)
            return wrong(check, "a message of the log has a free slot");
        if (net->slots[slot].later != later || net->slots[slot].sent_cycles > at)
            return wrong(check, "the log is not in the order of sending");
        at = net->slots[slot].sent_cycles;
        check->n_of_senders += net->slots[slot].message.wavelength == number;
    }
    check->n_copies += n;
    return core->next == HW_OPTICAL_NONE || core->next == later ||
           wrong(check, "a core's place in the log is another one");
}

static bool queue_is_valid(struct check *check, const struct hw_optical_queue *queue, uint32_t wavelength) {
    const struct hw_optical *net = check->net;
    if (queue->n == 0)
        return true;
    if (queue->slot >= net->n_slots || net->slots[queue->slot].n_copies == 0)
        return wrong(check, "a lambda queue has a free slot");
    if (net->slots[queue->slot].message.wavelength != wavelength)
        return wrong(check, "a message is in another's queue");
    check->n_copies++;
    uint32_t node = queue->first;
    for (uint32_t i = 1; i < queue->n; i++, node = net->nodes[node].next) {
        if (node >= net->n_nodes)
            return wrong(check, "a list is longer than it says");
        const struct hw_optical_node *own = &net->nodes[node];
        if (own->slot >= net->n_slots || net->slots[own->slot].n_copies == 0)
            return wrong(check, "a lambda queue has a free slot");
        if (net->slots[own->slot].message.wavelength != wavelength)
            return wrong(check, "a message is in another's queue");
        if (i + 1 == queue->n && node != queue->last)
            return wrong(check, "a list ends where it does not say");
    }
    check->n_nodes += queue->n - 1;
    check->n_copies += queue->n - 1;
    return true;
}

static bool core_is_valid(struct check *check, uint32_t number) {
    const struct hw_optical *net = check->net;
    const struct hw_optical_core *core = &net->cores[number];
    uint32_t n_cores = net->config.n_cores, n_waiting = 0;
    uint64_t n_kept = 0;
    if (!list_is_valid(check, &core->coming, HW_OPTICAL_NONE) || !place_is_valid(check, number))
        return false;
    for (uint32_t w = 0; w < n_cores; w++) {
        const struct hw_optical_queue *queue = &net->lambda[(size_t)number * n_cores + w];
        if (!queue_is_valid(check, queue, w))
            return false;
        if (hw_optical_bit(core->waiting, w) != (queue->n != 0) || (w == number && queue->n != 0))
            return wrong(check, "the controller does not know which queues have messages");
        n_waiting += queue->n;
    }
    for (uint32_t c = 0; c < net->config.n_channels; c++) {
        const struct hw_optical_list *buffer = &net->buffers[(size_t)number * net->config.n_channels + c];
        if (!list_is_valid(check, buffer, c))
            return false;
        n_kept += buffer->n;
    }
    const struct hw_optical_counts *counts = &core->counts;
    if (n_waiting != core->n_waiting ||
        counts->n_arrived != counts->n_filtered + counts->n_unsubscribed + counts->n_transferred + n_waiting ||
        counts->n_transferred != counts->n_received + n_kept)
        return wrong(check, "the counts of a core do not agree with its queues");
    return true;
}

/* Places of lambda queues: what is coming and what is in the queue. */
static bool held_is_valid(struct check *check) {
    const struct hw_optical *net = check->net;
    uint32_t n_cores = net->config.n_cores;
    for (size_t queue = 0; net->held != NULL && queue < (size_t)n_cores * n_cores; queue++) {
        uint32_t n = net->lambda[queue].n;
        const struct hw_optical_core *core = &net->cores[queue / n_cores];
        bool own = queue / n_cores == queue % n_cores;
        uint32_t slot = net->last_logged;
        for (uint64_t i = core->n_passed; i < net->n_logged && !own; i++, slot = net->slots[slot].earlier)
            n += net->slots[slot].message.wavelength == queue % n_cores;
        for (uint32_t node = net->cores[queue / n_cores].coming.first; node != HW_OPTICAL_NONE;
             node = net->nodes[node].next)
            n += net->slots[net->nodes[node].slot].message.wavelength == queue % n_cores;
        if (n != net->held[queue] || n > net->config.lambda_limit)
            return wrong(check, "the places of a lambda queue are not counted right");
    }
    return true;
}

bool hw_optical_is_valid(const struct hw_optical *net, const char **why) {
    struct check check = {.net = net, .why = why};
    for (uint32_t i = 0; i < net->config.n_cores; i++)
        if (!core_is_valid(&check, i))
            return false;
    uint64_t n_free = 0, n_free_slots = 0, n_unused = 0, n_copies = 0;
    for (uint32_t node = net->free_node; node != HW_OPTICAL_NONE && n_free <= net->n_nodes;
         node = net->nodes[node].next)
        n_free++;
    for (uint32_t slot = net->free_slot; slot != HW_OPTICAL_NONE && n_free_slots <= net->n_slots;
         slot = net->slots[slot].next_free)
        n_free_slots++;
    for (uint32_t slot = 0; slot < net->n_slots; slot++) {
        n_copies += net->slots[slot].n_copies;
        n_unused += net->slots[slot].n_copies == 0;
    }
    uint64_t n_of_receivers = n_copies - check.n_of_senders;
    if (net->n_free_nodes + n_of_receivers != net->n_nodes || n_free_slots != net->n_free_slots ||
        n_unused != n_free_slots || check.n_nodes + n_free != net->n_nodes || n_copies != check.n_copies)
        return wrong(&check, "a node or a slot is in no list, or in two");
    return held_is_valid(&check);
}
