/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "inbox.h"

#include <stdlib.h>
#include <string.h>

static struct sim_inbox *inbox_of(const struct sim_inboxes *all, uint32_t thread, uint32_t channel) {
    return &all->inboxes[(size_t)thread * all->n_channels + channel];
}

bool sim_inboxes_init(struct sim_inboxes *all, uint32_t n_threads, uint32_t n_cores, uint32_t n_channels,
                      uint32_t most) {
    *all = (struct sim_inboxes){.n_threads = n_threads,
                                .n_cores = n_cores,
                                .n_channels = n_channels,
                                .most_bytes = SIM_INBOXES_MOST_BYTES,
                                .most = most};
    all->inboxes = calloc((size_t)n_threads * n_channels, sizeof *all->inboxes);
    all->filters = calloc(n_threads, sizeof *all->filters);
    if (all->inboxes == NULL || all->filters == NULL)
        return false;
    for (uint32_t i = 0; i < n_threads; i++)
        all->filters[i] = hw_filter_open();
    return true;
}

void sim_inboxes_free(struct sim_inboxes *all) {
    size_t n = all->inboxes != NULL ? (size_t)all->n_threads * all->n_channels : 0;
    for (size_t i = 0; i < n; i++)
        for (struct sim_letter *letter = all->inboxes[i].first, *next; letter != NULL; letter = next) {
            next = letter->next;
            free(letter);
        }
    free(all->inboxes);
    free(all->filters);
    *all = (struct sim_inboxes){0};
}

void sim_inboxes_subscribe(struct sim_inboxes *all, uint32_t thread, uint32_t channel) {
    inbox_of(all, thread, channel)->subscribed = true;
}

static bool is_same(const struct hw_filter *a, const struct hw_filter *b) {
    return a->mask == b->mask && a->op == b->op && a->signature == b->signature;
}

struct hw_filter sim_inboxes_set_filter(struct sim_inboxes *all, uint32_t thread, struct hw_filter filter) {
    all->filters[thread] = filter;
    for (uint32_t other = thread % all->n_cores; other < all->n_threads; other += all->n_cores)
        if (!is_same(&all->filters[other], &filter))
            return hw_filter_open();
    return filter;
}

static bool put(struct sim_inboxes *all, uint32_t thread, const struct hw_optical_message *head, uint64_t sent_cycles,
                const void *data) {
    struct sim_inbox *inbox = inbox_of(all, thread, head->channel);
    struct sim_letter *letter = malloc(sizeof *letter + head->size);
    if (letter == NULL)
        return false;
    *letter = (struct sim_letter){.head = *head, .sent_cycles = sent_cycles};
    if (head->size != 0)
        memcpy(letter->data, data, head->size);
    if (inbox->first == NULL)
        inbox->first = letter;
    else
        inbox->last->next = letter;
    inbox->last = letter;
    inbox->n++;
    all->n_letters++;
    all->n_bytes += sizeof *letter + head->size;
    if (all->most != 0 && inbox->n > all->most && !all->crowded) {
        all->crowded = true;
        all->crowded_thread = thread;
        all->crowded_channel = head->channel;
    }
    return true;
}

bool sim_inboxes_deliver(struct sim_inboxes *all, uint32_t core, const struct hw_optical_message *head,
                         uint64_t sent_cycles, const void *data) {
    for (uint32_t thread = core; thread < all->n_threads; thread += all->n_cores)
        if (thread != head->wavelength && inbox_of(all, thread, head->channel)->subscribed &&
            hw_filter_passes(&all->filters[thread], head->signature) && !put(all, thread, head, sent_cycles, data))
            return false;
    return true;
}

bool sim_inboxes_has(const struct sim_inboxes *all, uint32_t thread, uint32_t channel) {
    return inbox_of(all, thread, channel)->first != NULL;
}

struct sim_letter *sim_inboxes_take(struct sim_inboxes *all, uint32_t thread, uint32_t channel) {
    struct sim_inbox *inbox = inbox_of(all, thread, channel);
    struct sim_letter *letter = inbox->first;
    if (letter != NULL) {
        inbox->first = letter->next;
        inbox->n--;
        all->n_letters--;
        all->n_bytes -= sizeof *letter + letter->head.size;
    }
    return letter;
}
