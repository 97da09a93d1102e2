/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events to blocks; see encode.h and docs/trace-format.md.
 *
 * An event that is interrupted for good (its thread is cancelled asynchronously) must leave a block that can be read:
 * the counts that a header is made of change last, and nothing that they cover changes afterwards.
 */
#include "encode.h"

#define SITE_HASH(site, op) (((site)*31u + (op)*7u) % TRACE_N_HINTS)

bool trace_encoder_has_room(const struct trace_encoder *e) {
    return e->n_event_bytes + TRACE_MAX_EVENT <= sizeof e->events && e->n_templates < TRACE_MAX_TEMPLATES &&
           e->n_definition_bytes + 3 * 16 <= sizeof e->definitions;
}

static void at_least(uint32_t *bound, uint32_t number) {
    if (number != SBT_TRACE_NONE && number >= *bound)
        *bound = number + 1;
}

/* The number of the template, which may be found twice: a lost hint costs eight bytes. */
static uint32_t template_of(struct trace_encoder *e, const struct sbt_trace_event *event, uint8_t type) {
    __typeof(&e->hints[0]) hint = &e->hints[SITE_HASH(event->site, event->op)];
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

/* The object's slot; TRACE_N_SLOTS: none. */
static uint32_t slot_of(struct trace_encoder *e, uint32_t object) {
    uint8_t *hint = &e->slot_hints[object % TRACE_N_SLOT_HINTS];
    uint32_t slot = *hint;
    if (e->slot_object[slot] == object + 1)
        return slot;
    slot = 0;
    while (slot < TRACE_N_SLOTS && e->slot_object[slot] != object + 1)
        slot++;
    *hint = (uint8_t)(slot < TRACE_N_SLOTS ? slot : e->next_slot % TRACE_N_SLOTS); /* where it will be */
    return slot;
}

/* The byte of an object and its order, `flags` among it; what follows it is put at *at. */
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
    __atomic_store_n(&e->counts, counts, __ATOMIC_RELAXED); /* one store: who interrupts it is the thread itself */
}

void trace_define(struct trace_encoder *e, enum trace_definition what, uint32_t number, uint64_t address) {
    uint64_t *last = what == TRACE_DEFINE_OBJECT ? &e->last_object_address : &e->last_site_address;
    uint8_t *at = e->definitions + e->n_definition_bytes;
    *at++ = (uint8_t)what;
    at = trace_put(at, number);
    at = trace_put(at, trace_zigzag(address - *last));
    *last = address;
    at_least(what == TRACE_DEFINE_OBJECT ? &e->n_objects : &e->n_sites, number);
    __atomic_signal_fence(__ATOMIC_RELEASE);
    e->n_definition_bytes = (uint32_t)(at - e->definitions);
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
    uint64_t sum = trace_sum(TRACE_VERSION, e->events, e->n_event_bytes);
    sum = trace_sum(sum, e->templates, e->n_templates * sizeof e->templates[0]);
    header->payload_sum = trace_sum(sum, e->definitions, e->n_definition_bytes);
    header->header_sum = trace_header_sum(header);
}

void trace_encoder_next(struct trace_encoder *e) {
    e->sequence++; /* the hints are out of date with this */
    e->n_event_bytes = e->n_templates = e->n_definition_bytes = e->n_events = 0;
    e->n_objects = e->n_sites = e->n_threads = 0;
    e->next_slot = e->last_missed = 0;
    e->last_object_address = e->last_site_address = 0;
    e->first_clock_ns = e->clock_ns;
    memset(e->slot_object, 0, sizeof e->slot_object);
}

void trace_encoder_again(struct trace_encoder *e) {
    trace_encoder_next(e);
    e->sequence--;
    memset(e->hints, 0, sizeof e->hints); /* which are of this sequence, and of templates that are not there any more */
}

void trace_definitions_header(struct trace_block *header, enum trace_block_kind kind, const void *definitions,
                              uint32_t n_bytes) {
    *header = (struct trace_block){.magic = TRACE_BLOCK_MAGIC, .kind = (uint8_t)kind, .definition_bytes = n_bytes};
    header->payload_sum = trace_sum(TRACE_VERSION, definitions, n_bytes);
    header->header_sum = trace_header_sum(header);
}
