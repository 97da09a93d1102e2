/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Walks every course of small optical networks: in each cycle each core may send, receive and change its filter, or do
 * nothing, in any order. In every step the network does what the reference does (optical_subject.h). In every last
 * state: each core has received each message that its filter has let pass, once, and nothing is left anywhere.
 *
 * Usage: optical-walk [--wrong]. Prints TAP and the number of states. --wrong: a mistake is in the code, which one of
 * the walks must find.
 */
#include "explore.h"
#include "optical_subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scenario {
    const char *name;
    uint8_t n_cores, n_sends[3]; /* how many messages each core sends at most */
    uint8_t transport, controller, lambda_limit;
    bool filters; /* core 0 refuses messages for as long as it likes, once */
    bool clusters;
    uint8_t last; /* the cycle after which no core sends */
};

static const struct scenario scenarios[] = {
    {"one sends three to one", 2, {3, 0, 0}, 2, 2, 0, false, false, 4},
    {"two send two to each other", 2, {2, 2, 0}, 1, 2, 0, false, false, 3},
    {"two send to a third", 3, {0, 2, 2}, 1, 2, 0, false, false, 1},
    {"three send to all", 3, {1, 1, 1}, 2, 3, 0, false, false, 2},
    {"one sends to a core that filters", 2, {0, 3, 0}, 2, 1, 0, true, false, 4},
    {"one place in each lambda queue", 3, {0, 2, 2}, 1, 2, 1, false, false, 3},
    {"two places, and a slow controller", 2, {0, 4, 0}, 1, 4, 2, false, false, 5},
    {"clusters: two share a hub", 3, {1, 1, 1}, 1, 2, 0, false, true, 1},
};
enum { N_SCENARIOS = sizeof scenarios / sizeof *scenarios };

struct state {
    uint8_t sent[3], filtering; /* filtering: not yet, now, no more */
    uint64_t now;
    struct optical_subject subject;
};

static const struct scenario *scenario;
static struct state work;
enum { SEND, RECEIVE = 3, FILTER = 6, TICK, N_TRANSITIONS };

static bool idle(const struct state *s) {
    for (uint32_t i = 0; i < s->subject.ref.n_records; i++)
        if (s->subject.ref.records[i].state != RECORD_MOVED || s->subject.ref.records[i].at > s->now)
            return false;
    return true;
}

static bool is_enabled(const void *state, uint32_t transition) {
    const struct state *s = state;
    if (transition < RECEIVE)
        return transition < scenario->n_cores && s->now <= scenario->last &&
               s->sent[transition] < scenario->n_sends[transition];
    if (transition < FILTER) {
        /* Only what changes something: something is there, or was to be there. */
        for (uint32_t i = 0; i < s->subject.ref.n_records; i++) {
            const struct record *r = &s->subject.ref.records[i];
            if (r->to == transition - RECEIVE && r->state == RECORD_MOVED && r->at <= s->now)
                return true;
        }
        return false;
    }
    if (transition == FILTER)
        return scenario->filters && s->filtering < 2 && s->now <= scenario->last + 3u;
    return s->now <= scenario->last || !idle(s);
}

static const char *step(struct state *s, uint32_t transition) {
    if (transition < RECEIVE) {
        struct hw_optical_message m = {.size = 4, .signature = 1, .wavelength = transition};
        s->sent[transition]++;
        return optical_subject_send(&s->subject, &m, s->now);
    }
    if (transition < FILTER)
        return optical_subject_receive(&s->subject, transition - RECEIVE, 0, s->now);
    if (transition == FILTER) {
        struct hw_filter filter = hw_filter_open();
        if (s->filtering++ == 0)
            filter = (struct hw_filter){.mask = 1, .op = HW_FILTER_XOR, .signature = 1};
        return optical_subject_filter(&s->subject, 0, &filter, s->now);
    }
    s->now++;
    const char *why = NULL;
    /* The reference moves on, so that what can be received is known; a receive that finds nothing is a check too. */
    for (uint32_t core = 0; core < scenario->n_cores && why == NULL; core++)
        why = optical_subject_receive(&s->subject, core, 1, s->now);
    return why;
}

static const char *take(void *state, uint32_t transition) {
    /* A subject has pointers into itself, so it works in one place only. */
    memcpy(&work, state, sizeof work);
    const char *why = step(&work, transition);
    memcpy(state, &work, sizeof work);
    return why;
}

static const char *check_end(const void *state) {
    const struct state *s = state;
    uint32_t n_copies = 0;
    for (uint32_t i = 0; i < scenario->n_cores; i++)
        n_copies += s->subject.ref.n_sent[i] * (scenario->n_cores - 1u);
    if (s->subject.ref.n_records != 0 || s->subject.net.n_free_nodes != OPTICAL_RECORDS ||
        s->subject.net.n_free_slots != OPTICAL_MAX_MESSAGES)
        return "something is left";
    return n_copies == s->subject.ref.n_received + s->subject.ref.n_filtered ? NULL : "a message was lost";
}

static const char *describe(uint32_t transition, char *text, size_t size) {
    if (transition < FILTER)
        snprintf(text, size, "core %u %s", transition % 3, transition < RECEIVE ? "sends" : "receives");
    else
        snprintf(text, size, "%s", transition == FILTER ? "core 0 changes its filter" : "a cycle");
    return text;
}

static struct explored walk(void) {
    static struct state first;
    struct hw_optical_config config = hw_optical_config_default();
    config.n_cores = scenario->n_cores;
    config.n_channels = 2;
    config.transport_cycles = scenario->transport;
    config.controller_cycles = scenario->controller;
    config.lambda_limit = scenario->lambda_limit;
    config.shape = scenario->clusters ? HW_OPTICAL_CLUSTERS : HW_OPTICAL_FLAT;
    config.clusters.n_cores = 2;
    memset(&work, 0, sizeof work);
    if (!optical_subject_init(&work.subject, &config)) {
        printf("Bail out! %s: there can be no such network\n", scenario->name);
        exit(1);
    }
    for (uint32_t core = 0; core < scenario->n_cores; core++)
        optical_subject_subscribe(&work.subject, core, 0, true, 0);
    memcpy(&first, &work, sizeof first);
    struct system system = {.state_bytes = sizeof first,
                            .hashed_bytes = sizeof first,
                            .n_transitions = N_TRANSITIONS,
                            .is_enabled = is_enabled,
                            .take = take,
                            .check_end = check_end,
                            .describe = describe};
    return explore(&system, &first);
}

int main(int argc, char **argv) {
    bool wrong = argc > 1 && strcmp(argv[1], "--wrong") == 0, failed = false;
    for (uint32_t i = 0; i < N_SCENARIOS; i++) {
        scenario = &scenarios[i];
        struct explored e = walk();
        failed = failed || e.error != NULL;
        if (!wrong)
            printf("%sok %u - %s: %" PRIu64 " states, %" PRIu64 " ends%s%s\n", e.error ? "not " : "", i + 1,
                   scenario->name, e.n_states, e.n_ends, e.error ? ": " : "", e.error ? e.error : "");
        if (wrong && failed) {
            printf("ok 1 - the mistake was found: %s: %s\n1..1\n", scenario->name, e.error);
            return 0;
        }
    }
    if (wrong)
        printf("not ok 1 - the mistake was not found\n");
    printf("1..%u\n", wrong ? 1 : (uint32_t)N_SCENARIOS);
    return wrong || failed;
}
