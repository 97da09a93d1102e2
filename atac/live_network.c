/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages of real threads: the network of emu_hw under the run's lock, brought to the present at each call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live_share.h"
#include "pools.h"

enum { SHORT_NS = 20000 };

bool live_network_init(const struct hw_optical_config *config, uint32_t n_threads) {
    size_t bytes = (hw_optical_bytes(config) + 63) / 64 * 64;
    live.net_memory = aligned_alloc(64, bytes);
    if (live.net_memory == NULL)
        return false;
    memset(live.net_memory, 0, bytes);
    return hw_optical_init(&live.net, config, live.net_memory) &&
           (!live.shares ||
            sim_inboxes_init(&live.inboxes, n_threads, config->n_cores, config->n_channels, config->buffer_limit));
}

void live_network_free(void) {
    sim_inboxes_free(&live.inboxes);
    for (uint32_t i = 0; i < live.net.n_slots; i++)
        free(live.slots[i].data);
    free(live.slots);
    free(live.net.nodes);
    free(live.net.slots);
    free(live.net_memory);
}

void live_subscribe(uint32_t channel) {
    live_check();
    live_lock();
    if (live.shares)
        live_share_subscribe(channel);
    hw_optical_subscribe(&live.net, live_self->core, channel, live_cycles());
    live_unlock();
}

void live_set_filter(struct hw_filter filter) {
    live_check();
    live_lock();
    if (live.shares)
        filter = live_share_set_filter(filter);
    hw_optical_set_filter(&live.net, live_self->core, &filter, live_cycles());
    live_unlock();
}

/* ---- sending ---- */

static void extend(void) {
    if (live.shares)
        live_share_sort(live_cycles());
    void *data = live.slots;
    enum sim_pools_status status = sim_pools_grow(&live.net, live_cycles(), SIM_POOLS_MOST, &data, sizeof *live.slots);
    live.slots = data;
    if (status == SIM_POOLS_FULL)
        live_fail_locked(LIVE_TOO_FAST);
    if (status == SIM_POOLS_NO_MEMORY)
        live_fail_locked("no memory for messages under way");
}

static void keep_data(uint32_t slot, const void *data, uint32_t size) {
    live.slots[slot].sender = live_self->number;
    if (size > live.slots[slot].bytes) {
        void *room = realloc(live.slots[slot].data, size);
        if (room == NULL)
            live_fail_locked("no memory for a message");
        live.slots[slot].data = room;
        live.slots[slot].bytes = size;
    }
    if (size != 0)
        memcpy(live.slots[slot].data, data, size);
}

static void look_for_overflow(void) {
    char text[sizeof live.error];
    if (live.shares) {
        live_share_look_for_overflow();
        return;
    }
    if (live.net.config.buffer_limit == 0 || !live.net.overflowed)
        return;
    snprintf(text, sizeof text, "core %u: more than %u messages of channel %u, which no thread there reads",
             live.net.overflowed_core, live.net.config.buffer_limit, live.net.overflowed_channel);
    live_fail_locked(text);
}

/* Threads that wait for a message may have one now, or know when. */
static void tell_waiting(void) {
    uint64_t now = live_cycles();
    if (live.shares && live.net.config.buffer_limit != 0)
        live_share_sort(now);
    for (uint32_t i = 0; i < live.n_threads; i++) {
        struct live_thread *t = &live.threads[i];
        bool waits = t->wait == LIVE_FOR_MESSAGE;
        if (waits || live.net.config.buffer_limit != 0)
            hw_optical_advance(&live.net, t->core, now);
        if (waits && (hw_optical_next(&live.net, t->core, t->channel) != UINT64_MAX || live_share_has(t, t->channel)))
            live_wake(t);
    }
    look_for_overflow();
}

/* A message is sent when a cycle begins, so that it is not there before the model says. */
static uint64_t next_cycle(void) {
    return live_cycles() + live.costs;
}

void live_send(uint32_t channel, uint32_t signature, uint32_t tag, const void *data, uint32_t size) {
    struct hw_optical_message message = {
        .size = size, .tag = tag, .channel = channel, .signature = signature, .wavelength = live_self->core};
    enum hw_optical_status status;
    uint32_t slot;
    uint64_t now;
    live_check();
    live_lock();
    while ((status = hw_optical_send(&live.net, &message, now = next_cycle(), &slot)) != HW_OPTICAL_OK) {
        if (status == HW_OPTICAL_NO_MEMORY) {
            extend();
        } else if (status == HW_OPTICAL_FULL) {
            uint64_t retry = hw_optical_retry(&live.net, message.wavelength, now);
            live_unlock();
            live_wait_until(retry);
            live_lock();
        } else {
            live_fail_locked(hw_optical_status_name(status));
        }
    }
    keep_data(slot, data, size);
    if (live.shares)
        live_share_send(&message, now, data);
    tell_waiting();
    live_unlock();
}

/* ---- receiving ---- */

void live_copy(const struct hw_optical_message *head, const void *data, struct atac_received *to) {
    uint32_t size = head->size;
    to->head = *head;
    to->payload = 0;
    if (size != 0)
        memcpy(&to->payload, data, size < sizeof to->payload ? size : sizeof to->payload);
    if (size != 0 && to->room != 0)
        memcpy(to->data, data, size < to->room ? size : to->room);
}

static bool take(uint32_t channel, uint64_t now, struct atac_received *received) {
    struct hw_optical_received own;
    if (live.shares)
        return live_share_take(channel, now, received);
    if (!hw_optical_receive(&live.net, live_self->core, channel, now, &own))
        return false;
    live_copy(&own.message, live.slots[own.slot].data, received);
    return true;
}

/* With the lock: until the next message could be there, another one is sent, or the deadline. */
static void wait_for_message(uint32_t channel, uint64_t now, uint64_t deadline) {
    uint64_t next = hw_optical_next(&live.net, live_self->core, channel);
    uint64_t until = next < deadline ? next : deadline;
    if (until != UINT64_MAX && (until - now) * live.ns_a_cycle < SHORT_NS) {
        live_unlock();
        live_wait_until(until);
        live_lock();
        return;
    }
    live_self->channel = channel;
    live_block(LIVE_FOR_MESSAGE, until);
}

bool live_receive(uint32_t channel, uint64_t deadline, struct atac_received *received) {
    bool found;
    live_check();
    live_lock();
    for (uint64_t now; !(found = take(channel, now = live_cycles(), received));) {
        look_for_overflow();
        if (deadline <= now)
            break;
        wait_for_message(channel, now, deadline);
    }
    live_unlock();
    live_compute(live.net.config.check_cycles);
    return found;
}
