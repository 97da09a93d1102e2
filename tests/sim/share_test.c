/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs of simulated threads that share cores: costs computed by hand. */
#include "lib/suite.h"
#include "program.h"

static struct sim_error error;
static uint32_t word, channel;
static uint64_t at[8];
static bool free_looks; /* take no time */

/* n threads on two cores: 0, 2, .. on core 0. */
static void run(uint32_t n, sim_program_body *body) {
    struct sim_program_config config = sim_program_config_default();
    config.n_cores = 2;
    config.n_threads = n;
    if (free_looks)
        config.optical.check_cycles = 0;
    struct sim_program *p = sim_program_new(&config, &error);
    ck_assert_msg(p != NULL, "%s", error.text);
    word = sim_words(p, 8);
    channel = sim_channel(p);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(sim_program_spawn(p, body, NULL, &error), SIM_OK);
    ck_assert_int_eq(sim_program_spawn(p, body, NULL, &error), SIM_USAGE);
    ck_assert_msg(sim_program_run(p, &error) == SIM_OK, "%s", error.text);
    sim_program_free(p);
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
