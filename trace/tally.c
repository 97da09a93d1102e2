/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tallies of a profile, in the file's order. All state is in the caller's cursor. As with events, a number is
 * accepted only if the header of its block allows it, and the header's checksum has been checked. */
#include "read.h"

struct __attribute__((may_alias)) state {
    const uint8_t *at, *end;
    uint64_t next_block; /* in trace->tallies */
    uint64_t clock_ns;
    uint32_t n_left, n_objects, n_sites, thread;
    uint32_t last_object; /* its number plus 1, as in the encoder */
    bool damaged;
};

_Static_assert(sizeof(struct state) <= sizeof((struct sbt_trace_tally_cursor *)NULL)->reserved, "the cursor");

typedef struct state overlay;

void sbt_trace_tally_begin(const struct sbt_trace *trace, struct sbt_trace_tally_cursor *cursor) {
    *cursor = (struct sbt_trace_tally_cursor){.trace = trace};
}

static int damage(const struct sbt_trace *trace, overlay *s, const uint8_t *at, struct sbt_trace_error *error,
                  const char *reason) {
    s->damaged = true;
    s->n_left = 0;
    trace_fail(error, (uint64_t)(at - trace->bytes), "%s", reason);
    return -1;
}

static int enter_block(const struct sbt_trace *trace, overlay *s, struct sbt_trace_error *error) {
    uint64_t offset = trace->tallies[s->next_block++];
    struct trace_block header = trace_block_at(trace, offset);
    const uint8_t *payload = trace->bytes + offset + sizeof header;
    if (!trace_payload_whole(trace, offset, &header))
        return damage(trace, s, payload, error, "the block does not have its checksum");
    s->at = payload;
    s->end = payload + header.event_bytes;
    s->clock_ns = header.clock_ns;
    s->n_left = header.n_events;
    s->n_objects = header.n_objects;
    s->n_sites = header.n_sites;
    s->thread = header.thread;
    s->last_object = 0;
    return 1;
}

/* The timed holds. NULL if they make no sense. */
static const uint8_t *get_holds(const uint8_t *at, const uint8_t *end, struct sbt_trace_tally *tally) {
    uint64_t which = 0, n = 0;
    at = trace_get(at, end, &tally->n_timed);
    if (at == NULL || tally->n_timed == 0)
        return at;
    at = trace_get(at, end, &tally->n_held);
    at = at != NULL ? trace_get(at, end, &tally->held_ns) : NULL;
    at = at != NULL ? trace_get(at, end, &tally->held_max_ns) : NULL;
    at = at != NULL ? trace_get(at, end, &which) : NULL;
    if (at == NULL || which > UINT32_MAX)
        return NULL;
    for (unsigned b = 0; b < SBT_TRACE_N_HOLD_BUCKETS && at != NULL; b++)
        if ((which >> b & 1) != 0) {
            at = trace_get(at, end, &tally->held[b]);
            n += tally->held[b];
        }
    return n == tally->n_held && n >= tally->n_timed ? at : NULL;
}

/* An object's number, or NONE, and a site's. NULL if they make no sense. */
static const uint8_t *get_object(overlay *s, const uint8_t *at, uint32_t *number) {
    uint64_t object;
    at = trace_get(at, s->end, &object);
    if (at == NULL)
        return NULL;
    object = s->last_object + trace_unzigzag(object);
    if (object > s->n_objects)
        return NULL;
    s->last_object = (uint32_t)object;
    *number = (uint32_t)object - 1; /* 0 becomes NONE */
    return at;
}

static const uint8_t *get_place(overlay *s, const uint8_t *at, uint32_t *object, uint32_t *site) {
    uint64_t number;
    at = get_object(s, at, object);
    at = at != NULL ? trace_get(at, s->end, &number) : NULL;
    if (at == NULL || number > s->n_sites)
        return NULL;
    *site = (uint32_t)number - 1;
    return at;
}

static const uint8_t *get_tally(overlay *s, const uint8_t *at, struct sbt_trace_tally *tally) {
    if (at[0] >= SBT_TRACE_N_OPS || at[1] >= SBT_TRACE_N_TYPES)
        return NULL;
    *tally = (struct sbt_trace_tally){.thread = s->thread, .until_ns = s->clock_ns, .op = at[0], .type = at[1]};
    at = get_place(s, at + 2, &tally->object, &tally->site);
    at = at != NULL ? trace_get(at, s->end, &tally->n) : NULL;
    at = at != NULL ? trace_get(at, s->end, &tally->n_failed) : NULL;
    at = at != NULL ? get_holds(at, s->end, tally) : NULL;
    return at != NULL && tally->n_failed <= tally->n ? at : NULL;
}

static const uint8_t *get_gates_shared(const overlay *s, const uint8_t *at, struct sbt_trace_order *order) {
    uint64_t which;
    at = trace_get(at, s->end, &which);
    if (at == NULL || which == 0 || which >> order->n_gates != 0)
        return NULL;
    for (uint32_t i = 0; i < order->n_gates; i++)
        order->gate_shared[i] = (which >> i & 1) != 0;
    return at;
}

static const uint8_t *get_stack(const overlay *s, const uint8_t *at, struct sbt_trace_order *order) {
    uint64_t stack;
    at = trace_get(at, s->end, &stack);
    if (at == NULL || stack == 0 || stack > UINT32_MAX)
        return NULL;
    order->stack = (uint32_t)stack;
    return at;
}

static const uint8_t *get_order(overlay *s, const uint8_t *at, struct sbt_trace_order *order) {
    uint64_t n_gates;
    const uint8_t flags = at[0];
    if ((flags & ~(TRACE_TALLY_ORDER | TRACE_ORDER_FLAGS)) != 0)
        return NULL;
    *order = (struct sbt_trace_order){.thread = s->thread,
                                      .held_shared = (flags & TRACE_ORDER_HELD_SHARED) != 0,
                                      .taken_shared = (flags & TRACE_ORDER_TAKEN_SHARED) != 0};
    at = get_place(s, at + 1, &order->held, &order->held_site);
    at = at != NULL ? get_place(s, at, &order->taken, &order->taken_site) : NULL;
    at = at != NULL ? trace_get(at, s->end, &order->n) : NULL;
    at = at != NULL ? trace_get(at, s->end, &n_gates) : NULL;
    if (at == NULL || n_gates > SBT_TRACE_MOST_GATES || order->n == 0 || order->held == SBT_TRACE_NONE ||
        order->taken == SBT_TRACE_NONE)
        return NULL;
    order->n_gates = (uint32_t)n_gates;
    for (uint32_t i = 0; i < order->n_gates && at != NULL; i++) {
        at = get_object(s, at, &order->gate[i]);
        if (order->gate[i] == SBT_TRACE_NONE)
            return NULL;
    }
    if (at != NULL && (flags & TRACE_ORDER_GATES_SHARED) != 0)
        at = get_gates_shared(s, at, order);
    if (at != NULL && (flags & TRACE_ORDER_STACK) != 0)
        at = get_stack(s, at, order);
    return at;
}

/* The next record. 1: *tally; 2: *order; 0: the end; -1: *error. */
static int next(struct sbt_trace_tally_cursor *cursor, struct sbt_trace_tally *tally, struct sbt_trace_order *order,
                struct sbt_trace_error *error) {
    overlay *s = (overlay *)cursor->reserved;
    const struct sbt_trace *trace = cursor->trace;
    while (s->n_left == 0) {
        if (s->damaged || s->at != s->end)
            return damage(trace, s, s->damaged ? s->end : s->at, error,
                          "the block is damaged, or has more in it than its tallies");
        if (s->next_block >= trace->n_tallies)
            return 0;
        if (enter_block(trace, s, error) < 0)
            return -1;
    }
    if (s->end - s->at < TRACE_MIN_TALLY)
        return damage(trace, s, s->at, error, "a tally makes no sense");
    bool is_order = (s->at[0] & TRACE_TALLY_ORDER) != 0;
    const uint8_t *at = is_order ? get_order(s, s->at, order) : get_tally(s, s->at, tally);
    if (at == NULL)
        return damage(trace, s, s->at, error, "a tally makes no sense");
    s->at = at;
    s->n_left--;
    return is_order ? 2 : 1;
}

int sbt_trace_tally_next(struct sbt_trace_tally_cursor *cursor, struct sbt_trace_tally *tally,
                         struct sbt_trace_error *error) {
    struct sbt_trace_order passed;
    int r;
    while ((r = next(cursor, tally, &passed, error)) == 2)
        ;
    return r;
}

int sbt_trace_order_next(struct sbt_trace_tally_cursor *cursor, struct sbt_trace_order *order,
                         struct sbt_trace_error *error) {
    struct sbt_trace_tally passed;
    int r;
    while ((r = next(cursor, &passed, order, error)) == 1)
        ;
    return r == 2 ? 1 : r;
}
