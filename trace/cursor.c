/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One thread's events in their order. All state is in the caller's cursor. A number in an event is accepted only if the
 * header of its block allows it, and the header's checksum has been checked.
 */
#include "read.h"

enum { PREFETCH = 64 }; /* bytes, a line of the host's cache */

struct __attribute__((may_alias)) state {
    const uint8_t *at, *end; /* in the block's events; its templates begin at the end */
    uint64_t clock_ns;
    uint32_t n_templates, n_left, overhead_ns, last_missed;
    uint32_t n_objects, n_sites, n_threads;
    bool damaged, stacks; /* stacks: events of this version may have them */
    uint8_t n_ops;        /* in this version */
    struct {
        uint64_t order;
        uint32_t object; /* its number plus 1, as in the encoder; 0: empty */
    } slot[TRACE_N_SLOTS];
    uint64_t offset; /* of the block's header */
    uint32_t next_block;
};

_Static_assert(sizeof(struct state) <= sizeof((struct sbt_trace_cursor *)NULL)->reserved, "the cursor");

typedef struct state overlay;

void sbt_trace_cursor_begin(const struct sbt_trace *trace, uint32_t thread, struct sbt_trace_cursor *cursor) {
    *cursor = (struct sbt_trace_cursor){.trace = trace, .thread = thread};
    ((overlay *)cursor->reserved)->stacks = trace->info.version > 1;
    ((overlay *)cursor->reserved)->n_ops =
        trace->info.version > TRACE_NO_VERSION ? SBT_TRACE_N_OPS : SBT_TRACE_OUTSIDE_WAIT;
    if (thread < trace->info.n_threads)
        ((overlay *)cursor->reserved)->next_block = trace->first[thread];
}

uint64_t sbt_trace_thread_events(const struct sbt_trace *trace, uint32_t thread) {
    uint64_t n = 0;
    if (thread >= trace->info.n_threads)
        return 0;
    for (uint32_t i = trace->first[thread]; i < trace->first[thread + 1]; i++)
        n += trace_block_at(trace, trace->blocks[i]).n_events;
    return n;
}

static int damage(const struct sbt_trace_cursor *cursor, overlay *s, const uint8_t *at, struct sbt_trace_error *error,
                  const char *reason) {
    s->damaged = true;
    trace_fail(error, (uint64_t)(at - cursor->trace->bytes), "%s", reason);
    return -1;
}

static int enter_block(const struct sbt_trace_cursor *cursor, overlay *s, struct sbt_trace_error *error) {
    const struct sbt_trace *trace = cursor->trace;
    uint64_t next = trace->blocks[s->next_block];
    if (s->next_block++ > trace->first[cursor->thread])
        trace_leave(trace, s->offset, (uint64_t)(s->at - trace->bytes) - s->offset, next);
    s->offset = next;
    struct trace_block header = trace_block_at(trace, s->offset);
    const uint8_t *payload = trace->bytes + s->offset + sizeof header;
    if (!trace_payload_whole(trace, s->offset, &header))
        return damage(cursor, s, payload, error, "the block does not have its checksum");
    s->at = payload;
    s->end = payload + header.event_bytes;
    s->clock_ns = header.clock_ns;
    s->n_templates = header.n_templates;
    s->n_left = header.n_events;
    s->overhead_ns = header.overhead_ns;
    s->n_objects = header.n_objects;
    s->n_sites = header.n_sites;
    s->n_threads = header.n_threads;
    s->last_missed = 0;
    memset(s->slot, 0, sizeof s->slot);
    return 1;
}

/* The object that `byte` and the bytes after it name, and its order. NULL if that makes no sense. */
static inline const uint8_t *get_object(overlay *s, const uint8_t *at, uint8_t byte, uint32_t *object,
                                        uint64_t *order) {
    uint32_t slot = byte & TRACE_SLOT;
    uint64_t number;
    if ((byte & TRACE_MISS) != 0) {
        at = trace_get(at, s->end, &number);
        if (at == NULL)
            return NULL;
        number = s->last_missed + trace_unzigzag(number);
        if (number >= s->n_objects)
            return NULL;
        s->slot[slot].object = (s->last_missed = (uint32_t)number) + 1;
        s->slot[slot].order = 0;
    }
    if (s->slot[slot].object == 0)
        return NULL;
    *object = s->slot[slot].object - 1;
    if ((byte & TRACE_NEXT) != 0) {
        *order = ++s->slot[slot].order;
    } else if ((byte & TRACE_ORDER) != 0) {
        at = trace_get(at, s->end, &number);
        *order = s->slot[slot].order += at != NULL ? trace_unzigzag(number) : 0;
    }
    return at;
}

static const uint8_t *get_uint(const overlay *s, const uint8_t *at, uint64_t below, uint64_t *value) {
    at = trace_get(at, s->end, value);
    return at != NULL && *value < below ? at : NULL;
}

/* The parts that few events have. NULL if they make no sense. */
static const uint8_t *get_extra(const overlay *s, const uint8_t *at, struct sbt_trace_event *event, uint64_t *slip) {
    uint64_t value = 0;
    uint8_t extra = at < s->end ? *at++ : 0;
    if (extra == 0 || (extra & ~(TRACE_EXTRA_ALL | (s->stacks ? TRACE_EXTRA_STACK : 0))) != 0 ||
        ((extra & TRACE_EXTRA_OTHER) != 0 && event->op == SBT_TRACE_COND_WAIT)) /* its mutex has a place of its own */
        return NULL;
    if ((extra & TRACE_EXTRA_RESULT) != 0) {
        at = get_uint(s, at, UINT16_MAX + 1, &value);
        event->result = (uint16_t)value;
    }
    if (at != NULL && (extra & TRACE_EXTRA_OTHER) != 0) {
        at = get_uint(s, at, s->n_threads, &value);
        event->other = (uint32_t)value;
    }
    if (at != NULL && (extra & TRACE_EXTRA_SIZE) != 0) {
        at = get_uint(s, at, (uint64_t)UINT32_MAX + 1, &value);
        event->size = (uint32_t)value;
    }
    if (at != NULL && (extra & TRACE_EXTRA_SLIP) != 0) {
        at = trace_get(at, s->end, &value);
        *slip = at != NULL ? trace_unzigzag(value) : 0;
    }
    if (at != NULL && (extra & TRACE_EXTRA_STACK) != 0) {
        at = get_uint(s, at, (uint64_t)UINT32_MAX + 1, &value);
        event->stack = (uint32_t)value;
    }
    return at;
}

/* The template of the event at `at`. NULL if it makes no sense, or if nothing follows it. */
static inline const uint8_t *get_template(const overlay *s, const uint8_t *at, struct trace_template *template) {
    uint64_t number;
    at = get_uint(s, at, s->n_templates, &number);
    if (at == NULL || at == s->end)
        return NULL;
    memcpy(template, s->end + number * sizeof *template, sizeof *template);
    if (template->op >= s->n_ops || template->type >= SBT_TRACE_N_TYPES ||
        (template->site != SBT_TRACE_NONE && template->site >= s->n_sites))
        return NULL;
    return at;
}

/* The event's object, and a condition wait's mutex. `byte` is the event's object byte. NULL if they make no sense. */
static inline const uint8_t *get_objects(overlay *s, const uint8_t *at, uint8_t byte, struct sbt_trace_event *event) {
    if (event->type != SBT_TRACE_NO_OBJECT)
        at = get_object(s, at, byte, &event->object, &event->order);
    else if ((byte & ~TRACE_EXTRA) != 0)
        return NULL;
    if (at != NULL && event->op == SBT_TRACE_COND_WAIT) {
        uint8_t second = at < s->end ? *at++ : 0;
        if (second != TRACE_EXTRA)
            at = get_object(s, at, second, &event->other, &event->relock);
    }
    return at;
}

/* The event at s->at, and what follows it. NULL if it makes no sense. */
static inline const uint8_t *get_event(overlay *s, struct sbt_trace_event *event, uint64_t *slip) {
    struct trace_template template;
    const uint8_t *at = get_template(s, s->at, &template);
    if (at == NULL)
        return NULL;
    *event = (struct sbt_trace_event){.op = template.op,
                                      .type = template.type,
                                      .object = SBT_TRACE_NONE,
                                      .other = SBT_TRACE_NONE,
                                      .site = template.site};
    uint8_t byte = *at++;
    at = get_objects(s, at, byte, event);
    if (at != NULL && (byte & TRACE_EXTRA) != 0)
        at = get_extra(s, at, event, slip);
    if (at != NULL)
        at = trace_get(at, s->end, &event->work_ns);
    return at != NULL ? trace_get(at, s->end, &event->took_ns) : NULL;
}

enum { USUAL = 6 }; /* bytes of an event of get_usual(), at most */

/* A varint of one or two bytes. NULL: it has more. */
static inline const uint8_t *get_short(const uint8_t *at, uint64_t *value) {
    if (at[0] < 0x80) {
        *value = at[0];
        return at + 1;
    }
    *value = (at[0] & 0x7Fu) | (uint64_t)at[1] << 7;
    return at[1] < 0x80 ? at + 2 : NULL;
}

/*
 * What get_event() does, for nearly all events: one object, which has its slot, no extra part, and short numbers. NULL:
 * the event is another one, or makes no sense. Then nothing has been changed but *event.
 */
static inline const uint8_t *get_usual(overlay *s, struct sbt_trace_event *event) {
    const uint8_t *at = s->at;
    struct trace_template template;
    if (s->end - at < USUAL || at[0] >= 0x80 || at[0] >= s->n_templates)
        return NULL;
    memcpy(&template, s->end + at[0] * sizeof template, sizeof template);
    uint8_t byte = at[1];
    uint32_t object = s->slot[byte & TRACE_SLOT].object;
    if ((byte & (TRACE_MISS | TRACE_EXTRA | TRACE_ORDER)) != 0 || template.op >= s->n_ops ||
        template.op == SBT_TRACE_COND_WAIT || template.type >= SBT_TRACE_N_TYPES ||
        template.type == SBT_TRACE_NO_OBJECT || object == 0 ||
        (template.site >= s->n_sites && template.site != SBT_TRACE_NONE))
        return NULL;
    uint64_t work_ns, took_ns;
    at = get_short(at + 2, &work_ns);
    if (at == NULL || (at = get_short(at, &took_ns)) == NULL)
        return NULL;
    bool next = (byte & TRACE_NEXT) != 0;
    uint64_t order = s->slot[byte & TRACE_SLOT].order += next;
    *event = (struct sbt_trace_event){.op = template.op,
                                      .type = template.type,
                                      .object = object - 1,
                                      .other = SBT_TRACE_NONE,
                                      .site = template.site,
                                      .work_ns = work_ns,
                                      .took_ns = took_ns,
                                      .order = next ? order : 0};
    return at;
}

/* To the next block, as often as the block that the cursor is in has no event left. 1, 0 at the end, -1 and *error. */
static int find_block(const struct sbt_trace_cursor *cursor, overlay *s, struct sbt_trace_error *error) {
    const struct sbt_trace *trace = cursor->trace;
    while (s->n_left == 0) {
        if (s->damaged)
            return damage(cursor, s, trace->bytes + s->offset, error, "the block is damaged");
        if (s->at != s->end)
            return damage(cursor, s, s->at, error, "the block has more in it than its events");
        if (cursor->thread >= trace->info.n_threads || s->next_block >= trace->first[cursor->thread + 1])
            return 0;
        if (enter_block(cursor, s, error) < 0)
            return -1;
    }
    return 1;
}

/* The event ends at `at`. */
static inline int go_behind(const struct sbt_trace_cursor *cursor, overlay *s, struct sbt_trace_event *event,
                            const uint8_t *at, uint64_t slip) {
    __builtin_prefetch(at + PREFETCH); /* a trace's threads are more places than the host's prefetcher follows */
    s->at = at;
    s->n_left--;
    if (!cursor->trace->info.generated) {
        event->at_ns = s->clock_ns + event->work_ns + s->overhead_ns + slip;
        s->clock_ns = event->at_ns + event->took_ns;
    }
    return 1;
}

/* Any event, or the end. */
static __attribute__((noinline)) int next_any(struct sbt_trace_cursor *cursor, struct sbt_trace_event *event,
                                              struct sbt_trace_error *error) {
    overlay *s = (overlay *)cursor->reserved;
    uint64_t slip = 0;
    int r = find_block(cursor, s, error);
    if (r <= 0)
        return r;
    const uint8_t *at = get_event(s, event, &slip);
    if (at == NULL) {
        s->n_left = 0;
        return damage(cursor, s, s->at, error, "an event makes no sense");
    }
    return go_behind(cursor, s, event, at, slip);
}

int sbt_trace_next(struct sbt_trace_cursor *cursor, struct sbt_trace_event *event, struct sbt_trace_error *error) {
    overlay *s = (overlay *)cursor->reserved;
    const uint8_t *at = s->n_left > 0 ? get_usual(s, event) : NULL;
    return __builtin_expect(at != NULL, 1) ? go_behind(cursor, s, event, at, 0) : next_any(cursor, event, error);
}
