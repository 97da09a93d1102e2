/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks every interleaving of small systems: two to four cores, each with a short program, a network that keeps each
 * core's requests and answers in order and nothing else, one NI. A depth-first search with a hash of every state seen.
 *
 * In every step the scratchpad is valid and the NI does what the reference does, hand-off order included (subject.h).
 * In every state, seen from the programs: a mutex has one owner, a variable is touched by its mutex's owner only,
 * no core leaves a barrier before all have come to it. In every last state: all programs are through (no wake-up was
 * lost, no request held back for ever), each round of the barrier had one serial thread, mutexes are free and no queue
 * element is missing.
 *
 * Usage: walk [scenario number]. Prints TAP and the number of states.
 */
#include "explore.h"
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CORES = 4, N_OBJECTS = 4, MAX_QUEUE = 4, OUT = 3, IN = 4, N_VARS = 3, NO_CORE = 0xff };
enum object { M0, M1, COND, BARRIER };

/* ---- programs ---- */

enum code {
    END,
    LOCK,      /* a: mutex */
    TIMEDLOCK, /* a: mutex; after a timeout go on at b */
    TRYLOCK,   /* a: mutex; if busy go on at b */
    UNLOCK,    /* a: mutex */
    WAIT,      /* while variable b is 0 wait for COND */
    TIMEDWAIT, /* the same, giving up after a timeout */
    SIGNAL,
    BROADCAST,
    MEET, /* at the barrier */
    ADD,  /* to variable b; mutex 0 must be held */
    TAKE  /* one from variable b if it is not 0 */
};

struct instruction {
    uint8_t code, a, b;
};

struct scenario {
    const char *name;
    uint8_t n_cores, n_queue, barrier; /* 0: none */
    enum hw_full full;
    struct instruction program[MAX_CORES][14];
};

#include "scenarios.h"

/* ---- states ---- */

enum waiting { NOT, FOR_LOCK, FOR_COND, FOR_RELOCK, FOR_TRY, FOR_BARRIER };
enum early { NONE, GRANTED, WOKEN, AGAIN }; /* what came while the answer to a WITHDRAW is still to come */

struct core {
    uint8_t pc, waiting;
    uint8_t object; /* of the request that is waited for */
    uint8_t may_time_out;
    uint8_t withdrawing, early;
    uint8_t timed_out;
    uint8_t held; /* the first request is held back */
    uint8_t n_out, out[OUT];
    uint8_t n_in, in[IN];
};

struct state {
    uint8_t bytes[N_OBJECTS * HW_CONTROL_BYTES + MAX_QUEUE * HW_QUEUE_BYTES];
    uint16_t free_head, free_tail, n_free, n_reserved;
    struct core core[MAX_CORES];
    uint8_t owner[2], vars[N_VARS];
    uint8_t arrived[MAX_CORES], passed[MAX_CORES], n_serial;
    struct ref ref; /* follows from the rest: not hashed */
};

static const struct scenario *scenario;
static struct subject subject;
static uint32_t ids[N_OBJECTS];
static const char *error;

static bool fail(const char *why) {
    if (!error)
        error = why;
    return false;
}

/* ---- requests and answers: one byte each on the way ---- */

static bool post(struct core *c, enum hw_op op, uint32_t object) {
    if (c->n_out == OUT)
        return fail("a core with more requests under way than it can have");
    c->out[c->n_out++] = (uint8_t)((uint32_t)op << 3 | object);
    return true;
}

static bool answer(struct state *s, const struct hw_message *m) {
    struct core *c = &s->core[m->core];
    uint32_t object = hw_id_index(&subject.ni.spm.layout, m->primitive);
    if (c->n_in == IN)
        return fail("a core with more answers under way than it can have");
    if (m->op == HW_OP_NACK || m->op < HW_OP_GRANT)
        return fail("refused");
    c->in[c->n_in++] = (uint8_t)(((uint32_t)m->op - HW_OP_GRANT) << 3 | (m->argument & 1) << 2 | object);
    return true;
}

/* ---- the NI ---- */

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
    struct hw_spm *spm = &subject.ni.spm;
    /* A free element's thread word means nothing: two states that differ there are one. */
    for (uint32_t at = hw_control_word(N_OBJECTS, 0); at < hw_control_word(N_OBJECTS, 0) + 2u * spm->n_queue; at += 2)
        if (!(hw_spm_peek(spm, at) & HW_LINK_IN_USE))
            hw_spm_poke(spm, at + 1, 0);
    memcpy(s->bytes, subject.bytes, sizeof s->bytes);
    s->free_head = spm->free_head;
    s->free_tail = spm->free_tail;
    s->n_free = spm->n_free;
    s->n_reserved = spm->n_reserved;
    s->ref = subject.ref;
}

static bool step_ni(struct state *s, uint32_t core) {
    struct core *c = &s->core[core];
    uint32_t object = c->out[0] & 7;
    load(s);
    struct hw_packet packet =
        hw_packet_request(&subject.ni.spm.layout, (enum hw_op)(c->out[0] >> 3), ids[object], core, core);
    const char *why = subject_step(&subject, &packet);
    if (why)
        return fail(why);
    if (subject.step.status == HW_STATUS_HELD) {
        c->held = 1;
        return true;
    }
    store(s);
    c->n_out--;
    memmove(c->out, c->out + 1, c->n_out);
    c->out[c->n_out] = 0;
    for (uint32_t i = 0; subject.step.made_room && i < scenario->n_cores; i++)
        s->core[i].held = 0;
    for (uint32_t i = 0; i < subject.step.n_outputs; i++) {
        struct hw_message m = hw_packet_decode(&subject.ni.spm.layout, &subject.outputs[i].packet);
        if (!answer(s, &m))
            return false;
    }
    return true;
}

/* ---- a core ---- */

static const struct instruction *at(const struct state *s, uint32_t core) {
    return &scenario->program[core][s->core[core].pc];
}

static bool acquire(struct state *s, uint32_t core, uint32_t mutex) {
    if (s->owner[mutex] != NO_CORE)
        return fail("a mutex with two owners");
    s->owner[mutex] = (uint8_t)core;
    return true;
}

static bool release(struct state *s, uint32_t core, uint32_t mutex) {
    if (s->owner[mutex] != core)
        return fail("a program that releases what it does not hold");
    s->owner[mutex] = NO_CORE;
    return true;
}

static bool wait_for(struct core *c, enum waiting what, enum hw_op op, uint32_t object, bool may_time_out) {
    c->waiting = (uint8_t)what;
    c->object = (uint8_t)object;
    c->may_time_out = may_time_out;
    return post(c, op, object);
}

static bool run(struct state *s, uint32_t core) {
    struct core *c = &s->core[core];
    const struct instruction *in = at(s, core);
    uint8_t *var = &s->vars[in->b];
    switch ((enum code)in->code) {
    case END:
        return false;
    case LOCK:
        return wait_for(c, FOR_LOCK, HW_OP_LOCK, in->a, false);
    case TIMEDLOCK:
        return wait_for(c, FOR_LOCK, HW_OP_LOCK, in->a, true);
    case TRYLOCK:
        return wait_for(c, FOR_TRY, HW_OP_TRYLOCK, in->a, false);
    case UNLOCK:
        c->pc++;
        return release(s, core, in->a) && post(c, HW_OP_UNLOCK, in->a);
    case WAIT:
    case TIMEDWAIT:
        if (s->owner[M0] != core)
            return fail("a condition waited for without its mutex");
        if (*var != 0 || c->timed_out) {
            c->timed_out = 0;
            c->pc++;
            return true;
        }
        return release(s, core, M0) && wait_for(c, FOR_COND, HW_OP_COND_WAIT, COND, in->code == TIMEDWAIT);
    case SIGNAL:
        c->pc++;
        return post(c, HW_OP_SIGNAL, COND);
    case BROADCAST:
        c->pc++;
        return post(c, HW_OP_BROADCAST, COND);
    case MEET:
        s->arrived[core]++;
        return wait_for(c, FOR_BARRIER, HW_OP_BARRIER_WAIT, BARRIER, false);
    case ADD:
    case TAKE:
        if (s->owner[M0] != core)
            return fail("a variable touched by another than its mutex's owner");
        if (in->code == ADD)
            ++*var;
        else if (*var == 0)
            return fail("taken what was not there");
        else
            --*var;
        c->pc++;
        return true;
    }
    return fail("no such instruction");
}

static void go_on(struct core *c, uint8_t pc) {
    c->pc = pc;
    c->waiting = NOT;
    c->object = c->may_time_out = c->withdrawing = c->early = 0;
}

/* The wait is over and the core owns the mutex. A condition is looked at again. */
static void own(struct core *c) {
    go_on(c, c->waiting == FOR_LOCK ? c->pc + 1 : c->pc);
}

/* Out of the condition without its mutex. */
static bool relock(struct core *c) {
    c->withdrawing = c->early = 0;
    return wait_for(c, FOR_RELOCK, HW_OP_LOCK, M0, false);
}

static bool retry(struct state *s, uint32_t core) {
    struct core *c = &s->core[core];
    c->withdrawing = c->early = 0;
    if (c->waiting == FOR_BARRIER)
        return post(c, HW_OP_BARRIER_WAIT, BARRIER);
    if (c->waiting != FOR_COND)
        return post(c, HW_OP_LOCK, c->object);
    /* The mutex is still held; no core could make room. */
    return post(c, HW_OP_UNLOCK, M0) && relock(c);
}

static bool early(struct state *s, uint32_t core, enum early what) {
    struct core *c = &s->core[core];
    if (c->withdrawing) {
        c->early = (uint8_t)what;
        return true;
    }
    switch (what) {
    case GRANTED:
        own(c);
        return true;
    case WOKEN:
        return relock(c);
    case AGAIN:
        return retry(s, core);
    case NONE:
        break;
    }
    return fail("an answer that says nothing");
}

static bool leave_barrier(struct state *s, uint32_t core, bool serial) {
    s->passed[core]++;
    s->n_serial = (uint8_t)(s->n_serial + serial);
    for (uint32_t i = 0; i < scenario->n_cores; i++)
        if (s->arrived[i] < s->passed[core])
            return fail("left a barrier before all had come");
    go_on(&s->core[core], (uint8_t)(s->core[core].pc + 1));
    return true;
}

static bool deliver(struct state *s, uint32_t core) {
    struct core *c = &s->core[core];
    uint8_t in = c->in[0];
    enum hw_op op = (enum hw_op)((in >> 3) + HW_OP_GRANT);
    uint32_t object = in & 3;
    bool argument = (in & 4) != 0;
    c->n_in--;
    memmove(c->in, c->in + 1, c->n_in);
    c->in[c->n_in] = 0;
    bool locking = c->waiting == FOR_LOCK || c->waiting == FOR_RELOCK || c->waiting == FOR_TRY;
    uint32_t expected = c->waiting == FOR_COND ? (uint32_t)M0 : c->object;
    switch (op) {
    case HW_OP_GRANT:
        if (!(locking || c->waiting == FOR_COND) || object != expected || c->early)
            return fail("a grant that no core waits for");
        if (!acquire(s, core, object))
            return false;
        if (c->waiting == FOR_TRY) {
            go_on(c, (uint8_t)(c->pc + 1));
            return true;
        }
        return early(s, core, GRANTED);
    case HW_OP_BUSY:
        if (c->waiting != FOR_TRY)
            return fail("busy, and no core tried");
        go_on(c, at(s, core)->b);
        return true;
    case HW_OP_RELEASE:
        return c->waiting == FOR_BARRIER ? leave_barrier(s, core, argument) : fail("released, and no core waits");
    case HW_OP_WOKEN:
        return c->waiting == FOR_COND ? early(s, core, WOKEN) : fail("woken, and no core waits");
    case HW_OP_AGAIN:
        if (c->waiting == FOR_COND && !acquire(s, core, M0))
            return false;
        if (c->waiting == FOR_COND && !release(s, core, M0))
            return false;
        return early(s, core, AGAIN);
    case HW_OP_WITHDRAWN:
        if (!c->withdrawing || c->early)
            return fail("withdrawn, and something else too");
        if (c->waiting == FOR_COND) {
            c->timed_out = 1;
            return relock(c);
        }
        go_on(c, at(s, core)->b);
        return true;
    case HW_OP_GONE:
        if (!c->withdrawing)
            return fail("gone, and no core asked");
        c->withdrawing = 0;
        c->may_time_out = 0;
        return c->early ? early(s, core, (enum early)c->early) : true;
    default:
        return fail("an answer that no core asked for");
    }
}

/* The deadline passes. A request held back at the NI's door is simply taken away. */
static bool time_out(struct state *s, uint32_t core) {
    struct core *c = &s->core[core];
    c->may_time_out = 0;
    if (c->held && c->n_out == 1) {
        c->held = 0;
        c->out[0] = c->n_out = 0;
        go_on(c, at(s, core)->b);
        return true;
    }
    c->withdrawing = 1;
    return post(c, HW_OP_WITHDRAW, c->object);
}

/* ---- transitions ---- */

enum transition { RUN, NI, DELIVER, TIME_OUT, N_TRANSITIONS };

static bool is_enabled(const struct state *s, enum transition t, uint32_t core) {
    const struct core *c = &s->core[core];
    switch (t) {
    case RUN:
        return c->waiting == NOT && at(s, core)->code != END && c->n_out < OUT;
    case NI:
        return c->n_out > 0 && !c->held;
    case DELIVER:
        return c->n_in > 0;
    default:
        return c->may_time_out && c->n_out < OUT;
    }
}

static bool take_transition(struct state *s, enum transition t, uint32_t core) {
    switch (t) {
    case RUN:
        return run(s, core);
    case NI:
        return step_ni(s, core);
    case DELIVER:
        return deliver(s, core);
    default:
        return time_out(s, core);
    }
}

static bool is_good_end(const struct state *s) {
    for (uint32_t i = 0; i < scenario->n_cores; i++) {
        const struct core *c = &s->core[i];
        if (c->waiting != NOT || c->n_out || c->n_in || at(s, i)->code != END)
            return fail("stuck: a wake-up was lost, or a request is held back for ever");
        if (scenario->barrier && s->passed[i] != s->n_serial)
            return fail("a round of the barrier without exactly one serial thread");
    }
    load(s);
    if (s->n_free != scenario->n_queue)
        return fail("a queue element is missing at the end");
    for (uint32_t m = M0; m <= M1; m++)
        if (s->owner[m] != NO_CORE || hw_spm_peek(&subject.ni.spm, hw_control_word(m, 2)) != 0)
            return fail("a mutex is held at the end");
    return true;
}

/* ---- the walk ---- */

static bool enabled(const void *state, uint32_t transition) {
    return is_enabled(state, (enum transition)(transition % N_TRANSITIONS), transition / N_TRANSITIONS);
}

static const char *take(void *state, uint32_t transition) {
    error = NULL;
    take_transition(state, (enum transition)(transition % N_TRANSITIONS), transition / N_TRANSITIONS);
    return error;
}

static const char *check_end(const void *state) {
    error = NULL;
    is_good_end(state);
    return error;
}

static const char *describe(uint32_t transition, char *text, size_t size) {
    static const char *const names[] = {"runs", "is served", "is answered", "times out"};
    snprintf(text, size, "core %u %s", transition / N_TRANSITIONS, names[transition % N_TRANSITIONS]);
    return text;
}

static void first_state(struct state *s) {
    struct hw_config config = hw_config_default();
    config.n_tiles = MAX_CORES;
    config.n_control = N_OBJECTS;
    config.n_queue = scenario->n_queue;
    config.full = scenario->full;
    const struct hw_layout *layout = &subject.ni.spm.layout;
    bool ok = subject_init(&subject, &config, 0);
    static const enum hw_op ops[] = {HW_OP_ALLOC_MUTEX, HW_OP_ALLOC_MUTEX, HW_OP_ALLOC_CONDITION, HW_OP_ALLOC_BARRIER};
    for (uint32_t i = 0; ok && i < (scenario->barrier ? 4u : 3u); i++) {
        uint32_t flit1 = i == COND ? ids[M0] : i == BARRIER ? scenario->barrier : 0;
        struct hw_packet packet = hw_packet_alloc(layout, ops[i], 0, flit1, 0, 0);
        const char *why = subject_step(&subject, &packet);
        ok = !why && hw_packet_decode(layout, &subject.outputs[0].packet).op == HW_OP_ALLOCATED;
        ids[i] = subject.outputs[0].packet.flit[1];
    }
    if (!ok) {
        puts("Bail out! no such machine");
        exit(1);
    }
    memset(s, 0, sizeof *s);
    memset(s->owner, NO_CORE, sizeof s->owner);
    store(s);
}

int main(int argc, char **argv) {
    uint32_t first = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) - 1 : 0;
    uint32_t last = argc > 1 ? first + 1 : N_SCENARIOS;
    uint64_t n_states = 0, n_all_steps = 0;
    int status = 0;
    if (last > N_SCENARIOS || first >= last) {
        fprintf(stderr, "usage: walk [scenario, 1 to %d]\n", N_SCENARIOS);
        return 2;
    }
    printf("1..%u\n", last - first);
    for (uint32_t i = first; i < last; i++) {
        struct state first_one;
        scenario = &scenarios[i];
        first_state(&first_one);
        const struct system system = {sizeof(struct state),
                                      offsetof(struct state, ref),
                                      scenario->n_cores * N_TRANSITIONS,
                                      enabled,
                                      take,
                                      check_end,
                                      describe};
        struct explored e = explore(&system, &first_one);
        bool ok = !e.error && e.n_ends > 0;
        printf("%sok %u - %s: %llu states, %llu steps, %llu ends, %u deep%s%s\n", ok ? "" : "not ", i - first + 1,
               scenario->name, (unsigned long long)e.n_states, (unsigned long long)e.n_steps,
               (unsigned long long)e.n_ends, e.deepest, e.error ? "; " : "", e.error ? e.error : "");
        fflush(stdout);
        n_states += e.n_states;
        n_all_steps += e.n_steps;
        status |= !ok;
    }
    printf("# %llu states, %llu steps between them\n", (unsigned long long)n_states, (unsigned long long)n_all_steps);
    return status;
}
