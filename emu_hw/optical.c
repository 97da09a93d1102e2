/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "optical.h"

/* ---- memory ---- */

struct sizes {
    size_t cores, lambda, buffers, held, clusters; /* bytes, multiples of 64 */
};

static size_t whole_lines(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static struct sizes sizes_of(const struct hw_optical_config *c) {
    size_t n = c->n_cores;
    return (struct sizes){.cores = whole_lines(n * sizeof(struct hw_optical_core)),
                          .lambda = whole_lines(n * n * sizeof(struct hw_optical_queue)),
                          .buffers = whole_lines(n * c->n_channels * sizeof(struct hw_optical_list)),
                          .held = c->lambda_limit != 0 ? whole_lines(n * n * sizeof(uint32_t)) : 0,
                          .clusters = whole_lines(hw_clusters_words(c) * sizeof(uint64_t))};
}

size_t hw_optical_bytes(const struct hw_optical_config *config) {
    struct sizes s = sizes_of(config);
    return s.cores + s.lambda + s.buffers + s.held + s.clusters;
}

static const struct hw_optical_list empty = {.first = HW_OPTICAL_NONE, .last = HW_OPTICAL_NONE};

bool hw_optical_init(struct hw_optical *net, const struct hw_optical_config *config, void *memory) {
    if (hw_optical_refusal(config) != NULL)
        return false;
    struct sizes s = sizes_of(config);
    uint8_t *at = memory;
    *net = (struct hw_optical){.config = *config, .free_node = HW_OPTICAL_NONE, .free_slot = HW_OPTICAL_NONE};
    net->cores = (struct hw_optical_core *)(void *)at;
    net->lambda = (struct hw_optical_queue *)(void *)(at += s.cores);
    net->buffers = (struct hw_optical_list *)(void *)(at += s.lambda);
    at += s.buffers;
    if (s.held != 0)
        net->held = (uint32_t *)(void *)at;
    if (config->shape == HW_OPTICAL_CLUSTERS)
        hw_clusters_init(&net->clusters, config, (uint64_t *)(void *)(at + s.held));
    for (uint32_t i = 0; i < config->n_cores; i++) {
        net->cores[i].filter = hw_filter_open();
        net->cores[i].coming = empty;
        net->cores[i].next = HW_OPTICAL_NONE;
    }
    for (size_t i = 0; i < (size_t)config->n_cores * config->n_channels; i++)
        net->buffers[i] = empty;
    return true;
}

void hw_optical_extend(struct hw_optical *net, struct hw_optical_node *nodes, uint32_t n_nodes,
                       struct hw_optical_slot *slots, uint32_t n_slots) {
    net->nodes = nodes;
    net->slots = slots;
    for (uint32_t i = n_nodes; i-- > net->n_nodes;) {
        nodes[i].next = net->free_node;
        net->free_node = i;
    }
    for (uint32_t i = n_slots; i-- > net->n_slots;) {
        slots[i] = (struct hw_optical_slot){.next_free = net->free_slot};
        net->free_slot = i;
    }
    net->n_free_nodes += n_nodes - net->n_nodes;
    net->n_free_slots += n_slots - net->n_slots;
    net->n_nodes = n_nodes;
    net->n_slots = n_slots;
}

/* ---- sending ---- */

const char *hw_optical_status_name(enum hw_optical_status status) {
    static const char names[HW_N_OPTICAL_STATUSES][32] = {
        [HW_OPTICAL_OK] = "done",
        [HW_OPTICAL_FULL] = "a lambda queue is full",
        [HW_OPTICAL_NO_MEMORY] = "no memory",
        [HW_OPTICAL_BAD_CORE] = "core out of range",
        [HW_OPTICAL_BAD_CHANNEL] = "channel out of range",
        [HW_OPTICAL_BAD_SIZE] = "size out of range",
        [HW_OPTICAL_BAD_FILTER] = "filter operation out of range",
        [HW_OPTICAL_PAST] = "time in the past",
    };
    return (uint32_t)status < HW_N_OPTICAL_STATUSES ? names[status] : "?";
}

/* Places of the receiver's lambda queue that the sender's messages have. */
static uint32_t places(const struct hw_optical *net, uint32_t to, uint32_t from, uint64_t now) {
    const struct hw_optical_core *core = &net->cores[to];
    uint32_t n = net->held[(size_t)to * net->config.n_cores + from];
    return core->moving == from && core->free_cycles > now ? n + 1 : n;
}

static bool has_room(struct hw_optical *net, uint32_t from, uint64_t now) {
    bool room = true;
    for (uint32_t to = 0; to < net->config.n_cores; to++) {
        if (to == from)
            continue;
        hw_optical_advance(net, to, now);
        room = room && places(net, to, from, now) < net->config.lambda_limit;
    }
    return room;
}

uint64_t hw_optical_retry(const struct hw_optical *net, uint32_t from, uint64_t now) {
    uint64_t when = now + 1;
    for (uint32_t to = 0; net->held != NULL && to < net->config.n_cores; to++)
        if (to != from && places(net, to, from, now) >= net->config.lambda_limit && net->cores[to].free_cycles > when)
            when = net->cores[to].free_cycles;
    return when;
}

/* Into the messages that are coming to a core, behind those that arrive earlier or at the same time. */
static void come(struct hw_optical *net, uint32_t to, uint32_t node) {
    struct hw_optical_list *coming = &net->cores[to].coming;
    uint64_t at = net->nodes[node].at;
    if (coming->last == HW_OPTICAL_NONE || net->nodes[coming->last].at <= at) {
        hw_optical_append(net, coming, node);
        return;
    }
    uint32_t *link = &coming->first;
    while (net->nodes[*link].at <= at)
        link = &net->nodes[*link].next;
    net->nodes[node].next = *link;
    *link = node;
    coming->n++;
}

/* Clusters: to each core when its cluster has it. */
static void broadcast(struct hw_optical *net, uint32_t slot, uint64_t at) {
    uint32_t from = net->slots[slot].message.wavelength, n = net->config.n_cores;
    struct hw_clusters_way way = hw_clusters_leave(&net->clusters, from, net->slots[slot].message.size, at);
    uint64_t arrival = 0;
    for (uint32_t to = 0; to < n; to++) {
        if (to % net->clusters.config.n_cores == 0)
            arrival = hw_clusters_arrive(&net->clusters, &way, hw_clusters_of(&net->clusters, to));
        if (to != from)
            come(net, to, hw_optical_take_node(net, slot, arrival));
    }
}

/* A message is sent. The answer: how many copies it has, of n_copies receivers and of a sender that is behind. */
static uint32_t log_message(struct hw_optical *net, uint32_t slot, uint32_t from, uint32_t n_copies) {
    struct hw_optical_core *sender = &net->cores[from];
    if (net->n_logged != 0)
        net->slots[net->last_logged].later = slot;
    net->slots[slot].earlier = net->last_logged;
    net->slots[slot].later = HW_OPTICAL_NONE;
    net->last_logged = slot;
    if (sender->n_passed != net->n_logged++)
        return n_copies + 1;
    sender->n_passed++;
    return n_copies;
}

/* The message takes a place in the lambda queue of each receiver. */
static void hold_places(struct hw_optical *net, uint32_t from) {
    for (uint32_t to = 0; net->held != NULL && to < net->config.n_cores; to++)
        if (to != from)
            net->held[(size_t)to * net->config.n_cores + from]++;
}

enum hw_optical_status hw_optical_send(struct hw_optical *net, const struct hw_optical_message *message, uint64_t at,
                                       uint32_t *slot) {
    uint32_t from = message->wavelength, n_copies = net->config.n_cores - 1;
    if (from >= net->config.n_cores)
        return HW_OPTICAL_BAD_CORE;
    if (message->channel >= net->config.n_channels)
        return HW_OPTICAL_BAD_CHANNEL;
    if (message->size > HW_OPTICAL_MAX_BYTES)
        return HW_OPTICAL_BAD_SIZE;
    if (at < net->last_sent_cycles)
        return HW_OPTICAL_PAST;
    if (net->held != NULL && !has_room(net, from, at)) {
        net->cores[from].counts.n_refused++;
        return HW_OPTICAL_FULL;
    }
    if (net->n_free_slots == 0 || net->n_free_nodes < n_copies)
        return HW_OPTICAL_NO_MEMORY;
    *slot = net->free_slot;
    net->cores[from].counts.n_sent++;
    net->last_sent_cycles = at;
    struct hw_optical_slot *own = &net->slots[*slot];
    own->message = *message;
    own->sent_cycles = at;
    own->n_copies = n_copies;
    if (n_copies == 0) /* no receiver: the slot stays free */
        return HW_OPTICAL_OK;
    net->free_slot = own->next_free;
    net->n_free_slots--;
    net->n_free_nodes -= n_copies;
    hold_places(net, from);
    if (hw_optical_is_flat(net))
        own->n_copies = log_message(net, *slot, from, n_copies);
    else
        broadcast(net, *slot, at);
    return HW_OPTICAL_OK;
}

/* ---- receiving ---- */

static enum hw_optical_status set_subscribed(struct hw_optical *net, uint32_t core, uint32_t channel, uint64_t now,
                                             bool subscribed) {
    if (core >= net->config.n_cores)
        return HW_OPTICAL_BAD_CORE;
    if (channel >= net->config.n_channels)
        return HW_OPTICAL_BAD_CHANNEL;
    hw_optical_advance(net, core, now);
    uint64_t *word = &net->cores[core].subscribed[channel / 64], bit = UINT64_C(1) << channel % 64;
    *word = subscribed ? *word | bit : *word & ~bit;
    return HW_OPTICAL_OK;
}

enum hw_optical_status hw_optical_subscribe(struct hw_optical *net, uint32_t core, uint32_t channel, uint64_t now) {
    return set_subscribed(net, core, channel, now, true);
}

enum hw_optical_status hw_optical_unsubscribe(struct hw_optical *net, uint32_t core, uint32_t channel, uint64_t now) {
    return set_subscribed(net, core, channel, now, false);
}

enum hw_optical_status hw_optical_set_filter(struct hw_optical *net, uint32_t core, const struct hw_filter *filter,
                                             uint64_t now) {
    if (core >= net->config.n_cores)
        return HW_OPTICAL_BAD_CORE;
    if (!hw_filter_possible(filter))
        return HW_OPTICAL_BAD_FILTER;
    hw_optical_advance(net, core, now);
    net->cores[core].filter = *filter;
    return HW_OPTICAL_OK;
}

bool hw_optical_receive(struct hw_optical *net, uint32_t core, uint32_t channel, uint64_t now,
                        struct hw_optical_received *received) {
    hw_optical_advance(net, core, now);
    if (hw_optical_first(net, core, channel) > now)
        return false;
    hw_optical_take(net, core, channel, received);
    return true;
}

void hw_optical_take(struct hw_optical *net, uint32_t core, uint32_t channel, struct hw_optical_received *received) {
    uint32_t node = hw_optical_shift(net, &net->buffers[(size_t)core * net->config.n_channels + channel]);
    uint32_t number = net->nodes[node].slot;
    const struct hw_optical_slot *slot = &net->slots[number];
    *received = (struct hw_optical_received){.message = slot->message,
                                             .slot = number,
                                             .sent_cycles = slot->sent_cycles,
                                             .available_cycles = net->nodes[node].at};
    net->cores[core].counts.n_received++;
    hw_optical_give_node(net, node);
    hw_optical_drop_copy(net, number);
}

struct hw_optical_counts hw_optical_sum(const struct hw_optical *net) {
    struct hw_optical_counts sum = {0};
    for (uint32_t i = 0; i < net->config.n_cores; i++) {
        const struct hw_optical_counts *c = &net->cores[i].counts;
        sum.n_sent += c->n_sent;
        sum.n_arrived += c->n_arrived;
        sum.n_filtered += c->n_filtered;
        sum.n_unsubscribed += c->n_unsubscribed;
        sum.n_transferred += c->n_transferred;
        sum.n_received += c->n_received;
        sum.delay_cycles += c->delay_cycles;
        sum.n_refused += c->n_refused;
        sum.max_lambda = c->max_lambda > sum.max_lambda ? c->max_lambda : sum.max_lambda;
        sum.max_buffer = c->max_buffer > sum.max_buffer ? c->max_buffer : sum.max_buffer;
    }
    return sum;
}
