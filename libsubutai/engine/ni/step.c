/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One step of a network interface's state machine, and the packets that leave. A request that is held, or withdrawn
 * while it is held, makes no step. An answer is put into its thread's record as soon as the step is done, with the time
 * at which it arrives; the waiter waits until that time (await.c).
 */
#include "engine/ni/step.h"

#include <limits.h>

#include "engine/ni/broadcast.h"
#include "engine/ni/requests.h"
#include "engine/ni/stats.h"
#include "wait/park.h"

/* ---- packets ---- */

struct hw_delivery ni_send(struct ni_tile *tile, uint32_t from, uint32_t to, uint64_t at_cycles) {
    if (from == to || !ni_machine.timed)
        return (struct hw_delivery){.head_cycles = at_cycles, .tail_cycles = at_cycles};
    struct hw_delivery way = hw_slotted_send(&ni_machine.mesh, from, to, at_cycles);
    if (SBT_UNLIKELY(tile->requests != NULL))
        ni_requests_note_crossed(tile, from, to, at_cycles, way.contention_cycles);
    return way;
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
    if (t == work->self) { /* relaxed: the serving thread is the thread that reads */
        __atomic_store_n(&t->state, t->state | NI_ANSWERED(which), __ATOMIC_RELAXED);
        return;
    }
    uint32_t old =
        /* pairs with ni_await, in both directions */
        __atomic_fetch_or(&t->state, NI_ANSWERED(which), __ATOMIC_ACQ_REL);
    if ((old & NI_PARKED) == 0)
        return;
    /*
     * The thread may have gone on by itself and wait for something else: then this wakes it spuriously. The acquire
     * above has made its wake_word visible.
     */
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
        return NI_BARRIER_WAIT;
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
    /* the request's: on its way, waiting for the state machine, and waiting because it was handed in late */
    uint64_t start_cycles, network_cycles, queued_cycles, late_cycles;
    uint32_t asker; /* thread and core, as in a packet */
    enum hw_op op;
    bool local;
};

/*
 * A sample of the time for which the receiver of this answer has waited: the share of its own request, and of this
 * packet.
 */
static void count_answer(struct ni_tile *tile, const struct stepped *s, const struct ni_thread *t,
                         const struct hw_message *message, uint32_t at_cycles, uint64_t network_cycles,
                         uint32_t resume_cycles) {
    bool own = hw_pair(message->thread, message->core) == s->asker &&
               (message->op != HW_OP_GRANT || s->op == HW_OP_LOCK || s->op == HW_OP_TRYLOCK);
    struct ni_cycles cycles = {
        .handover = ni_handover(), .network = network_cycles, .fsm = at_cycles, .resume = resume_cycles};
    bool local = own ? s->local : t->asked_locally;
    if (own) {
        cycles.network += s->network_cycles;
        cycles.fsm += s->queued_cycles;
        cycles.waited = s->late_cycles;
    } else {
        cycles.network += t->network_cycles;
        cycles.fsm += t->fsm_cycles;
        uint64_t all = s->start_cycles + at_cycles + network_cycles - t->asked_cycles;
        uint64_t own_share = cycles.handover + cycles.network + cycles.fsm;
        cycles.waited = all > own_share && all < UINT64_MAX / 2 ? all - own_share : 0;
    }
    ni_stats_add(tile, class_of(own ? s->op : (enum hw_op)t->asked, message), &cycles, local);
}

/* Send an output of a step: to the thread that asked, or to a thread that has waited. */
static void send_answer(struct ni_tile *tile, const struct stepped *s, const struct hw_output *output,
                        struct ni_work *work) {
    struct hw_message message = hw_packet_decode(&ni_machine.layout, &output->packet);
    struct ni_thread *t = thread_of(output->packet.flit[2]);
    uint64_t out_cycles = s->start_cycles + output->at_cycles;
    struct hw_delivery way = ni_send(tile, ni_number_of(tile), message.destination, out_cycles);
    uint32_t resume = ni_resume(&output->packet);
    if (SBT_UNLIKELY(tile->requests != NULL)) /* before the answer: what its thread does next comes later */
        ni_requests_note(tile, HW_LOG_LEFT, &output->packet, out_cycles, way.tail_cycles + resume);
    /* The log is of the NIs, which know nothing of that. */
    if (SBT_UNLIKELY(ni_machine.optical) && resume != 0)
        resume = ni_broadcast_resume(message.thread, way.tail_cycles, resume);
    if (t == NULL || __atomic_load_n(&t->use, __ATOMIC_RELAXED) == NI_UNUSED)
        return;
    if (tile->latency != NULL)
        count_answer(tile, s, t, &message, output->at_cycles, way.tail_cycles - out_cycles, resume);
    int which = NI_ANSWER_MAIN;
    if (message.op == HW_OP_NACK) {
        enum hw_op refused = hw_nack_op(message.argument);
        if (!ni_has_answer(refused)) /* no thread waits for the refusal of an unlock */
            return;
        which = refused == HW_OP_WITHDRAW ? NI_ANSWER_WITHDRAW : NI_ANSWER_MAIN;
    } else if (message.op == HW_OP_WITHDRAWN || message.op == HW_OP_GONE) {
        which = NI_ANSWER_WITHDRAW;
    }
    answer(t, which, &output->packet, way.tail_cycles + resume, work);
}

/*
 * All waiters of a barrier have their answers. Those that sleep do so on a common word, the epoch, and are woken by a
 * single call. A step of the epoch also keeps awake the waiters that are about to fall asleep. The release pairs with
 * the acquire of ni_await_barrier. The first load is relaxed, because the exchange compares it.
 */
static void open_barrier(struct ni_tile *tile, uint32_t index, struct ni_work *work) {
    uint32_t *epoch = &tile->epochs[index], seen = __atomic_load_n(epoch, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(epoch, &seen, (seen | NI_ASLEEP) + 1, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    if ((seen & NI_ASLEEP) == 0)
        return;
    if (work->opened != NULL)
        sbt_wake(work->opened, INT_MAX);
    work->opened = epoch;
}

static struct ni_thread *thread_of_place(const struct ni_held_request *place) {
    return caa_container_of(place, struct ni_thread, place);
}

static struct ni_origin origin_of(const struct ni_request *r) {
    return (struct ni_origin){r->issued_cycles, r->at_cycles, r->object};
}

/* Set a request aside until there is a queue element. A copy is kept, so that its slot in the mailbox is free. */
static void hold(struct ni_tile *tile, const struct ni_request *r) {
    struct ni_thread *t = thread_of(r->packet.flit[2]);
    uint32_t index = hw_id_index(&ni_machine.layout, r->packet.flit[1]);
    bool by_element = hw_packet_op(&r->packet) == HW_OP_LOCK && index < ni_machine.config.n_control;
    t->held = r->packet;
    t->held_origin = origin_of(r);
    ni_held_add(&tile->held, &t->place, by_element ? index : NI_HELD_NOWHERE);
}

/*
 * Withdraw a request that is held. It has not happened, so it is taken away without a step. False: the request is no
 * withdrawal of a held request.
 */
static bool withdraw_held(struct ni_tile *tile, const struct ni_request *r, struct ni_work *work) {
    struct ni_thread *t = thread_of(r->packet.flit[2]);
    if (t == NULL || t->place.set != &tile->held)
        return false;
    ni_held_remove(&t->place);
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
    struct hw_delivery way = ni_send(tile, ni_number_of(tile), message.destination, out);
    tile->n_withdrawn_held++;
    if (SBT_UNLIKELY(tile->requests != NULL))
        ni_requests_note(tile, HW_LOG_LEFT, &packet, out, way.tail_cycles);
    answer(t, NI_ANSWER_WITHDRAW, &packet, way.tail_cycles, work);
    return true;
}

/* An ID may match by its count of allocations and belong to another object all the same. Then make it look stale. */
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

/* The request as the state machine gets it. */
static struct hw_packet as_stepped(const struct ni_tile *tile, const struct hw_packet *packet, const void *object) {
    struct hw_packet request = {{packet->flit[0], packet->flit[1], packet->flit[2]}};
    if (!allocates(hw_packet_op(packet)))
        check_object(tile, &request, object);
    return request;
}

/* The request's turn has come for the first time. */
static void note_request(struct ni_tile *tile, const struct hw_packet *packet, const struct ni_origin *origin) {
    struct hw_packet request = as_stepped(tile, packet, origin->object);
    ni_requests_note(tile, HW_LOG_CAME, &request, origin->issued_cycles, origin->at_cycles);
}

/* How many elements are in use, and how many NIs are full: hints for other threads, so relaxed. */
static void note_used(struct ni_tile *tile) {
    uint32_t all = ni_machine.config.n_control, used = tile->ni.n_control_used;
    if ((tile->n_used == all) != (used == all))
        __atomic_fetch_add(&ni_machine.n_full, used == all ? 1u : -1u, __ATOMIC_RELAXED);
    __atomic_store_n(&tile->n_used, used, __ATOMIC_RELAXED);
}

/* After a step: note the object of a newly allocated element, and how many are in use. */
static void note_elements(struct ni_tile *tile, enum hw_op op, enum hw_status status, const void *object) {
    const struct hw_packet *answered = &tile->outputs[0].packet;
    if (allocates(op) && status == HW_STATUS_DONE && hw_packet_op(answered) == HW_OP_ALLOCATED)
        tile->objects[hw_id_index(&ni_machine.layout, answered->flit[1])] = object;
    if (tile->n_used != tile->ni.n_control_used)
        note_used(tile);
}

/* A request that has an answer may have to wait: its thread's record keeps the times so far. */
static void count_request(struct ni_tile *tile, const struct stepped *s, const struct hw_message *message,
                          uint64_t issued_cycles, uint32_t response_cycles) {
    struct ni_thread *t = thread_of(s->asker);
    if (!ni_has_answer(s->op)) { /* its caller went on after handing it in */
        struct ni_cycles cycles = {.handover = ni_handover_of(s->op)};
        ni_stats_add(tile, class_of(s->op, message), &cycles, s->local);
    } else if (s->op != HW_OP_WITHDRAW && t != NULL) {
        t->asked = (uint8_t)s->op;
        t->asked_cycles = issued_cycles;
        t->asked_locally = s->local;
        t->network_cycles = s->network_cycles;
        t->fsm_cycles = s->queued_cycles + response_cycles;
    }
}

/*
 * With an optical network: when a wait began, and when the condition's last broadcast was. A thread that makes another
 * request waits at no condition; a withdrawal's own answer has no way back.
 */
static void note_condition(const struct stepped *s, const struct hw_message *message, uint64_t issued_cycles) {
    uint32_t waits_at = s->op == HW_OP_COND_WAIT ? message->primitive : 0;
    if (s->op == HW_OP_BROADCAST)
        ni_broadcast_stepped(message->primitive, issued_cycles, s->start_cycles);
    else if (s->op != HW_OP_WITHDRAW && ni_has_answer(s->op))
        ni_broadcast_waits(message->thread, waits_at, s->start_cycles);
}

static void send_outputs(struct ni_tile *tile, const struct stepped *s, uint32_t n_outputs, struct ni_work *work) {
    for (uint32_t i = 0; i < n_outputs; i++)
        send_answer(tile, s, &tile->outputs[i], work);
}

/*
 * When the state machine steps a request, and how long the request has waited for that. A request may reach its server
 * after one of a later time, because its thread had no core of the host. It is stepped behind it all the same: what it
 * finds is what the other has left. If the state machine had a pause since the request's time, it would have served the
 * request then. So the wait is the host's doing, and the step takes no time from later requests.
 */
static struct stepped begin_step(struct ni_tile *tile, const struct ni_origin *origin) {
    struct stepped s = {.start_cycles = origin->at_cycles};
    if (origin->at_cycles > tile->free_cycles) {
        tile->busy_cycles = origin->at_cycles;
        return s;
    }
    s.start_cycles = tile->free_cycles;
    uint64_t wait = s.start_cycles - origin->at_cycles;
    if (origin->at_cycles >= tile->busy_cycles)
        s.queued_cycles = wait;
    else
        s.late_cycles = wait;
    return s;
}

/*
 * Step a request. False: it is held. `slot` is its slot in a mailbox, NULL: it has none. The slot is set free before
 * any thread learns of the outcome.
 */
static bool step(struct ni_tile *tile, const struct hw_packet *packet, const struct ni_origin *origin,
                 struct ni_request *slot, struct ni_work *work, bool *made_room) {
    const struct hw_packet request = as_stepped(tile, packet, origin->object);
    struct hw_step done;
    struct stepped s = begin_step(tile, origin);
    hw_fsm_step(&tile->ni, &request, &done, tile->outputs);
    if (s.late_cycles == 0)
        tile->free_cycles = s.start_cycles + done.response_cycles;
    *made_room |= done.made_room;
    if (done.status == HW_STATUS_HELD)
        return false;
    tile->n_stepped++;
    note_elements(tile, hw_packet_op(&request), done.status, origin->object);
    if (slot != NULL)
        ni_slot_free(slot);

    struct hw_message message = hw_packet_decode(&ni_machine.layout, &request);
    s.network_cycles = origin->at_cycles - origin->issued_cycles - ni_handover();
    s.asker = request.flit[2];
    s.op = message.op;
    s.local = message.core == ni_number_of(tile);
    if (tile->latency != NULL && done.status == HW_STATUS_DONE)
        count_request(tile, &s, &message, origin->issued_cycles, done.response_cycles);
    if (SBT_UNLIKELY(ni_machine.optical))
        note_condition(&s, &message, origin->issued_cycles);
    send_outputs(tile, &s, done.n_outputs, work);
    /* a refused waiter, or a single one, may sleep on the epoch too */
    if (s.op == HW_OP_BARRIER_WAIT && done.n_outputs > 0)
        open_barrier(tile, hw_id_index(&ni_machine.layout, message.primitive), work);
    return true;
}

/*
 * Would a step hold the request again? The answer is the same for all requests that are held for an element: the mutex
 * there is held, and stays the mutex of their ID as long as it is held.
 */
static bool stays_held(const void *at, const struct ni_held_request *place) {
    const struct ni_tile *tile = at;
    const struct ni_thread *t = thread_of_place(place);
    return hw_ni_would_hold(&tile->ni, &t->held) &&
           (t->held_origin.object == NULL || t->held_origin.object == tile->objects[place->place]);
}

static struct ni_held_request *next_held(struct ni_tile *tile) {
    const struct hw_spm *spm = &tile->ni.spm;
    return ni_held_next(&tile->held, spm->n_free > spm->n_reserved, stays_held, tile);
}

/* There may be free queue elements: try the held requests again, in their order. Some need no element. */
static void retry_held(struct ni_tile *tile, struct ni_work *work) {
    bool made_room = false;
    for (struct ni_held_request *place; (place = next_held(tile)) != NULL;) {
        struct ni_thread *t = thread_of_place(place);
        struct hw_packet packet = t->held;
        struct ni_origin origin = t->held_origin;
        if (origin.at_cycles < tile->free_cycles) { /* it has waited for other threads, not for the hardware */
            origin.issued_cycles += tile->free_cycles - origin.at_cycles;
            origin.at_cycles = tile->free_cycles;
        }
        ni_held_remove(place); /* before the step: its thread goes on as soon as it has its answer */
        if (step(tile, &packet, &origin, NULL, work, &made_room))
            continue;
        ni_held_put_back(&tile->held, place);
        break;
    }
}

void ni_step_request(struct ni_tile *tile, struct ni_request *r, struct ni_request *slot, struct ni_work *work) {
    bool made_room = false;
    struct ni_origin origin = origin_of(r);
    if (SBT_UNLIKELY(tile->requests != NULL))
        note_request(tile, &r->packet, &origin);
    if (hw_packet_op(&r->packet) == HW_OP_WITHDRAW && tile->held.all.first != NULL) {
        struct ni_request copy = *r;
        if (slot != NULL)
            ni_slot_free(slot);
        if (!withdraw_held(tile, &copy, work))
            step(tile, &copy.packet, &origin, NULL, work, &made_room);
    } else if (!step(tile, &r->packet, &origin, slot, work, &made_room)) {
        hold(tile, r);
        if (slot != NULL)
            ni_slot_free(slot);
    }
    if (made_room && tile->held.all.first != NULL)
        retry_held(tile, work);
}

void ni_step_direct(struct ni_tile *tile, const struct hw_packet *packet, const struct ni_origin *origin,
                    struct ni_work *work) {
    bool made_room = false, held = tile->held.all.first != NULL;
    tile->n_direct++;
    if (SBT_UNLIKELY(tile->requests != NULL) && !held)
        note_request(tile, packet, origin);
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
