/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulator's events against a plain list: each is taken at its time, and those of the same time in the order in
 * which they were put in, in whichever of the wheel, the blocks and the heap they were; those that come first before.
 * Events that are cancelled do not come, and change nothing for others.
 */
#include "events.h"

#include "lib/suite.h"

enum { MANY = 4000, FAR = 5000 };

struct listed {
    uint64_t at;
    bool first; /* it comes before the others of its time */
    uint32_t number, ticket;
};

static struct listed listed[MANY];
static uint32_t n_listed;

static bool comes_before(const struct listed *a, const struct listed *b) {
    if (a->at != b->at)
        return a->at < b->at;
    return a->first != b->first ? a->first : a->number < b->number;
}

static uint64_t random_below(uint64_t *state, uint64_t n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

static void list(uint64_t at, bool first, uint32_t number, uint32_t ticket) {
    ck_assert_uint_lt(n_listed, MANY);
    listed[n_listed++] = (struct listed){at, first, number, ticket};
}

/* Cancel one of the events, if it can be. */
static void cancel(struct sim_events *e, uint32_t i) {
    if (listed[i].ticket == SIM_NO_EVENT)
        return;
    sim_events_cancel(e, listed[i].at, listed[i].ticket);
    ck_assert_uint_ge(e->cancelled_to, listed[i].at);
    listed[i] = listed[--n_listed];
}

/* Take the next event and compare it with the list's. */
static void take(struct sim_events *e) {
    enum sim_event_kind kind;
    uint32_t first = 0;
    for (uint32_t i = 1; i < n_listed; i++)
        if (comes_before(&listed[i], &listed[first]))
            first = i;
    const struct sim_event *event = sim_events_take(e, &kind);
    ck_assert_ptr_nonnull(event);
    ck_assert_uint_eq(e->now, listed[first].at);
    ck_assert_uint_eq(event->index, listed[first].number);
    ck_assert_uint_eq(event->generation, listed[first].number + 1);
    ck_assert_uint_eq(kind, listed[first].number % (SIM_EV_SEARCH + 1));
    listed[first] = listed[--n_listed];
}

/* Mostly near or one of a few lengths ahead, now and then anywhere. Many are at the same time. */
static uint64_t some_length(uint64_t *state) {
    static const uint64_t lengths[] = {
        0, 1, 64, SIM_BLOCK, SIM_WHEEL - 1, SIM_WHEEL, SIM_WHEEL + 1, 40000, SIM_REACH - 1, SIM_REACH, 1 << 20};
    uint64_t which = random_below(state, 14);
    return which < 11 ? lengths[which] : random_below(state, which == 11 ? 100000 : which == 12 ? SIM_WHEEL : 64);
}

TEST_EACH(order_is_that_of_a_list, 20) {
    struct sim_events e;
    uint64_t state = (uint64_t)number + 1, last_first = 0;
    ck_assert(sim_events_init(&e));
    n_listed = 0;
    for (uint32_t i = 1; i < 5000; i++) {
        uint64_t at = e.now + some_length(&state);
        enum sim_event_kind kind = (enum sim_event_kind)(i % (SIM_EV_SEARCH + 1));
        bool first = random_below(&state, 8) == 0 && at >= last_first && at <= e.now + FAR;
        uint32_t ticket = SIM_NO_EVENT;
        if (first) {
            sim_events_put_first(&e, at, kind, i, i + 1);
            last_first = at;
        } else {
            ticket = sim_events_put_words(&e, at, kind, i, i + 1, 0, &e);
        }
        list(at, first, i, ticket);
        for (uint32_t k = random_below(&state, 4) == 0 ? 3 : 0; k > 0 && n_listed > 0; k--)
            cancel(&e, (uint32_t)random_below(&state, n_listed));
        while (n_listed > 0 && (n_listed > 400 || random_below(&state, 2) == 0))
            take(&e);
    }
    while (n_listed > 0)
        take(&e);
    enum sim_event_kind kind;
    ck_assert_ptr_null(sim_events_take(&e, &kind));
    ck_assert(!e.past && !e.no_memory);
    sim_events_free(&e);
}

TEST(the_past_is_refused) {
    struct sim_events e;
    enum sim_event_kind kind;
    ck_assert(sim_events_init(&e));
    sim_events_put_words(&e, 10000, SIM_EV_TIMER, 1, 2, 0, NULL);
    ck_assert_ptr_nonnull(sim_events_take(&e, &kind));
    sim_events_put_words(&e, 9999, SIM_EV_TIMER, 1, 2, 0, NULL);
    ck_assert(e.past);
    ck_assert_ptr_null(sim_events_take(&e, &kind));
    sim_events_put_words(&e, 10000, SIM_EV_TIMER, 1, 2, 0, NULL);
    ck_assert_ptr_nonnull(sim_events_take(&e, &kind));
    sim_events_free(&e);
}

/* So is what would not come in the order of its call: the lane of these has ascending times. */
TEST(what_comes_first_is_refused_before_the_last_such) {
    struct sim_events e;
    enum sim_event_kind kind;
    ck_assert(sim_events_init(&e));
    sim_events_put_first(&e, 9000, SIM_EV_TIMER, 1, 2);
    sim_events_put_first(&e, 9000, SIM_EV_TIMER, 3, 4);
    ck_assert(!e.past);
    sim_events_put_first(&e, 8999, SIM_EV_TIMER, 5, 6);
    ck_assert(e.past);
    e.past = false;
    for (uint32_t i = 0; i < 2; i++) {
        const struct sim_event *event = sim_events_take(&e, &kind);
        ck_assert_ptr_nonnull(event);
        ck_assert_uint_eq(event->index, 2 * i + 1);
    }
    sim_events_rest(&e, 10000);
    sim_events_put_first(&e, 9999, SIM_EV_TIMER, 7, 8);
    ck_assert(e.past);
    ck_assert_ptr_null(sim_events_take(&e, &kind));
    sim_events_free(&e);
}
