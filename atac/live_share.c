/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "live_share.h"

#include <stdio.h>
#include <stdlib.h>

static void deliver(uint32_t core, const struct hw_optical_message *head, uint64_t sent_cycles, const void *data) {
    if (!sim_inboxes_deliver(&live.inboxes, core, head, sent_cycles, data))
        live_fail_locked("no memory for a message");
    if (live.inboxes.n_bytes > live.inboxes.most_bytes)
        live_fail_locked(LIVE_TOO_FAST);
}

static void sort(uint32_t core, uint32_t channel, uint64_t now) {
    struct hw_optical_received received;
    while (hw_optical_receive(&live.net, core, channel, now, &received)) {
        struct hw_optical_message head = received.message;
        head.wavelength = live.slots[received.slot].sender;
        deliver(core, &head, received.sent_cycles, live.slots[received.slot].data);
    }
}

static void sort_core(uint32_t core, uint64_t now) {
    for (uint32_t channel = 0; channel < live.n_channels; channel++)
        sort(core, channel, now);
}

void live_share_sort(uint64_t now) {
    for (uint32_t core = 0; core < live.net.config.n_cores; core++)
        sort_core(core, now);
}

bool live_share_has(const struct live_thread *t, uint32_t channel) {
    return live.shares && sim_inboxes_has(&live.inboxes, t->number, channel);
}

bool live_share_take(uint32_t channel, uint64_t now, struct atac_received *received) {
    sort(live_self->core, channel, now);
    struct sim_letter *letter = sim_inboxes_take(&live.inboxes, live_self->number, channel);
    if (letter == NULL)
        return false;
    live_copy(&letter->head, letter->data, received);
    free(letter);
    return true;
}

void live_share_subscribe(uint32_t channel) {
    sort_core(live_self->core, live_cycles());
    sim_inboxes_subscribe(&live.inboxes, live_self->number, channel);
}

struct hw_filter live_share_set_filter(struct hw_filter filter) {
    sort_core(live_self->core, live_cycles());
    return sim_inboxes_set_filter(&live.inboxes, live_self->number, filter);
}

void live_share_send(const struct hw_optical_message *message, uint64_t now, const void *data) {
    struct hw_optical_message head = *message;
    head.wavelength = live_self->number;
    deliver(live_self->core, &head, now, data);
}

void live_share_look_for_overflow(void) {
    const struct sim_inboxes *all = &live.inboxes;
    char text[sizeof live.error];
    if (!all->crowded)
        return;
    snprintf(text, sizeof text, "core %u: more than %u messages of channel %u, which thread %u does not read",
             all->crowded_thread % all->n_cores, all->most, all->crowded_channel, all->crowded_thread);
    live_fail_locked(text);
}
