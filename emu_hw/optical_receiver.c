/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "optical_receiver.h"

static inline uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* ---- what is coming ---- */

struct coming {
    uint64_t at; /* UINT64_MAX: none */
    uint32_t slot;
};

/* The first message of the log that the core has not passed; its own are among them. There is one. */
static uint32_t unpassed(const struct hw_optical *net, const struct hw_optical_core *core) {
    uint32_t slot = core->next;
    if (slot == HW_OPTICAL_NONE) {
        slot = net->last_logged;
        for (uint64_t n = net->n_logged - core->n_passed; n > 1; n--)
            slot = net->slots[slot].earlier;
    }
    return slot;
}

static void pass_in_log(struct hw_optical *net, struct hw_optical_core *core, uint32_t slot) {
    core->next = net->slots[slot].later;
    core->n_passed++;
}

/*
 * The core passes those of its own messages that come before any other. Its next message is never its own: what it
 * sends when it has passed all is passed at once, and else another core's message is before.
 */
static void pass_own(struct hw_optical *net, uint32_t number) {
    struct hw_optical_core *core = &net->cores[number];
    while (core->n_passed != net->n_logged) {
        core->next = unpassed(net, core);
        if (net->slots[core->next].message.wavelength != number)
            return;
        uint32_t slot = core->next;
        pass_in_log(net, core, slot);
        hw_optical_drop(net, slot);
    }
}

static struct coming coming(const struct hw_optical *net, uint32_t number) {
    const struct hw_optical_core *core = &net->cores[number];
    if (!hw_optical_is_flat(net)) {
        uint32_t node = core->coming.first;
        if (node == HW_OPTICAL_NONE)
            return (struct coming){.at = UINT64_MAX};
        return (struct coming){.at = net->nodes[node].at, .slot = net->nodes[node].slot};
    }
    if (core->n_passed == net->n_logged)
        return (struct coming){.at = UINT64_MAX};
    uint32_t slot = unpassed(net, core);
    return (struct coming){.at = net->slots[slot].sent_cycles + net->config.transport_cycles, .slot = slot};
}

/* The first message that is coming has come. In the flat network the core has passed its own. */
static void has_come(struct hw_optical *net, uint32_t number, uint32_t slot) {
    struct hw_optical_core *core = &net->cores[number];
    if (hw_optical_is_flat(net)) {
        pass_in_log(net, core, slot);
        pass_own(net, number);
    } else {
        hw_optical_give_node(net, hw_optical_shift(net, &core->coming));
    }
}

/* ---- runs of transfers ---- */

/* Do arrivals come later than what has been advanced, and in the order of being sent, so that there is a lookahead? */
static bool has_lookahead(const struct hw_optical *net) {
    const struct hw_optical_config *c = &net->config;
    return c->shape == HW_OPTICAL_FLAT && c->transport_cycles != 0 && c->controller_cycles != 0 &&
           c->lambda_limit == 0 && c->buffer_limit == 0;
}

/* The wavelength at which a controller looks after `w`. It has none of its own core. */
static uint32_t behind(const struct hw_optical *net, uint32_t number, uint32_t w) {
    uint32_t n_cores = net->config.n_cores, next = w + 1 < n_cores ? w + 1 : 0;
    if (next == number)
        next = next + 1 < n_cores ? next + 1 : 0;
    return next;
}

/* How many wavelengths a controller goes on from `from` to `to`. */
static uint32_t steps(const struct hw_optical *net, uint32_t number, uint32_t from, uint32_t to) {
    uint32_t n = to >= from ? to - from : to + net->config.n_cores - from;
    bool passes_own = from < to ? from < number && number < to : from > to && (number > from || number < to);
    return passes_own ? n - 1 : n;
}

/* A transfer begins. */
static void note_transfer(const struct hw_optical *net, uint32_t number, uint32_t w, uint64_t start) {
    struct hw_optical_run *run = &net->cores[number].run;
    uint32_t cycles = net->config.controller_cycles;
    if (run->n == 0 || start != run->start_cycles + (uint64_t)run->n * cycles ||
        steps(net, number, run->wavelength, w) != run->n % (net->config.n_cores - 1)) {
        *run = (struct hw_optical_run){.wavelength = w, .n = 1, .start_cycles = start};
        return;
    }
    if (++run->n < net->config.n_cores)
        return;
    run->wavelength = behind(net, number, run->wavelength);
    run->start_cycles += cycles;
    run->n--;
}

/* 1: a message of the wavelength that arrives at `at` finds one queued, though the transfer of that one is noted. */
static uint32_t was_queued(const struct hw_optical *net, uint32_t number, uint32_t w, uint64_t at) {
    const struct hw_optical_run *run = &net->cores[number].run;
    if (run->n == 0 || !has_lookahead(net) ||
        run->start_cycles + (uint64_t)(run->n - 1) * net->config.controller_cycles < at)
        return 0;
    uint32_t k = steps(net, number, run->wavelength, w);
    return k < run->n && run->start_cycles + (uint64_t)k * net->config.controller_cycles >= at;
}

/* ---- filters ---- */

static void arrive(struct hw_optical *net, uint32_t number, uint32_t slot, uint64_t at) {
    struct hw_optical_core *core = &net->cores[number];
    const struct hw_optical_message *message = &net->slots[slot].message;
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
        hw_optical_drop_copy(net, slot);
        return;
    }
    if (core->n_waiting++ == 0)
        core->ready_cycles = at;
    core->waiting[w / 64] |= UINT64_C(1) << w % 64;
    hw_optical_enqueue(net, &net->lambda[queue], slot);
    uint32_t n = net->lambda[queue].n + was_queued(net, number, w, at);
    if (n > core->counts.max_lambda)
        core->counts.max_lambda = n;
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
    uint32_t slot = hw_optical_dequeue(net, &net->lambda[queue]);
    if (net->lambda[queue].n == 0)
        core->waiting[w / 64] &= ~(UINT64_C(1) << w % 64);
    if (net->held != NULL)
        net->held[queue]--;
    core->n_waiting--;
    core->position = w + 1 < n_cores ? w + 1 : 0;
    core->moving = w;
    note_transfer(net, number, w, start);
    core->free_cycles = start + net->config.controller_cycles;
    store(net, number, hw_optical_take_node(net, slot, core->free_cycles));
}

/* ---- time ---- */

/*
 * The lambda queue that this side looks at next, into the host's cache. With many cores it has left it since the
 * message came, and a driver comes back here only when it has brought all others as far.
 */
static void prefetch(const struct hw_optical *net, uint32_t number) {
    const struct hw_optical_core *core = &net->cores[number];
    uint32_t n_cores = net->config.n_cores;
    if (core->n_waiting != 0)
        __builtin_prefetch(&net->lambda[(size_t)number * n_cores + next_wavelength(core, n_cores)]);
}

void hw_optical_advance(struct hw_optical *net, uint32_t number, uint64_t now) {
    struct hw_optical_core *core = &net->cores[number];
    /* Of many looks before the first message arrives only one walks back through the log. */
    if (hw_optical_is_flat(net) && core->n_passed != net->n_logged)
        core->next = unpassed(net, core);
    for (;;) {
        uint64_t start = core->n_waiting != 0 ? later(core->free_cycles, core->ready_cycles) : UINT64_MAX;
        struct coming first = coming(net, number);
        if (first.at <= start && first.at != UINT64_MAX) {
            if (first.at > now)
                break;
            has_come(net, number, first.slot);
            arrive(net, number, first.slot, first.at);
        } else {
            if (start > now)
                break;
            transfer(net, number, start);
        }
    }
    prefetch(net, number);
}

bool hw_optical_is_certain(const struct hw_optical *net, uint32_t number, uint64_t known, uint64_t until) {
    const struct hw_optical_core *core = &net->cores[number];
    uint32_t cycles = net->config.controller_cycles, w = core->position;
    if (core->n_waiting == 0 || !has_lookahead(net))
        return false;
    uint64_t start = later(core->free_cycles, core->ready_cycles);
    if (start > until)
        return true;
    uint64_t n = (until - start) / cycles + 1;
    /* A run has each wavelength once: it tells of all transfers that are early. */
    if (n >= core->n_waiting || (until > known && (until - known) / cycles + 1 >= net->config.n_cores))
        return false;
    for (w = w == number ? behind(net, number, w) : w; n > 0; n--, w = behind(net, number, w))
        if (!hw_optical_bit(core->waiting, w))
            return false;
    return true;
}

uint64_t hw_optical_next(const struct hw_optical *net, uint32_t number, uint32_t channel) {
    const struct hw_optical_core *core = &net->cores[number];
    const struct hw_optical_list *buffer = &net->buffers[(size_t)number * net->config.n_channels + channel];
    if (buffer->first != HW_OPTICAL_NONE)
        return net->nodes[buffer->first].at;
    if (core->n_waiting != 0)
        return core->free_cycles + net->config.controller_cycles;
    struct coming first = coming(net, number);
    return first.at != UINT64_MAX ? later(first.at, core->free_cycles) + net->config.controller_cycles : UINT64_MAX;
}
