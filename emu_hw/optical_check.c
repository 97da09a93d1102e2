/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Is the state of a network consistent? For tests. */
#include "optical.h"

struct check {
    const struct hw_optical *net;
    const char **why;
    uint64_t n_nodes, n_copies;
};

static bool wrong(const struct check *check, const char *what) {
    *check->why = what;
    return false;
}

/* A list's nodes: as many as it says, in the order of their times if `ordered`, of one wavelength or channel. */
static bool list_is_valid(struct check *check, const struct hw_optical_list *list, bool ordered, uint32_t wavelength,
                          uint32_t channel) {
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
        if (ordered && own->at < at)
            return wrong(check, "a list is not in the order of its times");
        if ((wavelength != HW_OPTICAL_NONE && message->wavelength != wavelength) ||
            (channel != HW_OPTICAL_NONE && message->channel != channel))
            return wrong(check, "a message is in another's queue");
        at = own->at;
        last = node;
    }
    check->n_nodes += n;
    return (n == list->n && last == list->last) || wrong(check, "a list ends where it does not say");
}

static bool core_is_valid(struct check *check, uint32_t number) {
    const struct hw_optical *net = check->net;
    const struct hw_optical_core *core = &net->cores[number];
    uint32_t n_cores = net->config.n_cores, n_waiting = 0;
    uint64_t n_kept = 0;
    if (!list_is_valid(check, &core->coming, true, HW_OPTICAL_NONE, HW_OPTICAL_NONE))
        return false;
    for (uint32_t w = 0; w < n_cores; w++) {
        const struct hw_optical_list *queue = &net->lambda[(size_t)number * n_cores + w];
        if (!list_is_valid(check, queue, true, w, HW_OPTICAL_NONE))
            return false;
        if (hw_optical_bit(core->waiting, w) != (queue->n != 0) || (w == number && queue->n != 0))
            return wrong(check, "the controller does not know which queues have messages");
        n_waiting += queue->n;
    }
    for (uint32_t c = 0; c < net->config.n_channels; c++) {
        const struct hw_optical_list *buffer = &net->buffers[(size_t)number * net->config.n_channels + c];
        if (!list_is_valid(check, buffer, true, HW_OPTICAL_NONE, c))
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
    uint64_t n_free = 0, n_free_slots = 0, n_unused = 0;
    for (uint32_t node = net->free_node; node != HW_OPTICAL_NONE && n_free <= net->n_nodes;
         node = net->nodes[node].next)
        n_free++;
    for (uint32_t slot = net->free_slot; slot != HW_OPTICAL_NONE && n_free_slots <= net->n_slots;
         slot = net->slots[slot].next_free)
        n_free_slots++;
    for (uint32_t slot = 0; slot < net->n_slots; slot++) {
        check.n_copies += net->slots[slot].n_copies;
        n_unused += net->slots[slot].n_copies == 0;
    }
    if (n_free != net->n_free_nodes || n_free_slots != net->n_free_slots || n_unused != n_free_slots ||
        check.n_nodes + n_free != net->n_nodes || check.n_copies != check.n_nodes)
        return wrong(&check, "a node or a slot is in no list, or in two");
    return held_is_valid(&check);
}
