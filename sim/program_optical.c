/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages of simulated threads. */
#include "pools.h"
#include "program_share.h"

static void check_channel(struct sim_program *p, uint32_t channel) {
    if (channel >= p->n_channels)
        sim_program_fail(p, "thread %u: there is no channel %u", p->running->number, channel);
}

uint32_t sim_n_channels(struct sim_program *p) {
    sim_program_settle(p);
    return p->config.optical.n_channels - p->n_channels;
}

uint32_t sim_channel(struct sim_program *p) {
    sim_program_settle(p);
    if (p->n_channels == p->config.optical.n_channels)
        sim_program_fail(p, "more than %u channels", p->n_channels);
    return p->n_channels++;
}

void sim_subscribe(struct sim_program *p, uint32_t channel) {
    check_channel(p, channel);
    sim_fiber_settle(p, p->running);
    if (p->core_free != NULL)
        sim_share_subscribe(p, p->running, channel);
    hw_optical_subscribe(&p->optical, p->running->core, channel, sim_program_now(p));
}

void sim_set_filter(struct sim_program *p, struct hw_filter filter) {
    sim_fiber_settle(p, p->running);
    if (p->core_free != NULL && hw_filter_possible(&filter))
        filter = sim_share_set_filter(p, p->running, filter);
    if (hw_optical_set_filter(&p->optical, p->running->core, &filter, sim_program_now(p)) != HW_OPTICAL_OK)
        sim_program_fail(p, "thread %u: there is no filter operation %u", p->running->number, (unsigned)filter.op);
}

/* ---- sending ---- */

static void extend(struct sim_program *p) {
    if (p->core_free != NULL)
        sim_share_sort(p);
    void *data = p->slots;
    enum sim_pools_status status =
        sim_pools_grow(&p->optical, sim_program_now(p), SIM_POOLS_MOST, &data, sizeof *p->slots);
    p->slots = data;
    if (status == SIM_POOLS_FULL)
        sim_program_fail(p, "%u messages are under way to %u cores: threads send faster than others receive",
                         p->optical.n_slots - p->optical.n_free_slots, p->config.n_cores);
    if (status == SIM_POOLS_NO_MEMORY)
        sim_program_fail(p, "no memory for messages under way");
}

static void keep_data(struct sim_program *p, uint32_t slot, const void *data, uint32_t size) {
    p->slots[slot].sender = p->running->number;
    if (size > p->slots[slot].bytes) {
        void *room = realloc(p->slots[slot].data, size);
        if (room == NULL)
            sim_program_fail(p, "no memory for a message of %u bytes", size);
        p->slots[slot].data = room;
        p->slots[slot].bytes = size;
    }
    if (size != 0)
        memcpy(p->slots[slot].data, data, size);
}

static void look_for_overflow(struct sim_program *p) {
    /* The hardware's buffer may have been full of what filters refuse: inboxes have the limit. */
    if (p->core_free != NULL) {
        sim_share_sort(p);
        return;
    }
    for (uint32_t core = 0; core < p->config.n_cores; core++)
        hw_optical_advance(&p->optical, core, sim_program_now(p));
    if (p->optical.overflowed)
        sim_program_fail(p, "core %u: more than %u messages of channel %u, which no thread there reads",
                         p->optical.overflowed_core, p->config.optical.buffer_limit, p->optical.overflowed_channel);
}

/* When the thread looks next. The answer: is that known? */
static bool set_alarm(struct sim_program *p, struct sim_fiber *t) {
    uint64_t next = hw_optical_next(&p->optical, t->core, t->channel);
    if (next >= t->alarm)
        return t->alarm != UINT64_MAX;
    t->alarm = next;
    sim_fiber_call(p, t, next);
    return true;
}

/* Threads that wait for a message may have one now. */
static void tell_waiting(struct sim_program *p) {
    bool flat = p->config.optical.shape == HW_OPTICAL_FLAT;
    for (uint32_t w = 0; w < SIM_MAX_CORES / 64; w++)
        for (uint64_t rest = p->waiting[w]; rest != 0; rest &= rest - 1) {
            uint32_t number = w * 64 + (uint32_t)__builtin_ctzll(rest);
            struct sim_fiber *t = &p->threads[number];
            /* In a flat network no later message makes it earlier. */
            if (set_alarm(p, t) && flat)
                p->waiting[w] &= ~(UINT64_C(1) << number % 64);
        }
}

void sim_send(struct sim_program *p, uint32_t channel, uint32_t signature, uint32_t tag, const void *data,
              uint32_t size) {
    struct sim_fiber *t = p->running;
    struct hw_optical_message message = {
        .size = size, .tag = tag, .channel = channel, .signature = signature, .wavelength = t->core};
    enum hw_optical_status status;
    uint32_t slot;
    check_channel(p, channel);
    sim_fiber_settle(p, t);
    while ((status = hw_optical_send(&p->optical, &message, sim_program_now(p), &slot)) != HW_OPTICAL_OK) {
        if (status == HW_OPTICAL_NO_MEMORY) {
            extend(p);
        } else if (status == HW_OPTICAL_FULL) {
            sim_fiber_call(p, t, hw_optical_retry(&p->optical, t->core, sim_program_now(p)));
            sim_fiber_stop(p, t, SIM_FOR_TIME, sim_fiber_goes_on);
        } else {
            sim_program_fail(p, "thread %u: message of %u bytes: %s", t->number, size, hw_optical_status_name(status));
        }
    }
    keep_data(p, slot, data, size);
    if (p->core_free != NULL)
        sim_share_send(p, t, &message, data);
    tell_waiting(p);
    if (p->config.optical.buffer_limit != 0)
        look_for_overflow(p);
    if (p->status != SIM_OK)
        sim_fiber_leave(p, &t->stack);
}

/* ---- receiving ---- */

static void give(const struct sim_program *p, const struct hw_optical_received *received, struct sim_message *message) {
    *message = (struct sim_message){
        .head = received->message, .sent_cycles = received->sent_cycles, .data = p->slots[received->slot].data};
}

static bool take(struct sim_program *p, struct sim_fiber *t, uint32_t channel, struct sim_message *message) {
    struct hw_optical_received received;
    if (p->core_free != NULL)
        return sim_share_take(p, t, channel, message);
    if (!hw_optical_receive(&p->optical, t->core, channel, sim_program_now(p), &received))
        return false;
    give(p, &received, message);
    return true;
}

/*
 * A thread that has computed ahead of the events need not wait for them if the message that it will find is known. In
 * the flat network that is so for all that arrives before a message sent now could: no other thread can change it, and
 * this one's filter and channels change later. What it takes early, no other thread sees: with limits they would, by
 * the places in queues.
 *
 * True: it has the message, and is ahead to the time of the look. False: it has to wait; if only for a time that is
 * known, it is ahead to that.
 */
static bool take_ahead(struct sim_program *p, struct sim_fiber *t, uint32_t channel, uint64_t deadline,
                       struct sim_message *message) {
    const struct hw_optical_config *config = &p->config.optical;
    if (p->core_free != NULL || config->shape != HW_OPTICAL_FLAT || config->lambda_limit != 0 ||
        config->buffer_limit != 0)
        return false;
    uint64_t now = sim_program_now(p), own = now + t->ahead;
    uint64_t known = now + t->hopped + (config->transport_cycles != 0 ? config->transport_cycles - 1 : 0);
    hw_optical_advance(&p->optical, t->core, own < known ? own : known);
    uint64_t first = hw_optical_first(&p->optical, t->core, channel);
    if (first <= deadline && first != UINT64_MAX) {
        struct hw_optical_received received;
        hw_optical_take(&p->optical, t->core, channel, &received);
        give(p, &received, message);
        t->ahead = first > own ? first - now : t->ahead;
        return true;
    }
    uint64_t next = hw_optical_next(&p->optical, t->core, channel);
    if (next > own && next <= deadline && next != UINT64_MAX)
        t->ahead = next - now;
    return false;
}

/*
 * The thread has to wait for the time to which it is ahead. But if its core's controller is certain to go through
 * messages that are there until then, and until a message sent then could arrive, it finds the same now as then, and so
 * does the next take_ahead. True: it has the message, and that event is a hop.
 */
static bool take_at_hop(struct sim_program *p, struct sim_fiber *t, uint32_t channel, struct sim_message *message) {
    uint64_t now = sim_program_now(p), own = now + t->ahead, lookahead = p->config.optical.transport_cycles;
    struct hw_optical_received received;
    if (p->core_free != NULL || t->ahead == t->hopped || t->n_hops == SIM_MAX_HOPS ||
        !hw_optical_is_certain(&p->optical, t->core, now + lookahead - 1, own + lookahead - 1) ||
        !hw_optical_receive(&p->optical, t->core, channel, own, &received))
        return false;
    t->hopped = t->hops[t->n_hops++] = t->ahead;
    give(p, &received, message);
    return true;
}

bool sim_receive(struct sim_program *p, uint32_t channel, struct sim_message *message) {
    struct sim_fiber *t = p->running;
    check_channel(p, channel);
    bool found = take_ahead(p, t, channel, sim_cycles(p), message) || take_at_hop(p, t, channel, message);
    if (!found) {
        sim_fiber_settle(p, t);
        found = take(p, t, channel, message);
    }
    sim_compute(p, p->config.optical.check_cycles);
    return found;
}

static bool is_there(struct sim_program *p, struct sim_fiber *t) {
    if (p->core_free != NULL)
        return sim_share_look(p, t, t->channel);
    hw_optical_advance(&p->optical, t->core, sim_program_now(p));
    return hw_optical_next(&p->optical, t->core, t->channel) <= sim_program_now(p);
}

/* The thread's alarm: is there a message? */
static bool look(struct sim_program *p, struct sim_fiber *t) {
    if (is_there(p, t) || t->deadline <= sim_program_now(p))
        return true;
    t->alarm = UINT64_MAX;
    bool known = set_alarm(p, t);
    if (!known || p->config.optical.shape != HW_OPTICAL_FLAT)
        p->waiting[t->number / 64] |= UINT64_C(1) << t->number % 64;
    return false;
}

bool sim_wait_receive_until(struct sim_program *p, uint32_t channel, uint64_t deadline_cycles,
                            struct sim_message *message) {
    struct sim_fiber *t = p->running;
    check_channel(p, channel);
    if (take_ahead(p, t, channel, deadline_cycles, message) || take_at_hop(p, t, channel, message)) {
        sim_compute(p, p->config.optical.check_cycles);
        return true;
    }
    sim_fiber_settle(p, t);
    t->channel = channel;
    t->deadline = deadline_cycles;
    if (!look(p, t)) {
        if (deadline_cycles != UINT64_MAX)
            sim_fiber_call(p, t, deadline_cycles);
        sim_fiber_stop(p, t, SIM_FOR_MESSAGE, look);
    }
    p->waiting[t->number / 64] &= ~(UINT64_C(1) << t->number % 64);
    bool found = take(p, t, channel, message);
    sim_compute(p, p->config.optical.check_cycles);
    return found;
}

void sim_wait_receive(struct sim_program *p, uint32_t channel, struct sim_message *message) {
    sim_wait_receive_until(p, channel, UINT64_MAX, message);
}
