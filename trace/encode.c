/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events to blocks; see encode.h and docs/trace-format.md.
 *
 * A thread can be interrupted for good while it encodes an event, by asynchronous cancellation. The block that it
 * leaves must be readable: the counts that make a header change last, and the bytes that they cover do not change
 * afterwards.
 */
#include "encode.h"

/* Sites are dense numbers, and one site has few operations: multiples of two small primes spread them. (No library's
 * hash table: this one is a hint that may be lost, in memory that the recorder has, without allocation.) */
static inline uint32_t hint_of(uint32_t site, uint32_t op) {
    return (site * 31u + op * 7u) % TRACE_N_HINTS;
}

/* Bytes of the longest definition of a number: the byte, a varint of 32 bits, a zigzag of 64. */
enum { MAX_DEFINITION = 16 };

bool trace_encoder_has_room(const struct trace_encoder *e) {
    return e->n_event_bytes + TRACE_MAX_EVENT <= sizeof e->events && e->n_templates < TRACE_MAX_TEMPLATES &&
           e->n_definition_bytes + 3 * MAX_DEFINITION <= sizeof e->definitions;
}

static void at_least(uint32_t *bound, uint32_t number) {
    if (number != SBT_TRACE_NONE && number >= *bound)
        *bound = number + 1;
}

/* The number of the event's template. If its hint was lost the template is put in once more, which costs eight bytes.
 */
static uint32_t template_of(struct trace_encoder *e, const struct sbt_trace_event *event, uint8_t type) {
    __typeof(&e->hints[0]) hint = &e->hints[hint_of(event->site, event->op)];
    if (hint->sequence == e->sequence + 1 && hint->site == event->site && hint->op == event->op && hint->type == type)
        return hint->number;
    e->templates[e->n_templates] = (struct trace_template){event->op, type, 0, event->site};
    hint->site = event->site;
    hint->op = event->op;
    hint->type = type;
    hint->number = (uint16_t)e->n_templates;
    hint->sequence = e->sequence + 1;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    return e->n_templates++;
}

/* The object's slot; TRACE_N_SLOTS: it has none. */
static uint32_t slot_of(struct trace_encoder *e, uint32_t object) {
    uint8_t *hint = &e->slot_hints[object % TRACE_N_SLOT_HINTS];
    uint32_t slot = *hint;
    if (e->slot_object[slot] == object + 1)
        return slot;
    slot = 0;
    while (slot < TRACE_N_SLOTS && e->slot_object[slot] != object + 1)
        slot++;
    /* An object without a slot gets the next one, in put_object. */
    *hint = (uint8_t)(slot < TRACE_N_SLOTS ? slot : e->next_slot % TRACE_N_SLOTS);
    return slot;
}

/* Puts the byte of an object and its order, with these flags, and the bytes that follow it. */
static void put_object(struct trace_encoder *e, uint8_t **at, uint32_t object, uint64_t order, uint8_t flags) {
    uint8_t *byte = (*at)++;
    uint32_t slot = slot_of(e, object);
    if (slot == TRACE_N_SLOTS) {
        slot = e->next_slot++ % TRACE_N_SLOTS;
        e->slot_object[slot] = object + 1;
        e->slot_order[slot] = 0;
        flags |= TRACE_MISS;
        *at = trace_put(*at, trace_zigzag((uint64_t)object - e->last_missed));
        e->last_missed = object;
    }
    if (order != 0) {
        uint64_t difference = order - e->slot_order[slot];
        if (difference == 1) {
            flags |= TRACE_NEXT;
        } else {
            flags |= TRACE_ORDER;
            *at = trace_put(*at, trace_zigzag(difference));
        }
        e->slot_order[slot] = order;
    }
    *byte = (uint8_t)(flags | slot);
}

static void put_extra(uint8_t **at, const struct sbt_trace_event *event, uint8_t extra, uint64_t slip) {
    *(*at)++ = extra;
    if ((extra & TRACE_EXTRA_RESULT) != 0)
        *at = trace_put(*at, event->result);
    if ((extra & TRACE_EXTRA_OTHER) != 0)
        *at = trace_put(*at, event->other);
    if ((extra & TRACE_EXTRA_SIZE) != 0)
        *at = trace_put(*at, event->size);
    if ((extra & TRACE_EXTRA_SLIP) != 0)
        *at = trace_put(*at, trace_zigzag(slip));
    if ((extra & TRACE_EXTRA_STACK) != 0)
        *at = trace_put(*at, event->stack);
}

void trace_encode(struct trace_encoder *e, const struct sbt_trace_event *event) {
    uint8_t *at = e->events + e->n_event_bytes;
    bool wait = event->op == SBT_TRACE_COND_WAIT,
         nothing = event->object == SBT_TRACE_NONE || event->type == SBT_TRACE_NO_OBJECT;
    uint8_t extra = 0;

    uint64_t expected = e->clock_ns + event->work_ns + e->overhead_ns;
    uint64_t slip = event->at_ns - expected, distance = event->at_ns > expected ? slip : -slip;
    if (distance == 0 || distance < e->slip_min_ns)
        slip = 0;

    extra |= event->result != 0 ? TRACE_EXTRA_RESULT : 0;
    extra |= !wait && event->other != SBT_TRACE_NONE ? TRACE_EXTRA_OTHER : 0;
    extra |= event->size != 0 ? TRACE_EXTRA_SIZE : 0;
    extra |= slip != 0 ? TRACE_EXTRA_SLIP : 0;
    extra |= event->stack != 0 ? TRACE_EXTRA_STACK : 0;

    at = trace_put(at, template_of(e, event, nothing ? SBT_TRACE_NO_OBJECT : event->type));
    uint8_t flags = extra != 0 ? TRACE_EXTRA : 0;
    if (nothing)
        *at++ = flags;
    else
        put_object(e, &at, event->object, event->order, flags);
    if (wait && event->other == SBT_TRACE_NONE)
        *at++ = TRACE_EXTRA;
    else if (wait)
        put_object(e, &at, event->other, event->relock, 0);
    if (extra != 0)
        put_extra(&at, event, extra, slip);
    at = trace_put(at, event->work_ns);
    at = trace_put(at, event->took_ns);

    at_least(&e->n_objects, nothing ? SBT_TRACE_NONE : event->object);
    at_least(&e->n_sites, event->site);
    at_least(wait ? &e->n_objects : &e->n_threads, event->other);
    e->clock_ns = expected + slip + event->took_ns;
    uint64_t counts = (uint64_t)(at - e->events) | (uint64_t)(e->n_events + 1) << 32;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    /* One store, so that a handler that interrupts the thread sees both counts or neither. Relaxed: it is the same
     * thread, and the signal fence keeps the order. */
    __atomic_store_n(&e->counts, counts, __ATOMIC_RELAXED);
}

/* The definition ends before `at`. */
static void defined(struct trace_encoder *e, const uint8_t *at) {
    __atomic_signal_fence(__ATOMIC_RELEASE);
    e->n_definition_bytes = (uint32_t)(at - e->definitions);
}

void trace_define(struct trace_encoder *e, enum trace_definition what, uint32_t number, uint64_t address) {
    uint64_t *last = what == TRACE_DEFINE_OBJECT ? &e->last_object_address : &e->last_site_address;
    uint8_t *at = e->definitions + e->n_definition_bytes;
    *at++ = (uint8_t)what;
    at = trace_put(at, number);
    at = trace_put(at, trace_zigzag(address - *last));
    *last = address;
    at_least(what == TRACE_DEFINE_OBJECT ? &e->n_objects : &e->n_sites, number);
    defined(e, at);
}

void trace_define_made(struct trace_encoder *e, uint32_t object, uint32_t site, uint32_t size) {
    uint8_t *at = e->definitions + e->n_definition_bytes;
    *at++ = TRACE_DEFINE_MADE;
    at = trace_put(trace_put(trace_put(at, object), site), size);
    at_least(&e->n_objects, object);
    at_least(&e->n_sites, site);
    defined(e, at);
}

void trace_define_routine(struct trace_encoder *e, uint32_t thread, uint32_t site) {
    uint8_t *at = e->definitions + e->n_definition_bytes;
    *at++ = TRACE_DEFINE_ROUTINE;
    at = trace_put(trace_put(trace_put(at, thread), site), 0);
    at_least(&e->n_threads, thread);
    at_least(&e->n_sites, site);
    defined(e, at);
}

void trace_define_queued(struct trace_encoder *e, uint32_t thread, uint64_t ns) {
    uint8_t *at = e->definitions + e->n_definition_bytes;
    *at++ = TRACE_DEFINE_QUEUED;
    at = trace_put(trace_put(trace_put(at, thread), ns), 0);
    at_least(&e->n_threads, thread);
    defined(e, at);
}

bool trace_define_stack(struct trace_encoder *e, uint32_t stack, const uint32_t *sites, uint32_t n) {
    uint8_t bytes[TRACE_MAX_STACK * 5], *end = bytes, *at = e->definitions + e->n_definition_bytes;
    for (uint32_t i = 0; i < n; i++)
        end = trace_put(end, sites[i]);
    size_t n_bytes = (size_t)(end - bytes);
    if (e->n_definition_bytes + n_bytes + 2 * MAX_DEFINITION > sizeof e->definitions)
        return false;
    *at++ = TRACE_DEFINE_STACK;
    at = trace_put(trace_put(at, stack), n_bytes);
    memcpy(at, bytes, n_bytes);
    for (uint32_t i = 0; i < n; i++)
        at_least(&e->n_sites, sites[i]);
    defined(e, at + n_bytes);
    return true;
}

void trace_encoder_header(const struct trace_encoder *e, struct trace_block *header) {
    *header = (struct trace_block){
        .magic = TRACE_BLOCK_MAGIC,
        .kind = TRACE_BLOCK_EVENTS,
        .thread = e->thread,
        .sequence = e->sequence,
        .event_bytes = e->n_event_bytes,
        .n_templates = e->n_templates,
        .definition_bytes = e->n_definition_bytes,
        .n_events = e->n_events,
        .clock_ns = e->first_clock_ns,
        .n_objects = e->n_objects,
        .n_sites = e->n_sites,
        .n_threads = e->n_threads > e->thread ? e->n_threads : e->thread + 1,
        .overhead_ns = e->overhead_ns,
    };
    uint64_t sum = trace_sum(TRACE_SUM_START, e->events, e->n_event_bytes);
    sum = trace_sum(sum, e->templates, e->n_templates * sizeof e->templates[0]);
    header->payload_sum = trace_sum(sum, e->definitions, e->n_definition_bytes);
    header->header_sum = trace_header_sum(header);
}

/*
 * The sequence is last: if the process is killed in here, it says whether the block that is in the file is this one.
 */
void trace_encoder_next(struct trace_encoder *e) {
    e->n_event_bytes = e->n_templates = e->n_definition_bytes = e->n_events = 0;
    e->n_objects = e->n_sites = e->n_threads = 0;
    e->next_slot = e->last_missed = 0;
    e->last_object_address = e->last_site_address = 0;
    e->first_clock_ns = e->clock_ns;
    memset(e->slot_object, 0, sizeof e->slot_object);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    e->sequence++; /* this makes all hints stale */
}

void trace_encoder_again(struct trace_encoder *e) {
    trace_encoder_next(e);
    e->sequence--;
    memset(e->hints, 0, sizeof e->hints); /* they are of this sequence, and of templates that are gone */
}

void trace_definitions_header(struct trace_block *header, enum trace_block_kind kind, const void *definitions,
                              uint32_t n_bytes) {
    *header = (struct trace_block){.magic = TRACE_BLOCK_MAGIC, .kind = (uint8_t)kind, .definition_bytes = n_bytes};
    header->payload_sum = trace_sum(TRACE_SUM_START, definitions, n_bytes);
    header->header_sum = trace_header_sum(header);
}
