/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One step of a network interface's state machine, or none where a request is held or withdrawn, and what it sends. An
 * answer is put into its thread's record as soon as the step is done, with the time at which it arrives; whoever waits
 * for it lets that time come (mailbox.c).
 */
#include "engine/ni/step.h"

#include <limits.h>

#include "core/arch.h"
#include "wait/park.h"

/* ---- packets ---- */

struct hw_delivery ni_send(uint32_t from, uint32_t to, uint64_t at_cycles) {
    if (from == to || !ni_machine.timed)
        return (struct hw_delivery){.head_cycles = at_cycles, .tail_cycles = at_cycles};
    ni_take(&ni_machine.mesh_lock);
    struct hw_delivery d = hw_mesh_send(&ni_machine.mesh, from, to, at_cycles, NULL);
    ni_release(&ni_machine.mesh_lock);
    return d;
}

static void wake(struct ni_work *work, uint32_t *word) {
    if (work->n_wakes < NI_MAX_WAKES)
        work->wakes[work->n_wakes++] = word;
    else
        sbt_waiter_wake(word);
}

static void answer(struct ni_thread *t, int which, const struct hw_packet *packet, uint64_t at_cycles,
                   struct ni_work *work) {
    t->answer[which].packet = *packet;
    t->answer[which].at_cycles = at_cycles;
    if (t == work->self) {
        __atomic_store_n(&t->state, t->state | NI_ANSWERED(which), __ATOMIC_RELAXED);
        return;
    }
    uint32_t old =
        __atomic_fetch_or(&t->state, NI_ANSWERED(which), __ATOMIC_ACQ_REL); /* pairs with ni_await's, both ways */
    if ((old & NI_PARKED) == 0)
        return;
    /* It may have gone on by itself and wait for something else: then this wakes it for no reason. */
    uint32_t *word = __atomic_load_n(&t->wake_word, __ATOMIC_RELAXED);
    wake(work, word != NULL ? word : &t->state);
}

static struct ni_thread *thread_of(uint32_t flit2) {
    uint32_t thread = hw_high(flit2);
    return thread < NI_MAX_THREADS ? &ni_machine.threads[thread] : NULL;
}

/* ---- statistics ---- */

static enum ni_class class_of(enum hw_op asked, const struct hw_message *got) {
    if (got->op == HW_OP_NACK)
        return NI_REFUSED;
    switch (asked) {
    case HW_OP_LOCK:
        return got->op == HW_OP_GRANT && got->argument == 1 ? NI_LOCK_QUEUED : NI_LOCK_EMPTY;
    case HW_OP_TRYLOCK:
        return NI_TRYLOCK;
    case HW_OP_UNLOCK:
        return NI_UNLOCK;
    case HW_OP_BARRIER_WAIT:
        return NI_BARRIER;
    case HW_OP_COND_WAIT:
        return NI_COND_WAIT;
    case HW_OP_SIGNAL:
        return NI_SIGNAL;
    case HW_OP_BROADCAST:
        return NI_BROADCAST;
    case HW_OP_DEALLOC:
        return NI_DEALLOCATE;
    case HW_OP_WITHDRAW:
        return NI_WITHDRAW;
    case HW_OP_EVICT:
        return NI_EVICT;
    default:
        return NI_ALLOCATE;
    }
}

/* ---- one step ---- */

struct stepped {
    uint64_t start_cycles, network_cycles, queued_cycles; /* of the request: on its way, and for the state machine */
    uint32_t who;
    enum hw_op op;
    bool local;
};

static bool has_answer(enum hw_op op) {
    return op != HW_OP_UNLOCK && op != HW_OP_SIGNAL && op != HW_OP_BROADCAST && op != HW_OP_DEALLOC;
}

/* A sample of what the thread that gets this answer has waited: its own request's share, and this packet's. */
static void count_answer(struct ni_tile *tile, const struct stepped *s, const struct ni_thread *t,
                         const struct hw_message *message, uint32_t at_cycles, uint64_t network_cycles,
                         uint32_t resume_cycles) {
    bool own = hw_pair(message->thread, message->core) == s->who &&
               (message->op != HW_OP_GRANT || s->op == HW_OP_LOCK || s->op == HW_OP_TRYLOCK);
    struct ni_sample sample = {
        .handover = ni_handover(), .network = network_cycles, .fsm = at_cycles, .resume = resume_cycles};
    if (own) {
        sample.network += s->network_cycles;
        sample.fsm += s->queued_cycles;
        sample.local = s->local;
    } else {
        sample.network += t->network_cycles;
        sample.fsm += t->fsm_cycles;
        sample.local = t->asked_locally;
        uint64_t all = s->start_cycles + at_cycles + network_cycles - t->asked_cycles;
        uint64_t own_share = sample.handover + sample.network + sample.fsm;
        sample.waited = all > own_share && all < UINT64_MAX / 2 ? all - own_share : 0;
    }
    ni_stats_add(tile, class_of(own ? s->op : (enum hw_op)t->asked, message), &sample);
}

/* An output of a step: to the thread that asked, or to one that has waited. */
static void deliver(struct ni_tile *tile, const struct stepped *s, const struct hw_output *output,
                    struct ni_work *work) {
    struct hw_message message = hw_packet_decode(&ni_machine.layout, &output->packet);
    struct ni_thread *t = thread_of(output->packet.flit[2]);
    uint64_t out_cycles = s->start_cycles + output->at_cycles;
    struct hw_delivery way = ni_send(ni_number_of(tile), message.destination, out_cycles);
    uint32_t resume = ni_resume(&output->packet);
    if (t == NULL || __atomic_load_n(&t->use, __ATOMIC_RELAXED) == NI_UNUSED)
        return;
    if (tile->latency != NULL)
        count_answer(tile, s, t, &message, output->at_cycles, way.tail_cycles - out_cycles, resume);
    int which = NI_ANSWER_MAIN;
    if (message.op == HW_OP_NACK) {
        enum hw_op refused = hw_nack_op(message.argument);
        if (!has_answer(refused)) /* nobody waits for the refusal of an unlock */
            return;
        which = refused == HW_OP_WITHDRAW ? NI_ANSWER_WITHDRAW : NI_ANSWER_MAIN;
    } else if (message.op == HW_OP_WITHDRAWN || message.op == HW_OP_GONE) {
        which = NI_ANSWER_WITHDRAW;
    }
    answer(t, which, &output->packet, way.tail_cycles + resume, work);
}

/*
 * Everybody who waited at a barrier has its answer: those who sleep do so on one word, and are woken by one call. A
 * step of the word also tells those who are about to fall asleep.
 */
static void open_barrier(struct ni_tile *tile, uint32_t index, struct ni_work *work) {
    uint32_t *epoch = &tile->epochs[index], seen = __atomic_load_n(epoch, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(epoch, &seen, (seen | NI_ASLEEP) + 1, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    if ((seen & NI_ASLEEP) == 0)
        return;
    if (work->everybody != NULL)
        sbt_wake(work->everybody, INT_MAX);
    work->everybody = epoch;
}

/* Set a request aside until there is a queue element: a copy, so that its place in the mailbox is free for others. */
static void hold(struct ni_tile *tile, const struct ni_request *r) {
    struct ni_thread *t = thread_of(r->packet.flit[2]);
    t->held = *r;
    t->held.next = NULL;
    if (tile->held != NULL)
        tile->held_last->next = &t->held;
    else
        tile->held = &t->held;
    tile->held_last = &t->held;
}

static void unhold(struct ni_tile *tile, struct ni_request *r, struct ni_request *before) {
    if (before != NULL)
        before->next = r->next;
    else
        tile->held = r->next;
    if (tile->held_last == r)
        tile->held_last = before;
}

/* Is it the withdrawal of a request that is held? That one has not happened: it is taken away, without a step. */
static bool withdraw_held(struct ni_tile *tile, const struct ni_request *r, struct ni_work *work) {
    struct ni_request *before = NULL, *held = tile->held;
    for (; held != NULL && held->packet.flit[2] != r->packet.flit[2]; held = held->next)
        before = held;
    if (held == NULL)
        return false;
    unhold(tile, held, before);
    struct hw_message request = hw_packet_decode(&ni_machine.layout, &r->packet);
    struct hw_message message = {.destination = request.core,
                                 .source = ni_number_of(tile),
                                 .op = HW_OP_WITHDRAWN,
                                 .primitive = request.primitive,
                                 .thread = request.thread,
                                 .core = request.core};
    struct hw_packet packet = hw_packet_encode(&ni_machine.layout, &message);
    const struct hw_timing *timing = &ni_machine.config.timing;
    uint64_t out = r->at_cycles + timing->entry_cycles + timing->fsm_cycles;
    struct hw_delivery way = ni_send(ni_number_of(tile), message.destination, out);
    tile->n_withdrawn_held++;
    if (SBT_UNLIKELY(tile->requests != NULL))
        ni_requests_note(tile, NI_REQUESTS_LEFT, &packet);
    answer(thread_of(r->packet.flit[2]), NI_ANSWER_WITHDRAW, &packet, way.tail_cycles, work);
    return true;
}

static struct ni_origin origin_of(const struct ni_request *r) {
    return (struct ni_origin){r->issued_cycles, r->at_cycles, r->object};
}

/* The ID is, by its count of allocations, this object's, and is another's all the same: make it as stale as it is. */
static void check_object(const struct ni_tile *tile, struct hw_packet *packet, const void *object) {
    const struct hw_layout *layout = &ni_machine.layout;
    uint32_t id = packet->flit[1], index = hw_id_index(layout, id);
    if (object != NULL && index < ni_machine.config.n_control && tile->objects[index] != object &&
        hw_spm_tag(&tile->ni.spm, index) == id)
        packet->flit[1] = id ^ UINT32_C(1) << 2 * layout->index_bits;
}

static bool allocates(enum hw_op op) {
    return op == HW_OP_ALLOC_MUTEX || op == HW_OP_ALLOC_CONDITION || op == HW_OP_ALLOC_BARRIER;
}

/* Its turn has come for the first time. As the state machine will see it. */
static void note_request(struct ni_tile *tile, const struct hw_packet *packet, const void *object) {
    struct hw_packet request = *packet;
    if (!allocates(hw_packet_op(packet)))
        check_object(tile, &request, object);
    ni_requests_note(tile, NI_REQUESTS_CAME, &request);
}

/*
 * Step a request; false: it is held. `slot` is its place in a mailbox, NULL if it has none: it is free before anybody
 * learns of the outcome.
 */
static bool step(struct ni_tile *tile, const struct hw_packet *packet, const struct ni_origin *origin, uint32_t *slot,
                 struct ni_work *work, bool *made_room) {
    struct hw_packet request = {{packet->flit[0], packet->flit[1], packet->flit[2]}};
    enum hw_op op = hw_packet_op(&request);
    if (!allocates(op))
        check_object(tile, &request, origin->object);
    struct hw_step done;
    uint64_t start = origin->at_cycles > tile->free_cycles ? origin->at_cycles : tile->free_cycles;
    hw_fsm_step(&tile->ni, &request, &done, tile->outputs);
    tile->free_cycles = start + done.response_cycles;
    *made_room |= done.made_room;
    if (done.status == HW_STATUS_HELD)
        return false;
    tile->n_stepped++;
    if (allocates(op) && done.status == HW_STATUS_DONE && hw_packet_op(&tile->outputs[0].packet) == HW_OP_ALLOCATED)
        tile->objects[hw_id_index(&ni_machine.layout, tile->outputs[0].packet.flit[1])] = origin->object;
    if (tile->n_used != tile->ni.n_control_used)
        __atomic_store_n(&tile->n_used, tile->ni.n_control_used, __ATOMIC_RELAXED);
    if (slot != NULL)
        __atomic_store_n(slot, NI_SLOT_FREE, __ATOMIC_RELEASE);

    struct hw_message message = hw_packet_decode(&ni_machine.layout, &request);
    struct stepped s = {.start_cycles = start,
                        .network_cycles = origin->at_cycles - origin->issued_cycles - ni_handover(),
                        .queued_cycles = start - origin->at_cycles,
                        .who = request.flit[2],
                        .op = message.op,
                        .local = message.core == ni_number_of(tile)};
    if (tile->latency != NULL && done.status == HW_STATUS_DONE) {
        struct ni_thread *t = thread_of(s.who);
        if (has_answer(s.op) && s.op != HW_OP_WITHDRAW && t != NULL) {
            /* In case it has to wait: its own share so far. */
            t->asked = (uint8_t)s.op;
            t->asked_cycles = origin->issued_cycles;
            t->asked_locally = s.local;
            t->network_cycles = s.network_cycles;
            t->fsm_cycles = s.queued_cycles + done.response_cycles;
        } else if (!has_answer(s.op)) {
            /* The caller went on when it had handed it in. */
            struct ni_sample sample = {.handover = ni_handover(), .local = s.local};
            ni_stats_add(tile, class_of(s.op, &message), &sample);
        }
    }
    if (SBT_UNLIKELY(tile->requests != NULL))
        for (uint32_t i = 0; i < done.n_outputs; i++)
            ni_requests_note(tile, NI_REQUESTS_LEFT, &tile->outputs[i].packet);
    for (uint32_t i = 0; i < done.n_outputs; i++)
        deliver(tile, &s, &tile->outputs[i], work);
    if (s.op == HW_OP_BARRIER_WAIT && done.n_outputs > 0) /* a refused one, or the only one, may sleep on it too */
        open_barrier(tile, hw_id_index(&ni_machine.layout, message.primitive), work);
    return true;
}

/*
 * Would a step hold it once more? Seen in the scratchpad's registers and words, without an access that the hardware
 * would count. With a thousand threads at one mutex every unlock would otherwise be followed by hundreds of steps.
 */
static bool stays_held(const struct ni_tile *tile, const struct ni_request *r) {
    const struct hw_spm *spm = &tile->ni.spm;
    uint32_t id = r->packet.flit[1], index = hw_id_index(&spm->layout, id);
    return spm->n_free <= spm->n_reserved && hw_packet_op(&r->packet) == HW_OP_LOCK && index < spm->n_control &&
           hw_spm_tag(spm, index) == id && (r->object == NULL || r->object == tile->objects[index]) &&
           hw_low(hw_spm_peek(spm, hw_control_word(index, 2))) != 0;
}

/* There may be elements now: the held requests again, in their order, some need none. */
static void retry_held(struct ni_tile *tile, struct ni_work *work) {
    bool made_room = true;
    while (made_room && tile->held != NULL) {
        made_room = false;
        for (struct ni_request *before = NULL, *r = tile->held, *next; r != NULL; r = next) {
            next = r->next;
            if (stays_held(tile, r)) {
                before = r;
                continue;
            }
            uint64_t came = r->at_cycles;
            if (r->at_cycles < tile->free_cycles)
                r->at_cycles = tile->free_cycles;
            struct ni_origin origin = origin_of(r);
            struct hw_packet packet = r->packet;
            origin.issued_cycles += origin.at_cycles - came; /* it waited for others, not for the hardware */
            unhold(tile, r, before); /* first: its thread goes on as soon as it has its answer */
            if (step(tile, &packet, &origin, NULL, work, &made_room))
                continue;
            r->at_cycles = came;
            if (before != NULL)
                before->next = r;
            else
                tile->held = r;
            if (next == NULL)
                tile->held_last = r;
            r->next = next;
            before = r;
        }
    }
}

void ni_step_request(struct ni_tile *tile, struct ni_request *r, uint32_t *slot, struct ni_work *work) {
    bool made_room = false;
    struct ni_origin origin = origin_of(r);
    if (SBT_UNLIKELY(tile->requests != NULL))
        note_request(tile, &r->packet, r->object);
    if (hw_packet_op(&r->packet) == HW_OP_WITHDRAW && tile->held != NULL) {
        struct ni_request copy = *r;
        if (slot != NULL)
            __atomic_store_n(slot, NI_SLOT_FREE, __ATOMIC_RELEASE);
        if (!withdraw_held(tile, &copy, work))
            step(tile, &copy.packet, &origin, NULL, work, &made_room);
    } else if (!step(tile, &r->packet, &origin, slot, work, &made_room)) {
        hold(tile, r);
        if (slot != NULL)
            __atomic_store_n(slot, NI_SLOT_FREE, __ATOMIC_RELEASE);
    }
    if (made_room && tile->held != NULL)
        retry_held(tile, work);
}

void ni_step_direct(struct ni_tile *tile, const struct hw_packet *packet, const struct ni_origin *origin,
                    struct ni_work *work) {
    bool made_room = false, held = tile->held != NULL;
    tile->n_direct++;
    if (SBT_UNLIKELY(tile->requests != NULL) && !held)
        note_request(tile, packet, origin->object);
    if (SBT_LIKELY(!held) && SBT_LIKELY(step(tile, packet, origin, NULL, work, &made_room)))
        return;
    struct ni_request r = {.packet = *packet,
                           .issued_cycles = origin->issued_cycles,
                           .at_cycles = origin->at_cycles,
                           .object = origin->object};
    if (held)
        ni_step_request(tile, &r, NULL, work);
    else
        hold(tile, &r);
}
