/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs of simulated threads that share cores: costs computed by hand. */
#include "lib/suite.h"
#include "program_state.h"

static struct sim_error error;
static uint32_t word, channel;
static uint64_t at[8];
static bool free_looks; /* take no time */
static uint32_t buffer_limit, n_slots;

/* n threads on two cores: 0, 2, .. on core 0. NULL, or how the run failed. */
static const char *outcome(uint32_t n, sim_program_body *body) {
    struct sim_program_config config = sim_program_config_default();
    config.n_cores = 2;
    config.n_threads = n;
    config.optical.buffer_limit = buffer_limit;
    if (free_looks)
        config.optical.check_cycles = 0;
    struct sim_program *p = sim_program_new(&config, &error);
    ck_assert_msg(p != NULL, "%s", error.text);
    word = sim_words(p, 8);
    channel = sim_channel(p);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(sim_program_spawn(p, body, NULL, &error), SIM_OK);
    ck_assert_int_eq(sim_program_spawn(p, body, NULL, &error), SIM_USAGE);
    enum sim_status status = sim_program_run(p, &error);
    n_slots = sim_program_optical(p)->n_slots;
    sim_program_free(p);
    return status == SIM_OK ? NULL : error.text;
}

static void run(uint32_t n, sim_program_body *body) {
    const char *why = outcome(n, body);
    ck_assert_msg(why == NULL, "%s", why);
}

/*
 * Thread 0 sends at 100. Thread 2, on its core, has the message at once. Threads 1 and 3, on the other core, have it in
 * the buffer at 115, and look one after the other.
 */
static void receives(struct sim_program *p, void *argument) {
    (void)argument;
    struct sim_message m;
    sim_subscribe(p, channel);
    if (sim_self(p) == 0) {
        sim_compute(p, 100);
        sim_send(p, channel, 5, 77, "data", 5);
        return;
    }
    sim_wait_receive(p, channel, &m);
    sim_compute(p, 7);
    sim_load(p, word);
    at[sim_self(p)] = m.sent_cycles;
    ck_assert(m.head.wavelength == 0 && m.head.tag == 77 && m.head.signature == 5 && m.head.size == 5);
    ck_assert_str_eq(m.data, "data");
}

TEST(one_message, "comes to all threads of both cores, with the number of its thread") {
    run(4, receives);
    for (uint32_t i = 1; i < 4; i++)
        ck_assert_uint_eq(at[i], 100);
}

/* Thread 2, on the sender's core, ends with the first message; so does thread 1, on the other one. */
static void sends_to_the_end(struct sim_program *p, void *argument) {
    (void)argument;
    struct sim_message m;
    sim_subscribe(p, channel);
    if (sim_self(p) != 0) {
        sim_wait_receive(p, channel, &m);
        return;
    }
    for (uint32_t i = 0; i < 3; i++) {
        sim_compute(p, 100);
        sim_send(p, channel, 1, i, NULL, 0);
    }
}

TEST(a_thread_that_has_ended, "is not called by later messages, also if its last look took no time") {
    free_looks = true;
    run(3, sends_to_the_end);
    free_looks = false;
}

/* The settled time, behind a call that costs nothing. */
static uint64_t settled(struct sim_program *p) {
    sim_set_filter(p, hw_filter_open());
    return sim_cycles(p);
}

static void looks(struct sim_program *p, void *argument) {
    (void)argument;
    struct sim_message m;
    sim_subscribe(p, channel);
    if (sim_self(p) == 0) {
        sim_compute(p, 100);
        sim_send(p, channel, 1, 0, NULL, 0);
        return;
    }
    sim_wait_receive(p, channel, &m);
    at[sim_self(p)] = settled(p);
}

TEST(looks_of_one_core, "come one after the other") {
    run(4, looks);
    ck_assert_uint_eq(at[2], 103);
    ck_assert_uint_eq(at[1] < at[3] ? at[1] : at[3], 118);
    ck_assert_uint_eq(at[1] < at[3] ? at[3] : at[1], 121);
}

static void computes(struct sim_program *p, void *argument) {
    (void)argument;
    for (int i = 0; i < 3; i++) {
        sim_compute(p, 100);
        at[sim_self(p)] = settled(p);
    }
}

static void reads_clock(struct sim_program *p, void *argument) {
    (void)argument;
    sim_compute(p, 100);
    at[sim_self(p)] = sim_cycles(p);
    ck_assert_uint_eq(settled(p), at[sim_self(p)]);
    sim_compute(p, 50);
    uint64_t cycles = sim_cycles(p);
    ck_assert_uint_eq(settled(p), cycles);
}

TEST(the_clock, "knows that the core computes for another thread first") {
    run(6, reads_clock);
    ck_assert_uint_eq(at[0], 100);
    ck_assert_uint_eq(at[2], 200);
    ck_assert_uint_eq(at[4], 300);
}

TEST(computing, "takes turns on a core, and other cores do not wait") {
    run(5, computes);
    ck_assert_uint_eq(at[0], 700);
    ck_assert_uint_eq(at[2], 800);
    ck_assert_uint_eq(at[4], 900);
    ck_assert_uint_eq(at[1], 500);
    ck_assert_uint_eq(at[3], 600);
}

/* All of core 0's: the line stays in its cache, so no invalidation tells the spinning thread. */
static void spins(struct sim_program *p, void *argument) {
    (void)argument;
    uint32_t self = sim_self(p), turn = self / 2;
    if (self % 2 == 1)
        return;
    for (uint64_t round = 0; round < 10; round++) {
        for (uint64_t value; (value = sim_load(p, word)) != round * 3 + turn;)
            sim_spin_while(p, word, value);
        sim_fetch_add(p, word, 1);
    }
}

TEST(spinning, "sees what a thread of the same core writes") {
    run(6, spins);
}

/* Turns go round the threads of both cores. */
static void spins_across(struct sim_program *p, void *argument) {
    (void)argument;
    for (uint64_t round = 0; round < 10; round++) {
        for (uint64_t value; (value = sim_load(p, word)) != round * 5 + sim_self(p);)
            sim_spin_while(p, word, value);
        sim_fetch_add(p, word, 1);
    }
}

TEST(spinning_across, "sees what threads of all cores write") {
    run(5, spins_across);
}

static void sleeps(struct sim_program *p, void *argument) {
    (void)argument;
    if (sim_self(p) == 0) {
        for (int i = 0; i < 50; i++) { /* others come between */
            sim_compute(p, 100);
            settled(p);
        }
        sim_store(p, word, 1);
        ck_assert_uint_eq(sim_futex_wake(p, word, UINT32_MAX), 3);
    } else {
        sim_futex_wait(p, word, 0);
    }
}

TEST(sleeping, "leaves the core to others") {
    run(4, sleeps);
}

/* The message is in the buffer of core 1 from 115 on; thread 3 sets its filter at 200. */
static void filters_late(struct sim_program *p, void *argument) {
    (void)argument;
    struct sim_message m;
    sim_subscribe(p, channel);
    if (sim_self(p) == 0) {
        sim_compute(p, 100);
        sim_send(p, channel, 2, 0, NULL, 0);
    } else if (sim_self(p) == 3) {
        sim_compute(p, 200);
        sim_set_filter(p, (struct hw_filter){.mask = UINT32_MAX, .op = HW_FILTER_AND, .signature = 1});
        ck_assert(sim_receive(p, channel, &m));
    }
}

TEST(a_filter, "is for what comes later, and leaves what the core has") {
    run(4, filters_late);
}

/* ---- messages that no thread takes ---- */

/* Threads 1 and 3 refuse what comes, each by a filter of its own: the hardware of their core lets all pass. */
static void refuses(struct sim_program *p, void *argument) {
    (void)argument;
    uint32_t self = sim_self(p);
    sim_subscribe(p, channel);
    if (self % 2 == 1)
        sim_set_filter(p, (struct hw_filter){.mask = UINT32_MAX, .op = HW_FILTER_AND, .signature = 1 + self});
    sim_compute(p, 1000);
    for (int i = 0; self == 0 && i < 5000; i++) {
        sim_compute(p, 20);
        sim_send(p, channel, 1, 0, NULL, 0);
    }
}

TEST(messages_that_all_threads_refuse, "leave the hardware's buffer, also if no thread looks") {
    run(4, refuses);
    ck_assert_uint_le(n_slots, 256);
}

/* The controller of core 1 has moved the thirty long before a thread sorts: with the last message. */
static void refuses_many_at_once(struct sim_program *p, void *argument) {
    (void)argument;
    uint32_t self = sim_self(p);
    if (self % 2 == 1) {
        sim_subscribe(p, channel);
        sim_set_filter(p, (struct hw_filter){.mask = UINT32_MAX, .op = HW_FILTER_AND, .signature = 1 + self});
    }
    sim_compute(p, 100);
    for (int i = 0; self == 0 && i < 30; i++)
        sim_send(p, channel, 1, 0, NULL, 0);
    sim_compute(p, 1000);
    if (self == 0)
        sim_send(p, channel, 1, 0, NULL, 0);
}

TEST(messages_that_all_threads_refuse_at_once, "are no messages that are not read, with buffer_limit") {
    buffer_limit = 20;
    run(4, refuses_many_at_once);
    buffer_limit = 0;
}

/* Thread 2 is on the sender's core, and has what is sent at once. */
static void reads_nothing(struct sim_program *p, void *argument) {
    (void)argument;
    p->inboxes.most_bytes = 100 * sizeof(struct sim_letter);
    sim_subscribe(p, channel);
    if (sim_self(p) == 0)
        sim_compute(p, 1);
    while (sim_self(p) == 0)
        sim_send(p, channel, 2, 0, NULL, 0);
}

TEST(a_thread_that_does_not_read, "ends the run when there are too many letters, also of a sender that takes no time") {
    const char *why = outcome(3, reads_nothing);
    ck_assert_str_eq(why, "101 messages are under way to 2 cores: threads send faster than others receive");
}

static void reads_all(struct sim_program *p, void *argument) {
    (void)argument;
    struct sim_message m;
    sim_subscribe(p, channel);
    p->inboxes.most_bytes = 10 * (sizeof(struct sim_letter) + 8);
    for (int i = 0; i < 1000; i++) {
        sim_compute(p, 1000);
        if (sim_self(p) == 0)
            sim_send(p, channel, 2, 0, "letters", 8);
        else
            sim_wait_receive(p, channel, &m);
    }
}

TEST(threads_that_read, "may send for ever") {
    run(4, reads_all);
}
