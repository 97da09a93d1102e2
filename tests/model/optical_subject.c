/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "optical_subject.h"

#include <string.h>

bool optical_subject_init(struct optical_subject *s, const struct hw_optical_config *config) {
    memset(s, 0, sizeof *s);
    if (config->n_cores > OPTICAL_MAX_CORES || config->n_channels > OPTICAL_CHANNELS ||
        hw_optical_bytes(config) > sizeof s->memory || !hw_optical_init(&s->net, config, s->memory))
        return false;
    hw_optical_extend(&s->net, s->nodes, OPTICAL_RECORDS, s->slots, OPTICAL_MAX_MESSAGES);
    for (uint32_t i = 0; i < config->n_cores; i++)
        s->ref.filter[i] = hw_filter_open();
    return true;
}

/* ---- the reference ---- */

static void forget(struct optical_ref *ref, uint32_t i) {
    memmove(&ref->records[i], &ref->records[i + 1], (--ref->n_records - i) * sizeof *ref->records);
    ref->records[ref->n_records] = (struct record){0}; /* equal states are equal bytes */
}

static bool passes(const struct hw_filter *f, uint32_t signature) {
    uint32_t and = signature & f->mask & f->signature;
    uint32_t or = (signature & f->mask) | f->signature;
    return (f->op == HW_FILTER_AND ? and : f->op == HW_FILTER_OR ? or : or &~and) != 0;
}

static void ref_arrivals(struct optical_ref *ref, uint32_t core, uint64_t now) {
    for (uint32_t i = 0; i < ref->n_records;) {
        struct record *r = &ref->records[i++];
        if (r->to != core || r->state != RECORD_COMING || r->at != now)
            continue;
        r->state = RECORD_QUEUED;
        if (!passes(&ref->filter[core], r->signature) || !ref->subscribed[core][r->channel]) {
            ref->n_filtered++;
            forget(ref, --i);
        }
    }
}

/* The first message of the first wavelength, from the controller's position on. */
static struct record *ref_choice(struct optical_ref *ref, uint32_t core, uint32_t n_cores) {
    for (uint32_t k = 0; k < n_cores; k++)
        for (uint32_t i = 0; i < ref->n_records; i++) {
            struct record *r = &ref->records[i];
            if (r->to == core && r->state == RECORD_QUEUED && r->from == (ref->position[core] + k) % n_cores)
                return r;
        }
    return NULL;
}

static uint32_t ref_buffered(const struct optical_ref *ref, uint32_t core, uint32_t channel) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < ref->n_records; i++)
        n += ref->records[i].to == core && ref->records[i].channel == channel && ref->records[i].state == RECORD_MOVED;
    return n;
}

static void ref_advance(struct optical_subject *s, uint32_t core, uint64_t now) {
    struct optical_ref *ref = &s->ref;
    for (uint64_t t = ref->now[core]; t <= now; t++) {
        ref_arrivals(ref, core, t);
        struct record *r;
        while (ref->free[core] <= t && (r = ref_choice(ref, core, s->net.config.n_cores)) != NULL) {
            r->state = RECORD_MOVED;
            r->moved = ref->n_moved[core]++;
            r->at = ref->free[core] = t + s->net.config.controller_cycles;
            ref->moving[core] = r->from;
            ref->position[core] = (r->from + 1u) % s->net.config.n_cores;
            if (s->net.config.buffer_limit != 0 && ref_buffered(ref, core, r->channel) > s->net.config.buffer_limit)
                ref->overflowed[core][r->channel] = true;
        }
    }
    /* This cycle is over: nothing that is sent now arrives in it. */
    ref->now[core] = now + 1;
}

static uint32_t ref_places(const struct optical_ref *ref, uint32_t to, uint32_t from, uint64_t now) {
    uint32_t n = ref->free[to] > now && ref->moving[to] == from;
    for (uint32_t i = 0; i < ref->n_records; i++)
        n += ref->records[i].to == to && ref->records[i].from == from && ref->records[i].state != RECORD_MOVED;
    return n;
}

static bool ref_has_room(struct optical_subject *s, uint32_t from, uint64_t now) {
    const struct hw_optical_config *c = &s->net.config;
    for (uint32_t to = 0; to < c->n_cores; to++)
        if (to != from)
            ref_advance(s, to, now);
    for (uint32_t to = 0; c->lambda_limit != 0 && to < c->n_cores; to++)
        if (to != from && ref_places(&s->ref, to, from, now) >= c->lambda_limit)
            return false;
    return true;
}

/* ---- both ---- */

static const char *check(const struct optical_subject *s) {
    const char *why;
    if (s->net.overflowed && !s->ref.overflowed[s->net.overflowed_core][s->net.overflowed_channel])
        return "a message buffer is not over its limit";
    return hw_optical_is_valid(&s->net, &why) ? NULL : why;
}

/* The arrivals of clusters are the model's; the unit tests compute them by hand. */
static uint64_t arrival_at(const struct optical_subject *s, uint32_t to, uint32_t slot, uint64_t at) {
    if (s->net.config.shape == HW_OPTICAL_FLAT)
        return at + s->net.config.transport_cycles;
    for (uint32_t node = s->net.cores[to].coming.first; node != HW_OPTICAL_NONE; node = s->net.nodes[node].next)
        if (s->net.nodes[node].slot == slot)
            return s->net.nodes[node].at;
    return 0;
}

const char *optical_subject_send(struct optical_subject *s, const struct hw_optical_message *message, uint64_t at) {
    struct optical_ref *ref = &s->ref;
    uint32_t from = message->wavelength, n = s->net.config.n_cores, slot;
    bool full = from < n && !ref_has_room(s, from, at);
    if (s->net.n_free_slots == 0) /* not before messages have been taken */
        return NULL;
    enum hw_optical_status status = hw_optical_send(&s->net, message, at, &slot);
    enum hw_optical_status wanted = from >= n                                      ? HW_OPTICAL_BAD_CORE
                                    : message->channel >= s->net.config.n_channels ? HW_OPTICAL_BAD_CHANNEL
                                    : message->size > HW_OPTICAL_MAX_BYTES         ? HW_OPTICAL_BAD_SIZE
                                    : full                                         ? HW_OPTICAL_FULL
                                                                                   : HW_OPTICAL_OK;
    if (status != wanted)
        return "another status than the reference's";
    if (status == HW_OPTICAL_FULL && ++ref->n_refused && hw_optical_retry(&s->net, from, at) <= at)
        return "a retry at once";
    if (status != HW_OPTICAL_OK)
        return check(s);
    s->numbers[slot] = ++ref->n_sent[from];
    for (uint32_t to = 0; to < n; to++)
        if (to != from)
            ref->records[ref->n_records++] = (struct record){.at = arrival_at(s, to, slot, at),
                                                             .signature = message->signature,
                                                             .number = ref->n_sent[from],
                                                             .from = (uint8_t)from,
                                                             .to = (uint8_t)to,
                                                             .channel = (uint8_t)message->channel,
                                                             .state = RECORD_COMING};
    return check(s);
}

/* The message that has been in the buffer for longest: transfers end one after the other. */
static uint32_t ref_first(const struct optical_ref *ref, uint32_t core, uint32_t channel, uint64_t now) {
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < ref->n_records; i++) {
        const struct record *r = &ref->records[i];
        if (r->to == core && r->channel == channel && r->state == RECORD_MOVED && r->at <= now &&
            (first == UINT32_MAX || r->moved < ref->records[first].moved))
            first = i;
    }
    return first;
}

static const char *received_is_right(struct optical_subject *s, uint32_t core, uint32_t channel, uint32_t i,
                                     const struct hw_optical_received *got) {
    struct optical_ref *ref = &s->ref;
    const struct record *r = &ref->records[i];
    uint32_t *last = &ref->last_number[core][r->from][channel];
    uint32_t number = s->numbers[got->slot];
    if (got->message.wavelength != r->from || number != r->number)
        return "another message than the reference's";
    if (got->message.channel != channel || got->message.signature != r->signature || got->available_cycles != r->at)
        return "a message has changed on its way";
    if (number <= *last)
        return "a sender's messages are not in order, or one came twice";
    if (s->net.config.shape == HW_OPTICAL_FLAT && r->at < ref->bound[core][channel])
        return "a message came before hw_optical_next said";
    *last = number;
    ref->n_received++;
    forget(ref, i);
    return NULL;
}

const char *optical_subject_receive(struct optical_subject *s, uint32_t core, uint32_t channel, uint64_t now) {
    struct optical_ref *ref = &s->ref;
    struct hw_optical_received got;
    ref_advance(s, core, now);
    uint32_t i = ref_first(ref, core, channel, now);
    bool found = hw_optical_receive(&s->net, core, channel, now, &got);
    for (uint32_t c = 0; c < s->net.config.n_channels; c++)
        if (ref->overflowed[core][c] && !s->net.overflowed)
            return "a message buffer is over its limit, and that was not noticed";
    if (found != (i != UINT32_MAX))
        return found ? "a message that the reference has not" : "no message, but the reference has one";
    const char *why = found ? received_is_right(s, core, channel, i, &got) : NULL;
    if (why != NULL)
        return why;
    ref->bound[core][channel] = hw_optical_next(&s->net, core, channel);
    if (!found && ref->bound[core][channel] <= now)
        return "hw_optical_next is not in the future";
    if (ref->bound[core][channel] == UINT64_MAX) /* holds only for what has been sent */
        ref->bound[core][channel] = 0;
    return check(s);
}

const char *optical_subject_subscribe(struct optical_subject *s, uint32_t core, uint32_t channel, bool on,
                                      uint64_t now) {
    enum hw_optical_status status =
        on ? hw_optical_subscribe(&s->net, core, channel, now) : hw_optical_unsubscribe(&s->net, core, channel, now);
    if (core >= s->net.config.n_cores || channel >= s->net.config.n_channels)
        return status == HW_OPTICAL_OK ? "a subscription out of range" : check(s);
    ref_advance(s, core, now);
    s->ref.subscribed[core][channel] = on;
    return status == HW_OPTICAL_OK ? check(s) : "no subscription";
}

const char *optical_subject_filter(struct optical_subject *s, uint32_t core, const struct hw_filter *filter,
                                   uint64_t now) {
    bool possible = core < s->net.config.n_cores && (uint32_t)filter->op < 3;
    if ((hw_optical_set_filter(&s->net, core, filter, now) == HW_OPTICAL_OK) != possible)
        return "a filter was set that cannot be, or the other way round";
    if (!possible)
        return check(s);
    ref_advance(s, core, now);
    s->ref.filter[core] = *filter;
    return check(s);
}
