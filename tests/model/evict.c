/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks every interleaving of cores that share more mutexes than the NI has control elements. A core that finds no
 * element free evicts an idle mutex, and every core may meet an ID that went stale after it was read. The protocol is
 * the one that fsm.h asks of a driver; an object's word is only ever changed from the ID that was seen in it.
 *
 *   lock:    word 0: ALLOC_MUTEX. ALLOCATED: put the ID in if the word is still 0, or give it back with DEALLOC.
 *                    NO_SPACE: EVICT another object's ID; EVICTED: make its word 0 if it is still that ID. Begin anew.
 *            else:   LOCK. GRANT: locked. NACK, stale: make the word 0 if it is still that ID, begin anew.
 *   unlock:  UNLOCK with the ID that was locked; a mutex that is held is not evicted.
 *
 * A core that has evicted as often as it may gives up, so that the walk ends. Checked: one owner for each mutex, a
 * valid scratchpad and the reference's answers in every step, no lock request that is never answered, nothing leaked.
 */
#include "explore.h"
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CORES = 3, N_OBJECTS = 3, N_CONTROL = 2, N_QUEUE = 2, OUT = 2, IN = 2, MAX_LOCKS = 3, NO_CORE = 0xff };

struct scenario {
    const char *name;
    uint8_t n_cores, n_evictions;
    uint8_t wanted[MAX_CORES][MAX_LOCKS + 1]; /* objects, one after the other; NO_CORE: the end */
};

static const struct scenario scenarios[] = {
    {"2 cores, three mutexes, two control elements", 2, 3, {{0, 1, 2, NO_CORE}, {2, 0, 1, NO_CORE}}},
    {"3 cores, three mutexes, two control elements", 3, 1, {{0, 1, NO_CORE}, {1, 2, NO_CORE}, {2, 0, NO_CORE}}},
    {"3 cores, the same mutex first", 3, 1, {{0, 1, NO_CORE}, {0, 2, NO_CORE}, {0, NO_CORE}}},
};

enum phase { READY, ALLOCATING, EVICTING, LOCKING, LOCKED };

struct message {
    uint32_t id;
    uint8_t op, argument, pad[2];
};

struct core {
    uint32_t id; /* locked, or in the request under way */
    uint8_t phase, next, victim, n_evictions;
    uint8_t held, n_out, n_in, pad;
    struct message out[OUT], in[IN];
};

struct state {
    uint8_t bytes[N_CONTROL * HW_CONTROL_BYTES + N_QUEUE * HW_QUEUE_BYTES];
    uint16_t free_head, free_tail, n_free, n_reserved;
    uint32_t word[N_OBJECTS];
    struct core core[MAX_CORES];
    uint8_t owner[N_OBJECTS];
    struct ref ref; /* follows from the rest: not hashed */
};

static const struct scenario *scenario;
static struct subject subject;
static uint64_t n_stale, n_evicted, n_given_back, n_given_up;

static void load(const struct state *s) {
    struct hw_spm *spm = &subject.ni.spm;
    memcpy(subject.bytes, s->bytes, sizeof s->bytes);
    spm->free_head = s->free_head;
    spm->free_tail = s->free_tail;
    spm->n_free = s->n_free;
    spm->n_reserved = s->n_reserved;
    subject.ref = s->ref;
}

static void store(struct state *s) {
    const struct hw_spm *spm = &subject.ni.spm;
    memcpy(s->bytes, subject.bytes, sizeof s->bytes);
    s->free_head = spm->free_head;
    s->free_tail = spm->free_tail;
    s->n_free = spm->n_free;
    s->n_reserved = spm->n_reserved;
    s->ref = subject.ref;
}

static const char *post(struct core *c, enum hw_op op, uint32_t id) {
    if (c->n_out == OUT)
        return "a core with more requests under way than it can have";
    c->out[c->n_out++] = (struct message){.op = (uint8_t)op, .id = id};
    return NULL;
}

static struct message shift(struct message *messages, uint8_t *n) {
    struct message first = messages[0];
    --*n;
    memmove(messages, messages + 1, *n * sizeof *messages);
    memset(&messages[*n], 0, sizeof *messages);
    return first;
}

static const char *step_ni(struct state *s, uint32_t core) {
    struct core *c = &s->core[core];
    const struct hw_layout *layout = &subject.ni.spm.layout;
    load(s);
    struct hw_packet packet = hw_packet_alloc(layout, (enum hw_op)c->out[0].op, 0, c->out[0].id, core, core);
    const char *why = subject_step(&subject, &packet);
    if (why)
        return why;
    c->held = subject.step.status == HW_STATUS_HELD;
    if (c->held)
        return NULL;
    store(s);
    shift(c->out, &c->n_out);
    for (uint32_t i = 0; subject.step.made_room && i < scenario->n_cores; i++)
        s->core[i].held = 0;
    for (uint32_t i = 0; i < subject.step.n_outputs; i++) {
        struct hw_message m = hw_packet_decode(layout, &subject.outputs[i].packet);
        struct core *to = &s->core[m.core];
        if (to->n_in == IN)
            return "a core with more answers under way than it can have";
        to->in[to->n_in++] = (struct message){.id = m.primitive, .op = (uint8_t)m.op, .argument = (uint8_t)m.argument};
    }
    return NULL;
}

static uint32_t wanted(const struct state *s, uint32_t core) {
    return scenario->wanted[core][s->core[core].next];
}

static void replace(uint32_t *word, uint32_t old, uint32_t new) {
    if (*word == old)
        *word = new;
}

static const char *run(struct state *s, uint32_t core) {
    struct core *c = &s->core[core];
    uint32_t object = wanted(s, core);
    if (c->phase == LOCKED) {
        uint32_t id = c->id;
        s->owner[object] = NO_CORE;
        c->phase = READY;
        c->next++;
        c->id = 0;
        return post(c, HW_OP_UNLOCK, id);
    }
    c->id = s->word[object];
    c->phase = c->id ? LOCKING : ALLOCATING;
    return post(c, c->id ? HW_OP_LOCK : HW_OP_ALLOC_MUTEX, c->id);
}

/* No control element was free: take that of the next object that has one, or give up. */
static const char *make_space(struct state *s, uint32_t core) {
    struct core *c = &s->core[core];
    c->phase = READY;
    if (c->n_evictions == scenario->n_evictions) {
        n_given_up++;
        c->next++;
        return NULL;
    }
    for (uint32_t i = 1; i < N_OBJECTS; i++) {
        uint32_t victim = (wanted(s, core) + i) % N_OBJECTS;
        if (s->word[victim] == 0)
            continue;
        c->phase = EVICTING;
        c->victim = (uint8_t)victim;
        c->n_evictions++;
        c->id = s->word[victim];
        return post(c, HW_OP_EVICT, c->id);
    }
    return NULL; /* just freed by another core: begin anew */
}

static const char *deliver(struct state *s, uint32_t core) {
    struct core *c = &s->core[core];
    struct message m = shift(c->in, &c->n_in);
    uint32_t object = wanted(s, core), id = c->id;
    bool stale = m.op == HW_OP_NACK && hw_nack_reason(m.argument) == HW_REASON_STALE;
    n_stale += stale;
    c->id = 0;
    if (c->phase == ALLOCATING && m.op == HW_OP_NO_SPACE)
        return make_space(s, core);
    if (c->phase == ALLOCATING && m.op == HW_OP_ALLOCATED) {
        c->phase = READY;
        n_given_back += s->word[object] != 0;
        if (s->word[object] != 0)
            return post(c, HW_OP_DEALLOC, m.id);
        s->word[object] = m.id;
        return NULL;
    }
    if (c->phase == EVICTING && (m.op == HW_OP_EVICTED || m.op == HW_OP_BUSY || stale)) {
        c->phase = READY;
        n_evicted += m.op == HW_OP_EVICTED;
        if (m.op != HW_OP_BUSY)
            replace(&s->word[c->victim], id, 0);
        c->victim = 0;
        return NULL;
    }
    if (c->phase == LOCKING && stale) {
        c->phase = READY;
        replace(&s->word[object], id, 0);
        return NULL;
    }
    if (c->phase != LOCKING || m.op != HW_OP_GRANT || m.id != id)
        return "an answer that no core waits for";
    if (s->owner[object] != NO_CORE)
        return "a mutex with two owners";
    s->owner[object] = (uint8_t)core;
    c->phase = LOCKED;
    c->id = id;
    return NULL;
}

enum transition { RUN, NI, DELIVER, N_TRANSITIONS };

static bool is_enabled(const void *state, uint32_t transition) {
    const struct state *s = state;
    uint32_t core = transition / N_TRANSITIONS;
    const struct core *c = &s->core[core];
    switch (transition % N_TRANSITIONS) {
    case RUN:
        return (c->phase == READY || c->phase == LOCKED) && wanted(s, core) != NO_CORE && c->n_out < OUT;
    case NI:
        return c->n_out > 0 && !c->held;
    default:
        return c->n_in > 0 && c->n_out < OUT;
    }
}

static const char *take(void *state, uint32_t transition) {
    uint32_t core = transition / N_TRANSITIONS;
    switch (transition % N_TRANSITIONS) {
    case RUN:
        return run(state, core);
    case NI:
        return step_ni(state, core);
    default:
        return deliver(state, core);
    }
}

static const char *check_end(const void *state) {
    const struct state *s = state;
    for (uint32_t i = 0; i < scenario->n_cores; i++)
        if (s->core[i].phase != READY || s->core[i].n_out || s->core[i].n_in || wanted(s, i) != NO_CORE)
            return "stuck";
    load(s);
    uint32_t n_used = 0, n_words = 0;
    for (uint32_t i = 0; i < N_CONTROL; i++)
        n_used += (hw_spm_tag(&subject.ni.spm, i) & HW_ID_IN_USE) != 0;
    for (uint32_t i = 0; i < N_OBJECTS; i++)
        for (uint32_t k = 0; s->word[i] && k < N_CONTROL; k++)
            n_words += hw_spm_tag(&subject.ni.spm, k) == s->word[i];
    if (n_used != n_words)
        return "a control element that no object knows";
    return s->n_free == N_QUEUE ? NULL : "a queue element is missing at the end";
}

static const char *describe(uint32_t transition, char *text, size_t size) {
    static const char *const names[] = {"runs", "is served", "is answered"};
    snprintf(text, size, "core %u %s", transition / N_TRANSITIONS, names[transition % N_TRANSITIONS]);
    return text;
}

int main(void) {
    enum { N = sizeof scenarios / sizeof *scenarios };
    uint64_t n_states = 0;
    int status = 0;
    printf("1..%d\n", N + 1);
    for (uint32_t i = 0; i < N; i++) {
        struct hw_config config = hw_config_default();
        config.n_tiles = MAX_CORES;
        config.n_control = N_CONTROL;
        config.n_queue = N_QUEUE;
        scenario = &scenarios[i];
        struct state first;
        memset(&first, 0, sizeof first);
        memset(first.owner, NO_CORE, sizeof first.owner);
        if (!subject_init(&subject, &config, 0)) {
            puts("Bail out! no such machine");
            return 1;
        }
        store(&first);
        const struct system system = {sizeof(struct state),
                                      offsetof(struct state, ref),
                                      scenario->n_cores * N_TRANSITIONS,
                                      is_enabled,
                                      take,
                                      check_end,
                                      describe};
        struct explored e = explore(&system, &first);
        bool ok = !e.error && e.n_ends > 0;
        printf("%sok %u - %s: %llu states, %llu steps, %llu ends, %u deep%s%s\n", ok ? "" : "not ", i + 1,
               scenario->name, (unsigned long long)e.n_states, (unsigned long long)e.n_steps,
               (unsigned long long)e.n_ends, e.deepest, e.error ? "; " : "", e.error ? e.error : "");
        n_states += e.n_states;
        status |= !ok;
    }
    bool all = n_stale && n_evicted && n_given_back && n_given_up;
    printf(
        "%sok %d - met on the way: stale IDs %llu, evictions %llu, second allocations given back %llu, given up %llu\n",
        all ? "" : "not ", N + 1, (unsigned long long)n_stale, (unsigned long long)n_evicted,
        (unsigned long long)n_given_back, (unsigned long long)n_given_up);
    printf("# %llu states\n", (unsigned long long)n_states);
    return status | !all;
}
