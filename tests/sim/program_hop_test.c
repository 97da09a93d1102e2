/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that take messages ahead of events. The events that they do not wait for happen all the same, each put in by
 * the one before: events of equal times keep their order, and with that the order in which threads get at a word.
 */
#include <string.h>

#include "lib/suite.h"
#include "program.h"

enum { N_ROUNDS = 20 };

static uint32_t n_cores, word, channel, other;
static uint64_t hashes[SIM_MAX_CORES];

/* A thread's course: what it has received or read, and when. */
static void note(struct sim_program *p, uint64_t value) {
    uint64_t *hash = &hashes[sim_self(p)];
    *hash = ((*hash ^ value) * UINT64_C(0x100000001b3) ^ sim_cycles(p)) * UINT64_C(0x100000001b3);
}

static void receive(struct sim_program *p, uint32_t from) {
    struct sim_message m;
    switch (sim_self(p) % 3) {
    case 0:
        sim_wait_receive(p, from, &m);
        break;
    case 1:
        while (!sim_receive(p, from, &m))
            sim_compute(p, 7);
        break;
    default:
        while (!sim_wait_receive_until(p, from, sim_cycles(p) + 40, &m))
            sim_compute(p, 1);
    }
    note(p, m.head.wavelength);
}

/* All send and receive from all, some a second message on another channel, and touch the word after some of them. */
static void all_to_all(struct sim_program *p, void *argument) {
    (void)argument;
    uint32_t self = sim_self(p), every = 5 + self % 4;
    sim_subscribe(p, channel);
    sim_subscribe(p, other);
    sim_compute(p, 100);
    for (uint32_t round = 0; round < N_ROUNDS; round++) {
        sim_compute(p, (self * 37 + round * 11) % 10);
        sim_send(p, channel, 1, round, NULL, 0);
        if (self % 4 == round % 4)
            sim_send(p, other, 1, round, NULL, 0);
        for (uint32_t i = 1; i < n_cores; i++) {
            receive(p, channel);
            if (i % every == 0)
                note(p, sim_fetch_add(p, word, 1));
        }
        for (uint32_t i = 0; i < n_cores; i++)
            if (i % 4 == round % 4 && i != self)
                receive(p, other);
    }
}

struct course {
    uint64_t cycles, n_events, n_received, delay_cycles, max_lambda, hash;
};

static struct course course_of(uint32_t n, uint32_t transport, uint32_t controller) {
    struct sim_program_config config = sim_program_config_default();
    struct sim_error error;
    config.n_cores = n_cores = n;
    config.optical.transport_cycles = transport;
    config.optical.controller_cycles = controller;
    struct sim_program *p = sim_program_new(&config, &error);
    ck_assert_msg(p != NULL, "%s", error.text);
    word = sim_words(p, 1);
    channel = sim_channel(p);
    other = sim_channel(p);
    memset(hashes, 0, sizeof hashes);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(sim_program_spawn(p, all_to_all, NULL, &error), SIM_OK);
    ck_assert_msg(sim_program_run(p, &error) == SIM_OK, "%s", error.text);
    struct hw_optical_counts sum = hw_optical_sum(sim_program_optical(p));
    struct course course = {.cycles = sim_program_cycles(p),
                            .n_events = sim_program_n_events(p),
                            .n_received = sum.n_received,
                            .delay_cycles = sum.delay_cycles,
                            .max_lambda = sum.max_lambda};
    for (uint32_t i = 0; i < n; i++)
        course.hash = course.hash * UINT64_C(0x100000001b3) ^ hashes[i];
    sim_program_free(p);
    return course;
}

/* The numbers are of the simulator without hops. */
TEST(a_hop_is_an_event, "as many, and in the same order, as if each thread had waited for each") {
    static const struct {
        uint32_t n_cores, transport, controller;
        struct course course;
    } wanted[] = {
        {2, 5, 10, {680, 80, 50, 905, 2, UINT64_C(0x99c35ca01fabfcfd)}},
        {7, 5, 10, {5507, 1483, 1050, 23151, 2, UINT64_C(0x87d20562d0b211be)}},
        {16, 5, 10, {58435, 16359, 6000, 148055, 2, UINT64_C(0xd36193a321e583e5)}},
        {64, 5, 10, {1955284, 663805, 100800, 3641334, 2, UINT64_C(0x8492fbafa8e00c66)}},
        /* Quick controllers: what is certain until the look is not always so until the next one. */
        {5, 1, 1, {533, 295, 500, 1195, 2, UINT64_C(0xc5d8edc18aa4d12e)}},
        {19, 3, 3, {99334, 17878, 8550, 68325, 2, UINT64_C(0x96b9a351087632b1)}},
        {19, 7, 2, {99358, 17651, 8550, 87658, 2, UINT64_C(0xe62cca5ab2125848)}},
        {19, 15, 2, {99345, 17079, 8550, 156058, 2, UINT64_C(0xa6b8b2e3ca115ea5)}},
        {33, 7, 2, {396059, 86157, 26400, 295096, 2, UINT64_C(0x7b1b02de6f51fada)}},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct course c = course_of(wanted[i].n_cores, wanted[i].transport, wanted[i].controller);
        ck_assert_mem_eq(&c, &wanted[i].course, sizeof c);
    }
}

struct made {
    uint32_t word, words_left, channel, channels_left;
};

/* Thread 0 begins first, and is at 150 and 250; thread 1 is at 100 and 300. */
static void makes(struct sim_program *p, void *argument) {
    struct made *made = (struct made *)argument + sim_self(p);
    sim_compute(p, sim_self(p) == 0 ? 150 : 100);
    made->words_left = sim_n_words(p);
    made->word = sim_words(p, 8);
    sim_compute(p, sim_self(p) == 0 ? 100 : 200);
    made->channels_left = sim_n_channels(p);
    made->channel = sim_channel(p);
}

/* The same without a question before. */
static void only_makes(struct sim_program *p, void *argument) {
    struct made *made = (struct made *)argument + sim_self(p);
    sim_compute(p, sim_self(p) == 0 ? 150 : 100);
    made->word = sim_words(p, 8);
    sim_compute(p, sim_self(p) == 0 ? 100 : 200);
    made->channel = sim_channel(p);
}

static void make(sim_program_body *body, struct made *made) {
    struct sim_program_config config = sim_program_config_default();
    struct sim_error error;
    config.n_cores = 2;
    struct sim_program *p = sim_program_new(&config, &error);
    ck_assert_msg(p != NULL, "%s", error.text);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(sim_program_spawn(p, body, made, &error), SIM_OK);
    ck_assert_msg(sim_program_run(p, &error) == SIM_OK, "%s", error.text);
    ck_assert(made[1].word == 0 && made[0].word == SIM_WORDS_OF_LINE);
    ck_assert(made[0].channel == 0 && made[1].channel == 1);
    sim_program_free(p);
}

TEST(words_and_channels, "are made, and counted, in the order of time") {
    struct made made[2];
    make(only_makes, made);
    make(makes, made);
    ck_assert_uint_eq(made[1].words_left - made[0].words_left, SIM_WORDS_OF_LINE);
    ck_assert_uint_eq(made[0].channels_left - made[1].channels_left, 1);
}
