/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tallies to blocks; see encode.h and docs/trace-format.md. A thread that is interrupted for good leaves a block where
 * counts and bytes fit each other, as in encode.c. */
#include "encode.h"

bool trace_tally_has_room(const struct trace_tally_encoder *e) {
    return e->n_bytes + TRACE_MAX_TALLY <= sizeof e->bytes;
}

static uint8_t *put_holds(uint8_t *at, const struct sbt_trace_tally *tally) {
    uint32_t which = 0;
    at = trace_put(at, tally->n_timed);
    if (tally->n_timed == 0)
        return at;
    for (unsigned b = 0; b < SBT_TRACE_N_HOLD_BUCKETS; b++)
        which |= tally->held[b] != 0 ? UINT32_C(1) << b : 0;
    at = trace_put(trace_put(trace_put(trace_put(at, tally->n_held), tally->held_ns), tally->held_max_ns), which);
    for (unsigned b = 0; b < SBT_TRACE_N_HOLD_BUCKETS; b++)
        if (tally->held[b] != 0)
            at = trace_put(at, tally->held[b]);
    return at;
}

/* NONE becomes 0. */
static uint8_t *put_object(struct trace_tally_encoder *e, uint8_t *at, uint32_t number) {
    uint32_t object = number + 1;
    at = trace_put(at, trace_zigzag((uint64_t)object - e->last_object));
    e->last_object = object;
    e->n_objects = object > e->n_objects ? object : e->n_objects;
    return at;
}

static uint8_t *put_site(struct trace_tally_encoder *e, uint8_t *at, uint32_t number) {
    uint32_t site = number + 1;
    e->n_sites = site > e->n_sites ? site : e->n_sites;
    return trace_put(at, site);
}

static void end_tally(struct trace_tally_encoder *e, const uint8_t *at) {
    uint64_t counts = (uint64_t)(at - e->bytes) | (uint64_t)(e->n_tallies + 1) << 32;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&e->counts, counts, __ATOMIC_RELAXED); /* one store, as in encode.c */
}

void trace_encode_tally(struct trace_tally_encoder *e, const struct sbt_trace_tally *tally) {
    uint8_t *at = e->bytes + e->n_bytes;
    *at++ = tally->op;
    *at++ = tally->type;
    at = put_site(e, put_object(e, at, tally->object), tally->site);
    at = trace_put(trace_put(at, tally->n), tally->n_failed);
    end_tally(e, put_holds(at, tally));
}

void trace_encode_order(struct trace_tally_encoder *e, const struct sbt_trace_order *order) {
    uint8_t *at = e->bytes + e->n_bytes;
    uint32_t gates_shared = 0;
    for (uint32_t i = 0; i < order->n_gates; i++)
        gates_shared |= (uint32_t)order->gate_shared[i] << i;
    *at++ = (uint8_t)(TRACE_TALLY_ORDER | (order->held_shared ? TRACE_ORDER_HELD_SHARED : 0) |
                      (order->taken_shared ? TRACE_ORDER_TAKEN_SHARED : 0) |
                      (order->stack != 0 ? TRACE_ORDER_STACK : 0) | (gates_shared != 0 ? TRACE_ORDER_GATES_SHARED : 0));
    at = put_site(e, put_object(e, at, order->held), order->held_site);
    at = put_site(e, put_object(e, at, order->taken), order->taken_site);
    at = trace_put(trace_put(at, order->n), order->n_gates);
    for (uint32_t i = 0; i < order->n_gates; i++)
        at = put_object(e, at, order->gate[i]);
    if (gates_shared != 0)
        at = trace_put(at, gates_shared);
    if (order->stack != 0)
        at = trace_put(at, order->stack);
    end_tally(e, at);
}

void trace_tally_header(const struct trace_tally_encoder *e, uint64_t clock_ns, struct trace_block *header) {
    *header = (struct trace_block){
        .magic = TRACE_BLOCK_MAGIC,
        .kind = TRACE_BLOCK_TALLIES,
        .thread = e->thread,
        .sequence = e->sequence,
        .event_bytes = e->n_bytes,
        .n_events = e->n_tallies,
        .clock_ns = clock_ns,
        .n_objects = e->n_objects,
        .n_sites = e->n_sites,
        .n_threads = e->thread + 1,
        .payload_sum = trace_sum(TRACE_SUM_START, e->bytes, e->n_bytes),
    };
    header->header_sum = trace_header_sum(header);
}

void trace_tally_next(struct trace_tally_encoder *e) {
    __atomic_store_n(&e->counts, 0, __ATOMIC_RELAXED); /* before the number: a thread may be killed in between */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    e->sequence++;
    e->n_objects = e->n_sites = e->last_object = 0;
}

void trace_tally_again(struct trace_tally_encoder *e) {
    trace_tally_next(e);
    e->sequence--;
}
