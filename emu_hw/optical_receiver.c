/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "optical_receiver.h"

static inline uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* ---- filters ---- */

static void arrive(struct hw_optical *net, uint32_t number) {
    struct hw_optical_core *core = &net->cores[number];
    uint32_t node = hw_optical_shift(net, &core->coming);
    const struct hw_optical_message *message = &net->slots[net->nodes[node].slot].message;
    uint32_t w = message->wavelength;
    size_t queue = (size_t)number * net->config.n_cores + w;
    bool passes = hw_filter_passes(&core->filter, message->signature);
    core->counts.n_arrived++;
    if (!passes || !hw_optical_bit(core->subscribed, message->channel)) {
        if (passes)
            core->counts.n_unsubscribed++;
        else
            core->counts.n_filtered++;
        if (net->held != NULL)
            net->held[queue]--;
        hw_optical_drop(net, node);
        return;
    }
    if (core->n_waiting++ == 0)
        core->ready_cycles = net->nodes[node].at;
    core->waiting[w / 64] |= UINT64_C(1) << w % 64;
    hw_optical_append(net, &net->lambda[queue], node);
    if (net->lambda[queue].n > core->counts.max_lambda)
        core->counts.max_lambda = net->lambda[queue].n;
}

/* ---- controller ---- */

/* The next lambda queue from the controller's position on that is not empty. There is one. */
static uint32_t next_wavelength(const struct hw_optical_core *core, uint32_t n_cores) {
    uint32_t n_words = (n_cores + 63) / 64, word = core->position / 64;
    uint64_t here = core->waiting[word] & (UINT64_MAX << core->position % 64);
    for (; here == 0; here = core->waiting[word])
        word = word + 1 < n_words ? word + 1 : 0;
    return word * 64 + (uint32_t)__builtin_ctzll(here);
}

/* Into the message buffer. */
static void store(struct hw_optical *net, uint32_t number, uint32_t node) {
    struct hw_optical_core *core = &net->cores[number];
    const struct hw_optical_slot *slot = &net->slots[net->nodes[node].slot];
    uint32_t channel = slot->message.channel;
    struct hw_optical_list *buffer = &net->buffers[(size_t)number * net->config.n_channels + channel];
    core->counts.n_transferred++;
    core->counts.delay_cycles += net->nodes[node].at - slot->sent_cycles;
    hw_optical_append(net, buffer, node);
    if (buffer->n > core->counts.max_buffer)
        core->counts.max_buffer = buffer->n;
    if (net->config.buffer_limit != 0 && buffer->n > net->config.buffer_limit && !net->overflowed) {
        net->overflowed = true;
        net->overflowed_core = number;
        net->overflowed_channel = channel;
    }
}

static void transfer(struct hw_optical *net, uint32_t number, uint64_t start) {
    struct hw_optical_core *core = &net->cores[number];
    uint32_t n_cores = net->config.n_cores, w = next_wavelength(core, n_cores);
    size_t queue = (size_t)number * n_cores + w;
    uint32_t node = hw_optical_shift(net, &net->lambda[queue]);
    if (net->lambda[queue].n == 0)
        core->waiting[w / 64] &= ~(UINT64_C(1) << w % 64);
    if (net->held != NULL)
        net->held[queue]--;
    core->n_waiting--;
    core->position = w + 1 < n_cores ? w + 1 : 0;
    core->moving = w;
    core->free_cycles = start + net->config.controller_cycles;
    net->nodes[node].at = core->free_cycles;
    store(net, number, node);
}

/* ---- time ---- */

/*
 * The messages that this side looks at next, into the host's cache. With many cores they have left it since they were
 * sent, and a driver comes back here only when it has brought all others as far.
 */
static void prefetch(const struct hw_optical *net, uint32_t number) {
    enum { AHEAD = 8 };
    const struct hw_optical_core *core = &net->cores[number];
    uint32_t n_cores = net->config.n_cores;
    if (core->coming.first != HW_OPTICAL_NONE)
        __builtin_prefetch(&net->nodes[core->coming.first]);
    if (core->n_waiting != 0) {
        const struct hw_optical_list *queue = &net->lambda[(size_t)number * n_cores + next_wavelength(core, n_cores)];
        __builtin_prefetch(&net->nodes[queue->first]);
        __builtin_prefetch(queue + AHEAD);
    }
}

void hw_optical_advance(struct hw_optical *net, uint32_t number, uint64_t now) {
    struct hw_optical_core *core = &net->cores[number];
    for (;;) {
        uint64_t start = core->n_waiting != 0 ? later(core->free_cycles, core->ready_cycles) : UINT64_MAX;
        uint32_t first = core->coming.first;
        if (first != HW_OPTICAL_NONE && net->nodes[first].at <= start) {
            if (net->nodes[first].at > now)
                break;
            arrive(net, number);
        } else {
            if (start > now)
                break;
            transfer(net, number, start);
        }
    }
    prefetch(net, number);
}

uint64_t hw_optical_next(const struct hw_optical *net, uint32_t number, uint32_t channel) {
    const struct hw_optical_core *core = &net->cores[number];
    const struct hw_optical_list *buffer = &net->buffers[(size_t)number * net->config.n_channels + channel];
    if (buffer->first != HW_OPTICAL_NONE)
        return net->nodes[buffer->first].at;
    if (core->n_waiting != 0)
        return core->free_cycles + net->config.controller_cycles;
    if (core->coming.first != HW_OPTICAL_NONE)
        return later(net->nodes[core->coming.first].at, core->free_cycles) + net->config.controller_cycles;
    return UINT64_MAX;
}
