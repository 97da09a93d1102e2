/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program_share.h"

#include <stdlib.h>

bool sim_share_init(struct sim_program *p) {
    const struct sim_program_config *config = &p->config;
    if (config->n_threads <= config->n_cores)
        return true;
    p->core_free = calloc(config->n_cores, sizeof *p->core_free);
    return p->core_free != NULL && sim_inboxes_init(&p->inboxes, config->n_threads, config->n_cores,
                                                    config->optical.n_channels, config->optical.buffer_limit);
}

void sim_share_free(struct sim_program *p) {
    for (uint32_t i = 0; i < p->n_threads; i++)
        free(p->threads[i].letter);
    sim_inboxes_free(&p->inboxes);
    free(p->core_free);
}

/* Of failures the first one stays. */
static void deliver(struct sim_program *p, uint32_t core, const struct hw_optical_message *head, uint64_t sent_cycles,
                    const void *data) {
    struct sim_inboxes *all = &p->inboxes;
    bool room = sim_inboxes_deliver(all, core, head, sent_cycles, data);
    if (p->status != SIM_OK)
        return;
    if (!room)
        p->status = sim_refuse(&p->error, SIM_NO_MEMORY, "no memory for a message of %u bytes", head->size);
    else if (all->crowded)
        p->status = sim_refuse(&p->error, SIM_USAGE,
                               "core %u: more than %u messages of channel %u, which thread %u does not read", core,
                               all->most, all->crowded_channel, all->crowded_thread);
    else if (all->n_bytes > all->most_bytes)
        p->status = sim_refuse(&p->error, SIM_USAGE,
                               "%u messages are under way to %u cores: threads send faster than others receive",
                               all->n_letters, all->n_cores);
}

/* The core has been advanced to the present. */
static void sort(struct sim_program *p, uint32_t core, uint32_t channel) {
    struct hw_optical_received received;
    while (hw_optical_first(&p->optical, core, channel) <= sim_program_now(p)) {
        hw_optical_take(&p->optical, core, channel, &received);
        struct hw_optical_message head = received.message;
        head.wavelength = p->slots[received.slot].sender;
        deliver(p, core, &head, received.sent_cycles, p->slots[received.slot].data);
    }
}

static void sort_core(struct sim_program *p, uint32_t core) {
    hw_optical_advance(&p->optical, core, sim_program_now(p));
    for (uint32_t channel = 0; channel < p->n_channels; channel++)
        sort(p, core, channel);
}

void sim_share_sort(struct sim_program *p) {
    for (uint32_t core = 0; core < p->config.n_cores; core++)
        sort_core(p, core);
}

bool sim_share_look(struct sim_program *p, struct sim_fiber *t, uint32_t channel) {
    hw_optical_advance(&p->optical, t->core, sim_program_now(p));
    sort(p, t->core, channel);
    return sim_inboxes_has(&p->inboxes, t->number, channel);
}

bool sim_share_take(struct sim_program *p, struct sim_fiber *t, uint32_t channel, struct sim_message *message) {
    if (!sim_share_look(p, t, channel))
        return false;
    free(t->letter);
    t->letter = sim_inboxes_take(&p->inboxes, t->number, channel);
    *message =
        (struct sim_message){.head = t->letter->head, .sent_cycles = t->letter->sent_cycles, .data = t->letter->data};
    return true;
}

void sim_share_subscribe(struct sim_program *p, struct sim_fiber *t, uint32_t channel) {
    sort_core(p, t->core);
    sim_inboxes_subscribe(&p->inboxes, t->number, channel);
}

struct hw_filter sim_share_set_filter(struct sim_program *p, struct sim_fiber *t, struct hw_filter filter) {
    sort_core(p, t->core);
    return sim_inboxes_set_filter(&p->inboxes, t->number, filter);
}

void sim_share_send(struct sim_program *p, struct sim_fiber *t, const struct hw_optical_message *message,
                    const void *data) {
    struct hw_optical_message head = *message;
    head.wavelength = t->number;
    deliver(p, t->core, &head, sim_program_now(p), data);
    for (uint32_t i = t->core; i < p->n_threads; i += p->config.n_cores) {
        struct sim_fiber *other = &p->threads[i];
        if (other != t && other->wait == SIM_FOR_MESSAGE && other->channel == head.channel)
            sim_fiber_call(p, other, sim_program_now(p));
    }
}

void sim_share_tell_spinning(struct sim_program *p, const struct sim_fiber *writer, uint32_t core, uint32_t line,
                             uint64_t at) {
    for (uint32_t i = core; i < p->n_threads; i += p->config.n_cores) {
        struct sim_fiber *t = &p->threads[i];
        if (t != writer && t->wait == SIM_FOR_CHANGE && t->word / SIM_WORDS_OF_LINE == line)
            sim_fiber_call(p, t, at);
    }
}
